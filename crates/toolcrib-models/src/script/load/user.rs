//! Reads a rule's conditions on the last user text.

use std::sync::Arc;

use regex::Regex;
use toolcrib_config::{Diagnostic, Table, suggest};

use super::{super::template::VARIABLES, regex};

/// The conditions on the last user text.
pub(super) struct User {
    pub(super) patterns: Vec<Regex>,
    pub(super) differ: Vec<Arc<str>>,
    /// The named groups of all patterns; `None` when a pattern is invalid, because its names are
    /// unknown.
    pub(super) captures: Option<Vec<String>>,
}

pub(super) fn read(table: &Table<'_>) -> User {
    let problems = table.problems();
    let (is_written, sources) = (table.value("user").is_some(), table.texts("user"));
    let mut patterns = Vec::new();
    let mut captures: Vec<String> = Vec::new();
    for source in &sources {
        let Some(pattern) = regex("user", source, problems) else { continue };
        for name in pattern.capture_names().flatten() {
            let message = if VARIABLES.contains(&name) {
                format!("the capture `{name}` hides the variable `{name}`")
            } else if captures.iter().any(|earlier| earlier == name) {
                format!("the capture `{name}` is in two patterns")
            } else {
                captures.push(name.to_owned());
                continue;
            };
            let help = "give the capture another name";
            problems.push(Diagnostic::error(&source.at, message).help(help));
        }
        patterns.push(pattern);
    }
    let is_whole = !is_written || (!sources.is_empty() && patterns.len() == sources.len());
    let captures = is_whole.then_some(captures);
    User { differ: differ(table, captures.as_deref()), patterns, captures }
}

/// Names of groups, two or more.
fn differ(table: &Table<'_>, captures: Option<&[String]>) -> Vec<Arc<str>> {
    let names = table.texts("differ");
    if let [only] = names.as_slice() {
        let help = "name two groups or more, which then must not all contain the same text";
        table.refuse_at(&only.at, "`differ` names one group only", help);
    }
    let known = || captures.unwrap_or_default().iter().map(String::as_str);
    let is_known = |name: &str| captures.is_none() || known().any(|known| known == name);
    for name in names.iter().filter(|name| !is_known(&name.value)) {
        let word = suggest::quoted([&*name.value]);
        let message = format!("`differ` names {word}, which is not a group of `user`");
        table.refuse_at(&name.at, message, suggest::help(&name.value, "groups of `user`", known()));
    }
    names.into_iter().map(|name| name.value).collect()
}
