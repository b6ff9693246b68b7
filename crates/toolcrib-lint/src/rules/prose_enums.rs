//! Values that a description lists and the schema does not.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::{
    catalog::LintCatalog,
    parameters::Parameter,
    report::{Finding, Findings},
    text::name,
};

/// A longer list is a vocabulary, not a choice.
const MOST_VALUES: usize = 30;

/// Maximum length of the searched part of a description, in bytes. The search has thousands of
/// states.
const LONGEST_SEARCHED: usize = 4 * 1024;

/// A list of values in prose. Values in quotes, or separated by bars, are a list anywhere; words
/// are one only after an announcement.
static LISTS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let quoted = r#"(?:"[^"\n]{1,40}"|'[^'\n]{1,40}'|`[^`\n]{1,40}`|“[^”\n]{1,40}”)"#;
    let word = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}";
    let either = format!("(?:{quoted}|{word})");
    // The meaning of a value often follows in brackets.
    let between = r"(?:\s*\([^)\n]{0,80}\))?\s*(?:,\s*(?:or|and)\b|,|/|\bor\b|\band\b)\s*";
    let values =
        "(?:allowed|valid|possible|accepted|supported|permitted) (?:values?|options?)(?: are| is)?";
    let announced = format!("(?:one of|{values}|(?:values|options|choices)(?: are|:))");
    Regex::new(&format!(
        r"(?i)\b{announced}:?\s*[\(\[]?\s*(?P<announced>{either}(?:{between}{either})+)|(?P<bars>{either}(?:\s?\|\s?{either})+)|(?P<quoted>{quoted}(?:{between}{quoted})+)"
    ))
    .ok()
});

/// One value of such a list.
static VALUES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"\([^)\n]*\)|"(?P<a>[^"\n]+)"|'(?P<b>[^'\n]+)'|`(?P<c>[^`\n]+)`|“(?P<d>[^”\n]+)”|(?P<e>[A-Za-z0-9][A-Za-z0-9_.-]*)"#).ok()
});

/// Words that mark a list as examples.
static EXAMPLES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)(?:\be\.?\s?g\.?|\bexamples?|\bsuch as|\blike|\bi\.?e\.?|\bsimilar to)[\s:,(]*$",
    )
    .ok()
});

/// The text before a list that is a part of a longer value, or the values in one case only.
static PARTS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\{$|(?i)(?:^|[.;]\s+)(?:if|when)\b[^.;]*$").ok());

pub(super) fn in_prose(catalog: &LintCatalog<'_>, findings: &mut Findings) {
    for tool in catalog.tools() {
        let texts = tool.parameters().iter().filter(|one| one.is_text() && !one.is_enum());
        for parameter in texts {
            let Some(values) = values(parameter) else { continue };
            let message = format!(
                "{} accepts any text as {}, and its description lists the values: {}",
                tool.shown(),
                name(parameter.name()),
                crate::text::some_of(&values)
            );
            let help = format!(
                "put them into the schema, which models and validation follow: \
                 \"enum\": [{}]",
                crate::text::some_of(&values)
            );
            findings.push(Finding::warning(message, help).of(tool).at(parameter.path()));
        }
    }
}

/// The values that its description lists, in quotes.
fn values(parameter: &Parameter<'_>) -> Option<Vec<String>> {
    let description = parameter.description()?;
    let end = description.floor_char_boundary(LONGEST_SEARCHED.min(description.len()));
    let description = description.get(..end)?;
    let (lists, examples, parts) = (LISTS.as_ref()?, EXAMPLES.as_ref()?, PARTS.as_ref()?);
    lists.captures_iter(description).find_map(|list| {
        let found = ["announced", "bars", "quoted"].iter().find_map(|kind| list.name(kind))?;
        let mut before = description.get(..found.start())?;
        if before.matches('`').count() % 2 == 1 {
            let (outside, code) = before.rsplit_once('`')?;
            let is_whole = code.is_empty() && description.get(found.end()..)?.starts_with('`');
            // A command line has bars too.
            if !is_whole {
                return None;
            }
            before = outside;
        }
        if examples.is_match(before) || parts.is_match(before) {
            return None;
        }
        let values = each_value(found.as_str())?;
        (2..=MOST_VALUES).contains(&values.len()).then_some(values)
    })
}

fn each_value(list: &str) -> Option<Vec<String>> {
    let value = |found: Captures<'_>| {
        let quoted = ["a", "b", "c", "d"].iter().find_map(|kind| found.name(kind));
        let word = found.name("e").filter(|word| !matches!(word.as_str(), "or" | "and"));
        Some(quoted.or(word)?.as_str().trim_end_matches('.').to_owned())
    };
    let mut values: Vec<String> = Vec::new();
    for value in VALUES.as_ref()?.captures_iter(list).filter_map(value) {
        let value = format!("{value:?}");
        if !values.contains(&value) {
            values.push(value);
        }
    }
    Some(values)
}
