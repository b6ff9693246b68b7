//! Annotations that contradict each other, or the tool's own texts.

use serde_json::{Map, Value};

use crate::output::ServerFinding;

/// Verbs of tools that destroy data.
const DESTROYS: [&str; 8] =
    ["delete", "destroy", "drop", "erase", "overwrite", "purge", "truncate", "wipe"];

/// Further verbs of tools that change data.
const CHANGES: [&str; 9] =
    ["insert", "modify", "remove", "rename", "revoke", "terminate", "uninstall", "update", "write"];

/// Verbs of tools that read: the rest of such a name says what they read about.
const READS: [&str; 16] = [
    "audit", "check", "count", "describe", "export", "fetch", "find", "get", "has", "is", "list",
    "preview", "read", "search", "show", "view",
];

/// The findings about the hints of a tool.
pub(super) fn judge(
    name: &str,
    description: &str,
    annotations: &Map<String, Value>,
) -> Option<ServerFinding> {
    let hint = |name: &str| annotations.get(name).and_then(Value::as_bool);
    let (read_only, destructive) = (hint("readOnlyHint"), hint("destructiveHint"));
    if read_only == Some(true) && destructive == Some(true) {
        return Some(ServerFinding::error(
            "contradictory-hints",
            "its `readOnlyHint` and its `destructiveHint` are both true".to_owned(),
            "set `readOnlyHint` to false if it changes anything; clients run read-only tools without \
             approval",
        ));
    }
    let verb = |verbs: &[&'static str]| {
        of_name(name, verbs).or_else(|| of_description(description, verbs))
    };
    let (hint, verb) = match (read_only, destructive) {
        (Some(true), _) => ("`readOnlyHint` is true", verb(&DESTROYS).or_else(|| verb(&CHANGES))?),
        (_, Some(false)) => ("`destructiveHint` is false", verb(&DESTROYS)?),
        _ => return None,
    };
    Some(ServerFinding::warning(
        "misleading-hint",
        format!("its {hint}, and by its name or description it does \"{verb}\""),
        "correct the hint, or the text; clients decide by the hint whether a person must approve",
    ))
}

/// The verb of a name: its first word, or a word after an object or a prefix.
fn of_name(name: &str, verbs: &[&'static str]) -> Option<&'static str> {
    let mut words: Vec<String> = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || c.is_uppercase() && was_lower {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase();
    }
    let is_reading = words.iter().any(|word| READS.contains(&word.as_str()));
    let found = words.iter().find_map(|word| verbs.iter().find(|verb| **verb == word));
    found.copied().filter(|_| !is_reading)
}

/// The verb that begins a sentence of a description.
fn of_description(description: &str, verbs: &[&'static str]) -> Option<&'static str> {
    let first_words = description.split(['.', '!', '?', ';', '\n']).filter_map(|sentence| {
        let words = sentence.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        words.map(str::to_lowercase).find(|word| !word.ends_with("ly"))
    });
    let mut found = first_words.filter_map(|word| {
        let is_it = |verb: &&&str| word == **verb || word.strip_suffix('s') == Some(**verb);
        verbs.iter().find(is_it).copied()
    });
    found.next()
}
