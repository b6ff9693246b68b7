//! Text that is addressed to the model and is not a description: the patterns of known attacks.
//! Other wordings are not found; a finding is a reason to read the text, and the absence of one is
//! not a reason to trust it.

use std::{collections::HashMap, ops::Range, sync::LazyLock};

use regex::bytes::{Regex, RegexBuilder};

use crate::{
    catalog::{LintCatalog, Subject},
    report::{Finding, Findings},
    text::{folded, name, quoted},
};

/// The meaning of a pattern, and the pattern, for folded text. `{word}` is a [`WORD`].
type Pattern = (&'static str, &'static str);

const TO_MODEL: [Pattern; 5] = [
    (
        "tells the model to ignore its instructions",
        r"\b(?:ignore|disregard|forget)(?: {word}){0,4} (?:instructions?|prompts?|guidelines|guardrails|directives|(?:you (?:were|have been) told))\b",
    ),
    (
        "gives the model another role or other orders",
        r"\byou are now (?:an?|in|the|no longer)\b|\bnew (?:system )?instructions?:|\bfrom now on,? you\b|\b(?:system|admin(?:istrator)?) override\b",
    ),
    (
        "tells the model to hide something from the user",
        r"\b(?:do not|don't|never|must not|without) (?:{word} ){0,3}?(?:tell|telling|inform|informing|notify|notifying|mention|mentioning|reveal|revealing|disclose|disclosing|alert|alerting) (?:{word} ){0,5}?(?:users?|humans?|operator|anyone|anybody)\b|\b(?:do not|don't|never) mention (?:that|this|these|it)\b|\bhide (?:this|it) from the user\b",
    ),
    (
        "requests a file that contains secrets",
        r"\b(?:read|open|cat|load|fetch|include|send|pass|attach|upload|copy)(?:s|ing)?\b[^!?]{0,100}(?:~/\.ssh|\bid_rsa\b|\bid_ed25519\b|\.aws/credentials|\.cursor/mcp\.json|claude_desktop_config|/etc/shadow|\.netrc\b|\.git-credentials)",
    ),
    (
        "tells the model to do something in secret",
        r"\b(?:secretly|covertly|quietly|silently) (?:read|send|copy|forward|upload|include|collect|append|call|execute|run)\b",
    ),
];

const PRECEDENCE: [Pattern; 4] = [
    (
        "claims precedence over all other tools",
        r"\balways (?:call|use|run|invoke) this (?:tool|function)?(?: ?{word}){0,3} ?\b(?:first|before)\b|\bbefore (?:using|calling|running|invoking) (?:any|all|every|each)\b|\bbefore (?:any|all|every)(?: other)? (?:tools?|functions?|actions?|tool calls?)\b|\b(?:must|has to) (?:always )?be (?:called|used|run|invoked) (?:first|before (?:any|all|every|each))\b|\bhighest priority\b",
    ),
    (
        "discourages the use of other tools",
        r"\binstead of (?:any|all|every|the) other (?:{word} )?(?:tools?|functions?)\b|\b(?:do not|don't|never) (?:call|use|run|invoke) (?:any |the )?other (?:{word} )?(?:tools?|functions?)\b|\bthe (?:other|original|old) (?:{word} )?(?:tool|function)s? (?:is|are) (?:deprecated|broken|unsafe|obsolete)\b",
    ),
    (
        "requests the whole conversation",
        r"\b(?:include|pass|send|attach|provide|put|copy|append|forward)(?:s|ing)?\b[^.!?]{0,60}\b(?:entire|full|complete|whole)(?: {word}){0,2} (?:conversation|chat)\b|\b(?:include|pass|send|attach|provide|put|copy|append|forward|repeat|reveal)\b[^.!?]{0,40}\bsystem prompt\b",
    ),
    (
        "threatens the model",
        r"\botherwise,? (?:the|this) (?:tool|function|server) (?:will|does) not work\b",
    ),
];

type CompiledPatterns = Vec<(&'static str, Regex)>;

/// The bytes of a word in any script, roughly. The patterns are those of bytes: to compile classes of
/// Unicode takes several times the memory. Each begins and ends with ASCII.
const WORD: &str = r"[a-z0-9_'\x80-\xff]+";

fn compiled(patterns: &[Pattern]) -> CompiledPatterns {
    let compile = |(what, pattern): &Pattern| {
        let pattern = pattern.replace("{word}", WORD);
        Some((*what, RegexBuilder::new(&pattern).unicode(false).build().ok()?))
    };
    patterns.iter().filter_map(compile).collect()
}

pub(super) fn to_model(catalog: &LintCatalog<'_>, findings: &mut Findings) {
    static COMPILED: LazyLock<CompiledPatterns> = LazyLock::new(|| compiled(&TO_MODEL));
    let help = "do not offer the tool before you know the author and purpose of this text; a description says what \
                a tool does";
    search(catalog, &COMPILED, &mut |subject, path, message| {
        findings.push(Finding::error(message, help).of(subject).at(path));
    });
}

pub(super) fn precedence(catalog: &LintCatalog<'_>, findings: &mut Findings) {
    static COMPILED: LazyLock<CompiledPatterns> = LazyLock::new(|| compiled(&PRECEDENCE));
    let help = "say when the tool fits and leave the choice to the model; for a tool of another author, \
                find out its purpose";
    search(catalog, &COMPILED, &mut |subject, path, message| {
        findings.push(Finding::warning(message, help).of(subject).at(path));
    });
}

/// The meaning of the first pattern of an attack in a text, and the matching part.
pub(super) fn manipulates(text: &str) -> Option<(&'static str, String)> {
    static COMPILED: LazyLock<CompiledPatterns> =
        LazyLock::new(|| compiled(&[TO_MODEL.as_slice(), &PRECEDENCE].concat()));
    let text = folded(text);
    let found = |(what, pattern): &(&'static str, Regex)| Some((*what, said(pattern, &text)?));
    COMPILED.iter().find_map(found)
}

/// The part of a text that a pattern matches, in quotes.
fn said(pattern: &Regex, text: &str) -> Option<String> {
    let hits = pattern.find_iter(text.as_bytes());
    let hit = hits.map(|hit| hit.range()).find(|hit| !is_false_claim(text, hit))?;
    Some(quoted(text.get(hit).unwrap_or_default()))
}

/// Whether a hit forbids a claim that would be false, and hides nothing: `never tell a user a message was
/// scheduled`.
fn is_false_claim(text: &str, hit: &Range<usize>) -> bool {
    let ends = text.get(hit.clone()).is_some_and(|hit| hit.ends_with(" tell a user"));
    let rest = text.get(hit.end..).unwrap_or_default().trim_start();
    let mut words = rest.strip_prefix("that ").unwrap_or(rest).split(' ').take(5);
    ends && matches!(words.next(), Some("a" | "an")) && words.any(|word| word == "was")
}

fn search(
    catalog: &LintCatalog<'_>,
    patterns: &CompiledPatterns,
    found: &mut dyn FnMut(&Subject<'_>, String, String),
) {
    for tool in catalog.tools() {
        tool.each_text(|path, text| {
            let text = folded(text);
            for (what, pattern) in patterns {
                if let Some(said) = said(pattern, &text) {
                    let message = format!("the `{path}` of {} {what}: {said}", tool.shown());
                    found(tool, path.to_string(), message);
                }
            }
        });
    }
}

/// Shorter names, and plain words, appear in texts by chance.
const TELLING_NAME: usize = 6;

pub(super) fn foreign_tool(catalog: &LintCatalog<'_>, findings: &mut Findings) {
    let mut sources: HashMap<&str, Vec<Option<&str>>> = HashMap::new();
    for tool in catalog.tools().iter().map(Subject::tool) {
        let source = tool.source.as_deref();
        let own = tool.name.rsplit("__").next().unwrap_or(&tool.name);
        for name in [own, &tool.name] {
            if name.len() >= TELLING_NAME && name.contains(['_', '-']) {
                sources.entry(name).or_default().push(source);
            }
        }
    }
    for tool in catalog.tools().iter().filter(|tool| tool.tool().source.is_some()) {
        let own = tool.tool().source.as_deref();
        tool.each_text(|path, text| {
            let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
            let mut words = text.split(|c| !is_part(c));
            let foreign = |word: &&str| {
                path.part() != "name" && sources.get(*word).is_some_and(|of| !of.contains(&own))
            };
            let Some(foreign) = words.find(foreign) else { return };
            let message = format!(
                "the `{path}` of {} mentions {}, a tool of another source",
                tool.shown(),
                name(foreign)
            );
            let help = "read the text: a server that controls the use of other servers' tools is \
                        not to be trusted";
            findings.push(Finding::warning(message, help).of(tool).at(path.to_string()));
        });
    }
}
