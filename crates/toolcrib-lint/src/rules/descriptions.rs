//! Descriptions: whether a model learns from them the purpose of a tool and when to use it.

use crate::{
    catalog::LintCatalog,
    report::{Finding, Findings},
    text::{count, is_ideograph, name_words, quoted, stem, telling_words, words},
};

/// Shorter ones contain too little information.
const SHORTEST: usize = 40;

/// The limit of OpenAI's API; it refuses the whole request beyond.
const LONGEST: usize = 1_024;

/// Words by which a description says when to use the tool.
const CUES: [&str; 32] = [
    "use",
    "used",
    "useful",
    "when",
    "whenever",
    "if",
    "unless",
    "before",
    "after",
    "until",
    "once",
    "only",
    "instead",
    "rather",
    "prefer",
    "preferred",
    "avoid",
    "fallback",
    "while",
    "need",
    "needs",
    "needed",
    "require",
    "requires",
    "required",
    "must",
    "should",
    "first",
    "helpful",
    "suitable",
    "works",
    "cannot",
];

/// Words of nearly every English sentence. The cues are English: they do not apply to a text in
/// another language.
const ENGLISH: [&str; 8] = ["the", "of", "and", "to", "with", "from", "for", "by"];

pub(super) fn missing(catalog: &LintCatalog<'_>, findings: &mut Findings) {
    for tool in catalog.tools() {
        if tool.tool().description.trim().is_empty() {
            let message = format!("{} has no description", tool.shown());
            let help = "say what it does and when to use it; a name is not enough for a model to choose well";
            findings.push(Finding::error(message, help).of(tool).at("description"));
        }
    }
}

pub(super) fn vague(catalog: &LintCatalog<'_>, findings: &mut Findings) {
    for tool in catalog.tools().iter().filter(|tool| !tool.tool().framework) {
        let description = tool.tool().description.trim();
        let Some(problem) = vagueness(&tool.tool().name, description) else { continue };
        let message = format!("the description of {} {problem}", tool.shown());
        let help = format!(
            "say what it does, to which object, what it returns, and when to use it, in {SHORTEST} characters \
             or more"
        );
        findings.push(Finding::warning(message, help).of(tool).at("description"));
    }
}

fn vagueness(name: &str, description: &str) -> Option<String> {
    if description.is_empty() {
        return None;
    }
    let name: Vec<String> = name_words(name).iter().map(|word| stem(word)).collect();
    let said = telling_words(description);
    if said.iter().all(|word| name.contains(word)) {
        return Some(format!("only repeats its name: {}", quoted(description)));
    }
    let length: usize = description.chars().map(|c| if is_ideograph(c) { 3 } else { 1 }).sum();
    (length < SHORTEST).then(|| {
        let has = count(description.chars().count(), "character");
        format!("has only {has}: {}", quoted(description))
    })
}

pub(super) fn long(catalog: &LintCatalog<'_>, findings: &mut Findings) {
    for tool in catalog.tools() {
        let length = tool.tool().description.chars().count();
        if length > LONGEST {
            let message = format!("the description of {} has {length} characters", tool.shown());
            let help = format!(
                "keep it to {LONGEST}: OpenAI's API refuses longer ones, and clients cut them; what \
                 belongs to a parameter can be moved there"
            );
            findings.push(Finding::warning(message, help).of(tool).at("description"));
        }
    }
}

pub(super) fn what_not_when(catalog: &LintCatalog<'_>, findings: &mut Findings) {
    for tool in catalog.tools().iter().filter(|tool| !tool.tool().framework) {
        let description = tool.tool().description.trim();
        // Another rule reports descriptions without information.
        if description.is_empty() || vagueness(&tool.tool().name, description).is_some() {
            continue;
        }
        let words: Vec<String> = words(description).collect();
        let has_any = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
        if has_any(&ENGLISH) && !has_any(&CUES) {
            let message = format!(
                "the description of {} says what it does and not when to use it",
                tool.shown()
            );
            let help = "add when to use it, and what to use instead: \"Use it when …\", \"Only \
                        after …\"";
            findings.push(Finding::warning(message, help).of(tool).at("description"));
        }
    }
}
