//! The pages of a list, entry by entry: a bad one costs no other.

use std::collections::HashSet;

use serde_json::{Map, Value, value::RawValue};
use toolcrib_config::suggest;
use toolcrib_core::__internal::{MOST_VALUES, PlainJson, has_more_values, json_kind};
use toolcrib_engine::Redactor;

use super::wire::Fields;
use crate::output::ServerFinding;

/// The limit of repeated keys that are named.
const MOST_REPEATED: usize = 5;

const VALIDATES: &str =
    "correct its type, or leave it out; clients that validate the list refuse all of it";

/// An entry of a list.
pub(super) struct Item {
    /// Its own name; `None` for one without.
    pub(super) name: Option<String>,
    /// The name in findings: its own, or its place.
    pub(super) label: String,
    pub(super) fields: Map<String, Value>,
    /// Why it is not an object that can be read.
    flaw: Option<String>,
    /// Keys that occur twice in an object of it.
    repeated: Vec<String>,
}

/// The entries of a list, and the faults of its pages.
pub(super) struct List {
    pub(super) items: Vec<Item>,
    pub(super) findings: Vec<ServerFinding>,
}

impl List {
    /// Whether its pages cannot be followed, which is why a client refuses it.
    pub(super) fn has_flawed_cursor(&self) -> bool {
        self.findings.iter().any(|found| found.is_of("cursor"))
    }
}

/// Reads all pages of a list: `field` of each result. `key` is the field with an entry's name.
pub(super) fn read(pages: &[String], field: &str, key: &str, redactor: &Redactor) -> List {
    let mut list = List { items: Vec::new(), findings: Vec::new() };
    let (mut cursors, mut entries) = (HashSet::new(), HashSet::new());
    for page in pages {
        let fields = serde_json::from_str::<Fields<'_>>(page).unwrap_or_default();
        let next = fields.get("nextCursor").map(|next| next.get());
        if let Some(next) = next.filter(|next| !next.starts_with('"')) {
            let shown: String = next.chars().take(40).collect();
            let message =
                format!("the `nextCursor` of its `{field}` is {shown}, and must be a text");
            let help =
                "leave it out on the last page; some clients refuse the page, others stop here";
            list.findings.push(ServerFinding::error("cursor", message, help));
        }
        // The page after a repeated cursor may be an earlier one again.
        let is_loop = next.is_some_and(|next| !cursors.insert(next.to_owned()));
        let flaw = match next {
            Some("\"\"") => Some("is empty"),
            Some(_) if is_loop => Some("repeats an earlier cursor"),
            _ => None,
        };
        if let Some(flaw) = flaw {
            let message = format!("the `nextCursor` of its `{field}` {flaw}");
            let help =
                "leave it out on the last page; some clients list without end, others refuse";
            list.findings.push(ServerFinding::error("cursor", message, help));
        }
        let all = fields.get(field).map(|all| serde_json::from_str::<Vec<&RawValue>>(all.get()));
        for entry in all.and_then(Result::ok).into_iter().flatten() {
            let is_known = !entries.insert(entry.get().to_owned());
            if !(is_loop && is_known) {
                list.items.push(Item::read(entry.get(), list.items.len() + 1, key, redactor));
            }
        }
    }
    list
}

impl Item {
    fn read(entry: &str, place: usize, key: &str, redactor: &Redactor) -> Self {
        let read = match has_more_values(MOST_VALUES, entry.as_bytes()) {
            true => Err(format!("it contains more than {MOST_VALUES} values")),
            false => {
                PlainJson::read_document(MOST_REPEATED, entry).map_err(|error| error.to_string())
            }
        };
        let (value, repeated, flaw) = match read {
            Ok((value @ Value::Object(_), repeated)) => {
                (redactor.description(value), repeated, None)
            }
            Ok(_) => (Value::Null, Vec::new(), Some("it is not an object".to_owned())),
            Err(problem) => {
                (Value::Null, Vec::new(), Some(format!("it cannot be read: {problem}")))
            }
        };
        let fields = match value {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        let name = fields.get(key).and_then(Value::as_str).map(str::to_owned);
        let label = name.clone().unwrap_or_else(|| format!("entry {place}"));
        Self { name, label, fields, flaw, repeated }
    }

    /// The findings about its form.
    pub(super) fn findings(&self) -> Vec<ServerFinding> {
        let mut findings = Vec::new();
        if let Some(flaw) = &self.flaw {
            let help =
                "list objects with a `name`; clients that validate the list refuse all of it";
            findings.push(ServerFinding::error("definition", flaw.clone(), help));
        } else if self.name.is_none() {
            let message = "it has no name that is a text".to_owned();
            let help = "give each entry a separate name; clients refuse the list otherwise";
            findings.push(ServerFinding::error("definition", message, help));
        }
        if !self.repeated.is_empty() {
            let keys = suggest::quoted(self.repeated.iter().map(String::as_str));
            let message = format!("a key occurs twice in an object of its definition: {keys}");
            let help = "write each key once; clients differ in which one counts";
            findings.push(ServerFinding::warning("repeated-key", message, help));
        }
        findings
    }
}

/// The type of a field.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Text,
    Switch,
    Object,
    List,
}

impl Kind {
    fn is_of(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Switch => value.is_boolean(),
            Self::Object => value.is_object(),
            Self::List => value.is_array(),
        }
    }

    fn with_article(self) -> &'static str {
        match self {
            Self::Text => "a text",
            Self::Switch => "true or false",
            Self::Object => "an object",
            Self::List => "a list",
        }
    }
}

/// The fields of another type than the protocol's. Null is one: a field is left out instead.
pub(super) fn mistyped(fields: &Map<String, Value>, known: &[(&str, Kind)]) -> Vec<ServerFinding> {
    let wrong = known.iter().filter_map(|(name, kind)| {
        let value = fields.get(*name).filter(|value| !kind.is_of(value))?;
        let is = json_kind(value);
        let message = format!("its `{name}` is {is}, and must be {}", kind.with_article());
        Some(ServerFinding::error("definition", message, VALIDATES))
    });
    wrong.collect()
}
