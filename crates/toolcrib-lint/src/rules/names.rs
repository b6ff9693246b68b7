//! Names that are duplicate, refused or confusable.

use std::collections::{HashMap, HashSet};

use toolcrib_core::ToolName;

use crate::{
    catalog::{LintCatalog, Subject},
    report::{Finding, Findings},
    text::{count, name_words, plain_letter, quoted, some_of, stem},
};

/// From this length on, a single different character is easily overlooked.
const OVERLOOKED_FROM: usize = 5;

pub(super) fn duplicate(catalog: &LintCatalog<'_>, findings: &mut Findings) {
    let mut first: HashMap<&str, &Subject<'_>> = HashMap::new();
    for tool in catalog.tools() {
        let Some(before) = first.get(&*tool.tool().name) else {
            first.insert(&tool.tool().name, tool);
            continue;
        };
        let places = match (&before.tool().origin, &tool.tool().origin) {
            (Some(first), Some(second)) => format!(": in {first} and again in {second}"),
            _ => format!(": entry {} and entry {}", before.position() + 1, tool.position() + 1),
        };
        let message = format!("{} is the name of two tools{places}", tool.shown());
        findings.push(Finding::error(message, "rename one of them, or remove it").of(tool));
    }
}

pub(super) fn invalid(catalog: &LintCatalog<'_>, findings: &mut Findings) {
    for tool in catalog.tools() {
        let name = tool.tool().name.as_str();
        if ToolName::new(name).is_ok() {
            continue;
        }
        let is_taken = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let problem = match name.chars().find(|c| !is_taken(c)) {
            Some(refused) => format!("it has the character {}", quoted(&refused.to_string())),
            None if name.is_empty() => "it is empty".to_owned(),
            None => format!("it has {}", count(name.len(), "character")),
        };
        let message = format!("{} is not a name that model APIs accept: {problem}", tool.shown());
        let help = "use 1 to 64 of the characters a-z, A-Z, 0-9, `_` and `-`; one bad name makes them \
                    refuse the whole request";
        findings.push(Finding::error(message, help).of(tool));
    }
}

pub(super) fn confusable(catalog: &LintCatalog<'_>, findings: &mut Findings) {
    let mut known = NameIndex::default();
    let reported = case_twins(catalog, findings);
    for tool in catalog.tools() {
        if reported.contains(&tool.position()) {
            continue;
        }
        let words: Vec<String> = name_words(&folded_name(&tool.tool().name));
        if words.is_empty() {
            continue;
        }
        if let Some((other, why)) = known.alike(tool, &words) {
            let message =
                format!("{} is easily mixed up with {}: {why}", tool.shown(), other.shown());
            let help = "give one of them a distinct name, from its action or its object";
            findings.push(Finding::warning(message, help).of(tool));
        }
        known.add(tool, &words);
    }
}

/// Reports names of one source that differ only in case, once for all of them, at the second;
/// returns the indexes of all but the first.
fn case_twins(catalog: &LintCatalog<'_>, findings: &mut Findings) -> HashSet<usize> {
    let mut alike: HashMap<(Option<&str>, String), Vec<&Subject<'_>>> = HashMap::new();
    for subject in catalog.tools() {
        let tool = subject.tool();
        let key = (tool.source.as_deref(), tool.name.to_lowercase());
        alike.entry(key).or_default().push(subject);
    }
    let mut reported = HashSet::new();
    for subject in catalog.tools() {
        let tool = subject.tool();
        let of_name = alike.remove(&(tool.source.as_deref(), tool.name.to_lowercase()));
        let [_, twins @ ..] = of_name.as_deref().unwrap_or_default() else { continue };
        // Another rule reports identical names.
        let mut names: Vec<_> = twins.iter().filter(|twin| twin.tool().name != tool.name).collect();
        names.dedup_by_key(|twin| &twin.tool().name);
        let Some(second) = names.first() else { continue };
        let shown: Vec<_> = names.iter().map(|twin| twin.shown()).collect();
        let message = format!("{} and {} differ only in case", subject.shown(), some_of(&shown));
        let help = "rename all but one of them: a rule that names one does not apply to the others";
        findings.push(Finding::warning(message, help).of(second));
        reported.extend(names.iter().map(|twin| twin.position()));
    }
    reported
}

/// A name with look-alike letters replaced by ASCII.
fn folded_name(name: &str) -> String {
    name.chars().map(plain_letter).collect()
}

/// The earlier names, by their kinds of similarity. Each is found by a key, so that a large catalog
/// is not compared with itself.
#[derive(Default)]
struct NameIndex<'c, 'a> {
    /// By their letters and digits only.
    by_letters: HashMap<String, &'c Subject<'a>>,
    /// By their words without plurals.
    by_stems: HashMap<String, &'c Subject<'a>>,
    /// By their words in alphabetical order.
    by_set: HashMap<String, &'c Subject<'a>>,
    /// By their words, with at most one character removed: two words that are one edit apart have
    /// such a form in common.
    by_edit: HashMap<String, Vec<(&'c Subject<'a>, String)>>,
}

impl<'c, 'a> NameIndex<'c, 'a> {
    fn alike(&self, tool: &Subject<'_>, words: &[String]) -> Option<(&'c Subject<'a>, String)> {
        // Another rule reports duplicate names.
        let other = |found: Option<&&'c Subject<'a>>| {
            found.copied().filter(|found| found.tool().name != tool.tool().name)
        };
        if let Some(same) = other(self.by_letters.get(&words.concat())) {
            let why = "they differ in case, in signs, or in letters that look alike";
            return Some((same, why.to_owned()));
        }
        if let Some(same) = other(self.by_set.get(&sorted(words))) {
            return Some((same, "they are the same words in another order".to_owned()));
        }
        if let Some(same) = other(self.by_stems.get(&stems(words))) {
            return Some((same, "they differ in a plural".to_owned()));
        }
        for (key, word) in forms(words) {
            let near = self.by_edit.get(&key).into_iter().flatten().find(|(subject, known)| {
                subject.tool().name != tool.tool().name
                    && *known != word
                    && strsim::osa_distance(known, &word) == 1
            });
            if let Some((subject, known)) = near {
                return Some((subject, format!("`{word}` and `{known}` differ in one character")));
            }
        }
        None
    }

    fn add(&mut self, tool: &'c Subject<'a>, words: &[String]) {
        self.by_letters.entry(words.concat()).or_insert(tool);
        self.by_set.entry(sorted(words)).or_insert(tool);
        self.by_stems.entry(stems(words)).or_insert(tool);
        // Further names of one form are similar to the same ones.
        const MOST: usize = 8;
        for (key, word) in forms(words) {
            let known = self.by_edit.entry(key).or_default();
            if known.len() < MOST && known.iter().all(|(_, other)| *other != word) {
                known.push((tool, word));
            }
        }
    }
}

fn sorted(words: &[String]) -> String {
    let mut words = words.to_vec();
    words.sort();
    words.join(" ")
}

fn stems(words: &[String]) -> String {
    words.iter().map(|word| stem(word)).collect::<Vec<_>>().join(" ")
}

/// For each long word, all words with that one unchanged and with each of its characters removed;
/// together with the word.
fn forms(words: &[String]) -> Vec<(String, String)> {
    // No API accepts a longer name. Each form has the length of the name.
    const LONGEST: usize = 128;
    let mut forms = Vec::new();
    if words.iter().map(String::len).sum::<usize>() > LONGEST {
        return forms;
    }
    for (at, word) in words.iter().enumerate() {
        let chars: Vec<char> = word.chars().collect();
        if chars.len() < OVERLOOKED_FROM {
            continue;
        }
        let with = |form: String| {
            let parts = words.iter().enumerate();
            let parts = parts.map(|(i, word)| if i == at { form.as_str() } else { word.as_str() });
            (format!("{at} {}", parts.collect::<Vec<_>>().join(" ")), word.clone())
        };
        forms.push(with(word.clone()));
        for left_out in 0..chars.len() {
            let kept = chars.iter().enumerate().filter(|(i, _)| *i != left_out);
            forms.push(with(kept.map(|(_, c)| c).collect()));
        }
    }
    forms
}
