//! The facts that the user consents to, as values that can be compared and shown.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use toolcrib_core::Digest;

use super::{rules, schema};
use crate::read::owner::escaped;

/// The actions of a project with its user's authority, and the tables that decide on calls.
///
/// Texts that decide nothing are absent: comments, positions, descriptions, system texts and the
/// instructions of skills.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Facts {
    /// The actions, in words.
    pub(crate) actions: BTreeSet<String>,
    /// The rules of the policy, in order.
    pub(crate) rules: Vec<Json>,
    /// The effect where no rule matches.
    pub(crate) default: String,
    /// The schemas of arguments, by tool.
    pub(crate) schemas: BTreeMap<String, Json>,
    /// Everything else that the files declare, by file.
    pub(crate) tables: BTreeMap<String, Json>,
    /// The files of the project whose bytes decide, such as programs and seeds.
    pub(crate) files: BTreeMap<String, Digest>,
}

/// A line of the difference between a trusted project and the present one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TrustChange {
    /// Whether it is new; else it is gone.
    pub is_new: bool,
    /// The action or the declaration, escaped. An action may have several lines.
    pub text: String,
}

impl Facts {
    /// The changes that need new consent; none if the project can do nothing that it could not do
    /// as these facts describe it.
    pub(super) fn changes_to(&self, now: &Self) -> Vec<TrustChange> {
        // An action that is gone needs no consent; it shows what a new one replaces.
        let mut changes = match now.actions.is_subset(&self.actions) {
            true => Vec::new(),
            false => compared(&by_itself(&self.actions), &by_itself(&now.actions)),
        };
        if self.default != now.default {
            let line = |default: &str| ("policy_default".to_owned(), default.to_owned());
            changes.extend(compared(&[line(&self.default)].into(), &[line(&now.default)].into()));
        }
        if !rules::are_as_strict((&self.rules, &self.default), (&now.rules, &now.default)) {
            changes.extend(changed_rules(&self.rules, &now.rules));
        }
        let tools: BTreeSet<_> = self.schemas.keys().chain(now.schemas.keys()).collect();
        for tool in tools {
            let (before, after) = (self.schemas.get(tool), now.schemas.get(tool));
            let narrows = before
                .zip(after)
                .is_some_and(|(before, after)| schema::permits_no_more(before, after));
            if !narrows {
                let shown = |schema: Option<&Json>| {
                    schema.map(|schema| lines(tool, &schema::without_texts(schema)))
                };
                let (before, after) = (shown(before), shown(after));
                changes.extend(compared(&before.unwrap_or_default(), &after.unwrap_or_default()));
            }
        }
        let of_tables = |facts: &Self| -> BTreeMap<_, _> {
            facts.tables.iter().flat_map(|(file, table)| lines(file, table)).collect()
        };
        changes.extend(compared(&of_tables(self), &of_tables(now)));
        let of_files = |facts: &Self| -> BTreeMap<_, _> {
            let line = |(file, digest): (&String, &Digest)| {
                (format!("file {file}"), format!("contents {digest}"))
            };
            facts.files.iter().map(line).collect()
        };
        changes.extend(compared(&of_files(self), &of_files(now)));
        changes
    }
}

fn by_itself(actions: &BTreeSet<String>) -> BTreeMap<String, String> {
    actions.iter().map(|action| (action.clone(), String::new())).collect()
}

fn change(is_new: bool, name: &str, value: &str) -> TrustChange {
    // Actions are escaped, and have lines.
    let text = match value {
        "" => name.to_owned(),
        value => format!("{} = {}", readable(name), readable(value)),
    };
    TrustChange { is_new, text }
}

/// A JSON text, escaped but for quotes: JSON has escaped what would end them.
fn readable(text: &str) -> String {
    let shown = |c: char| if matches!(c, '"' | '\\') { c.into() } else { escaped(c) };
    text.chars().map(shown).collect()
}

/// The values that are gone or new, by name. A changed value is both.
fn compared(
    before: &BTreeMap<String, String>,
    after: &BTreeMap<String, String>,
) -> Vec<TrustChange> {
    let names: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let differing = names.into_iter().filter(|name| before.get(*name) != after.get(*name));
    let both = differing.flat_map(|name| {
        let gone = before.get(name).map(|value| change(false, name, value));
        let new = after.get(name).map(|value| change(true, name, value));
        gone.into_iter().chain(new)
    });
    both.collect()
}

/// The rules between those that are equal at the start and at the end.
fn changed_rules(before: &[Json], after: &[Json]) -> Vec<TrustChange> {
    let equal = |(one, other): &(&Json, &Json)| rules::is_same(one, other);
    let first = before.iter().zip(after).take_while(equal).count();
    let rest = |rules: &[Json]| rules.get(first..).unwrap_or_default().to_vec();
    let (before, after) = (rest(before), rest(after));
    let last = before.iter().rev().zip(after.iter().rev()).take_while(equal).count();
    let lines = |is_new: bool, rules: &[Json]| -> Vec<_> {
        let changed = rules.iter().enumerate().take(rules.len() - last);
        let line = |(at, rule): (usize, &Json)| {
            change(is_new, &format!("policy rule {}", first + at + 1), &rule.to_string())
        };
        changed.map(line).collect()
    };
    lines(false, &before).into_iter().chain(lines(true, &after)).collect()
}

/// The values of a table, each with its place: the table's name and the path in it.
fn lines(name: &str, value: &Json) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    leaves(value, "", &mut |path, value| {
        let place = if path.is_empty() { name.to_owned() } else { format!("{name}: {path}") };
        found.insert(place, value.to_string());
    });
    found
}

fn leaves(value: &Json, path: &str, found: &mut impl FnMut(&str, &Json)) {
    match value {
        Json::Object(entries) if !entries.is_empty() => {
            for (key, value) in entries {
                let dot = if path.is_empty() { "" } else { "." };
                leaves(value, &format!("{path}{dot}{}", segment(key)), found);
            }
        }
        value => found(path, value),
    }
}

/// A key in a path: two paths that differ have texts that differ.
pub(crate) fn segment(key: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    match !key.is_empty() && key.chars().all(is_plain) {
        true => key.to_owned(),
        false => format!("{key:?}"),
    }
}
