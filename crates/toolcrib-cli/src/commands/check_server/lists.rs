//! The lists beside tools: prompts, resources and templates.

use std::collections::HashSet;

use serde_json::{Map, Value};
use toolcrib_lint::{Finding, LintTool, Linter};

use super::pages::{self, Item, Kind};
use crate::output::ServerFinding;

/// A kind of list: the word for one entry, the method, the field of the result, and the key that no two
/// entries share.
pub(super) struct OtherList {
    pub(super) kind: &'static str,
    pub(super) method: &'static str,
    pub(super) field: &'static str,
    key: &'static str,
}

pub(super) const PROMPTS: OtherList =
    OtherList { kind: "prompt", method: "prompts/list", field: "prompts", key: "name" };
pub(super) const RESOURCES: OtherList =
    OtherList { kind: "resource", method: "resources/list", field: "resources", key: "uri" };
pub(super) const TEMPLATES: OtherList = OtherList {
    kind: "template",
    method: "resources/templates/list",
    field: "resourceTemplates",
    key: "uriTemplate",
};

/// The fields of an entry, with the type that each must have if it is present.
const FIELDS: [(&str, Kind); 6] = [
    ("title", Kind::Text),
    ("description", Kind::Text),
    ("arguments", Kind::List),
    ("mimeType", Kind::Text),
    ("annotations", Kind::Object),
    ("_meta", Kind::Object),
];

/// The fields that the linter has a place for, and those that no model reads.
const TEXTS_OF_TOOLS: [&str; 4] = ["name", "title", "description", "icons"];

/// Judges the entries of a list.
pub(super) fn judge(list: &OtherList, items: &[Item], attacks: &Linter) -> Vec<ServerFinding> {
    let (mut findings, mut known) = (Vec::new(), HashSet::new());
    for item in items {
        let named = format!("{} {}", list.kind, item.label);
        let mut of_item = item.findings();
        of_item.extend(pages::mistyped(&item.fields, &FIELDS));
        if item.name.is_some() {
            of_item.extend(of_key(list, &item.fields, &mut known));
        }
        if let Some(Value::Array(arguments)) = item.fields.get("arguments") {
            of_item.extend(of_arguments(arguments));
        }
        of_item.extend(of_texts(&texts(item), attacks));
        findings.extend(of_item.into_iter().map(|found| found.of(&named)));
    }
    findings
}

/// The findings about the key of an entry.
fn of_key<'a>(
    list: &OtherList,
    fields: &'a Map<String, Value>,
    known: &mut HashSet<&'a str>,
) -> Option<ServerFinding> {
    let OtherList { kind, key, .. } = list;
    let Some(value) = fields.get(*key).and_then(Value::as_str) else {
        let help = "clients that validate the list refuse all of it";
        let message = format!("it has no `{key}` that is a text");
        return Some(ServerFinding::error("definition", message, help));
    };
    if !known.insert(value) {
        let message = format!("another {kind} has the same `{key}`");
        let help = "rename one of them, or remove it: a client reaches only one of them";
        return Some(ServerFinding::error("duplicate-name", message, help));
    }
    let is_uri = || {
        let scheme = value.split_once(':').map(|(scheme, _)| scheme).unwrap_or_default();
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    };
    // A variable of a template may be the scheme.
    if *key != "name" && !value.starts_with('{') && !is_uri() {
        let message = format!("its `{key}` is not a URI");
        let help = "begin it with a scheme: `file:///…`, or one of your own such as `orders://…`";
        return Some(ServerFinding::error("definition", message, help));
    }
    None
}

fn of_arguments(arguments: &[Value]) -> Vec<ServerFinding> {
    let names = arguments.iter().map(|argument| argument.get("name").and_then(Value::as_str));
    let (mut known, mut findings) = (HashSet::new(), Vec::new());
    for name in names {
        let message = match name {
            None => "an argument of it has no name".to_owned(),
            Some(name) if !known.insert(name) => "two arguments of it have one name".to_owned(),
            Some(_) => continue,
        };
        let help = "give each argument another name";
        findings.push(ServerFinding::error("definition", message, help));
        break;
    }
    findings
}

/// The texts of an entry, in the form that the linter reads.
fn texts(item: &Item) -> LintTool {
    let text = |key: &str| item.fields.get(key).and_then(Value::as_str);
    let others = item.fields.iter().filter(|(key, _)| !TEXTS_OF_TOOLS.contains(&key.as_str()));
    let others: Map<_, _> = others.map(|(key, value)| (key.clone(), value.clone())).collect();
    LintTool {
        name: text("name").unwrap_or_default().to_owned(),
        title: text("title").map(str::to_owned),
        description: text("description").unwrap_or_default().to_owned(),
        // All other texts: arguments, the URI, annotations.
        input_schema: Some(Value::Object(others)),
        ..LintTool::default()
    }
}

/// The findings about the server's instructions.
pub(super) fn of_instructions(instructions: String, attacks: &Linter) -> Vec<ServerFinding> {
    let text = LintTool { description: instructions, ..LintTool::default() };
    let findings = of_texts(&text, attacks).into_iter();
    findings.map(|found| found.of("instructions")).collect()
}

/// The attacks in texts.
fn of_texts(text: &LintTool, attacks: &Linter) -> Vec<ServerFinding> {
    let found = |mut finding: Finding| {
        // The linter knows only tools.
        finding.message = finding.message.replace("`input_schema/", "`");
        ServerFinding::of_lint(&finding)
    };
    attacks.lint(std::slice::from_ref(text)).findings.into_iter().map(found).collect()
}
