//! Descriptions: whether a model learns from them what a tool does and when to use it.

use crate::{
    catalogue::Catalogue,
    report::{Finding, Findings},
    text::{count, is_ideograph, name_words, quoted, stem, telling_words, words},
};

/// Shorter ones say next to nothing.
const SHORTEST: usize = 40;

/// What OpenAI's API takes; it refuses the whole request beyond.
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

/// Words that stand in nearly every English sentence. The cues are English: of a text in another
/// language they say nothing.
const ENGLISH: [&str; 8] = ["the", "of", "and", "to", "with", "from", "for", "by"];

pub(super) fn missing(catalogue: &Catalogue<'_>, findings: &mut Findings) {
    for tool in catalogue.tools() {
        if tool.tool().description.trim().is_empty() {
            let message = format!("{} has no description", tool.shown());
            let help =
                "say what it does and when to use it; by its name alone no model chooses well";
            findings.push(Finding::error(message, help).of(tool).at("description"));
        }
    }
}

pub(super) fn vague(catalogue: &Catalogue<'_>, findings: &mut Findings) {
    for tool in catalogue.tools().iter().filter(|tool| !tool.tool().framework) {
        let description = tool.tool().description.trim();
        let Some(problem) = vagueness(&tool.tool().name, description) else { continue };
        let message = format!("the description of {} {problem}", tool.shown());
        let help = format!(
            "say what it does, to what, what comes back, and when to use it, in {SHORTEST} characters \
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
        return Some(format!("says no more than its name does: {}", quoted(description)));
    }
    let length: usize = description.chars().map(|c| if is_ideograph(c) { 3 } else { 1 }).sum();
    (length < SHORTEST).then(|| {
        let has = count(description.chars().count(), "character");
        format!("has only {has}: {}", quoted(description))
    })
}

pub(super) fn long(catalogue: &Catalogue<'_>, findings: &mut Findings) {
    for tool in catalogue.tools() {
        let length = tool.tool().description.chars().count();
        if length > LONGEST {
            let message = format!("the description of {} has {length} characters", tool.shown());
            let help = format!(
                "keep it to {LONGEST}: OpenAI's API refuses longer ones, and clients cut them; what \
                 belongs to a parameter can stand there"
            );
            findings.push(Finding::warning(message, help).of(tool).at("description"));
        }
    }
}

pub(super) fn what_not_when(catalogue: &Catalogue<'_>, findings: &mut Findings) {
    for tool in catalogue.tools().iter().filter(|tool| !tool.tool().framework) {
        let description = tool.tool().description.trim();
        // Of one that says nothing, another rule speaks.
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
