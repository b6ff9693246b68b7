//! The definitions of tools as the server sends them, under its own names.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Map, Value};
use toolcrib_config::suggest;
use toolcrib_core::{
    __internal::{check_schema, leave_foreign_patterns, nests_too_deep},
    MissingReason, Reason,
};
use toolcrib_lint::{Finding, LintTool, Linter};
use toolcrib_mcp::__internal::is_permitted_name;

use super::{
    hints,
    pages::{self, Item},
    schemas,
};
use crate::output::ServerFinding;

/// Since this version, results may be other values than objects.
const VERSION_OF_ANY_RESULT: &str = "2026-07-28";

/// The fields of a definition, with the type that each must have if it is present.
const FIELDS: [(&str, pages::Kind); 7] = [
    ("title", pages::Kind::Text),
    ("description", pages::Kind::Text),
    ("outputSchema", pages::Kind::Object),
    ("annotations", pages::Kind::Object),
    ("icons", pages::Kind::List),
    ("execution", pages::Kind::Object),
    ("_meta", pages::Kind::Object),
];

const OF_ANNOTATIONS: [(&str, pages::Kind); 5] = [
    ("title", pages::Kind::Text),
    ("readOnlyHint", pages::Kind::Switch),
    ("destructiveHint", pages::Kind::Switch),
    ("idempotentHint", pages::Kind::Switch),
    ("openWorldHint", pages::Kind::Switch),
];

/// A tool that the client withholds, by the name under which it would offer it.
pub(super) struct Withheld {
    pub(super) name: String,
    pub(super) reason: Reason,
}

/// The judged tools.
pub(super) struct JudgedTools {
    pub(super) findings: Vec<ServerFinding>,
    pub(super) names: BTreeSet<String>,
    pub(super) count: usize,
    pub(super) tokens: usize,
}

/// Judges all tools.
pub(super) fn judge(
    items: &[Item],
    version: Option<&str>,
    linter: &Linter,
    withheld: &[Withheld],
    exposed: impl Fn(&str) -> String,
) -> JudgedTools {
    let mut findings = Vec::new();
    for item in items {
        findings.extend(of_tool(item, version).into_iter().map(|found| found.of(&item.label)));
    }
    let tools: Vec<LintTool> = items.iter().map(lint_tool).collect();
    let report = linter.lint(&tools);
    let linted = report.findings.iter().filter(|found| !is_said_otherwise(found, items));
    let linted: Vec<_> = linted.map(|found| of_lint(found, items)).collect();
    findings.extend(linted);
    let named: HashMap<String, &Item> = items
        .iter()
        .filter(|item| item.name.is_some())
        .map(|item| (exposed(&item.label), item))
        .collect();
    for Withheld { name, reason } in withheld {
        let label = named.get(name).map_or(name.as_str(), |item| &item.label);
        let text = reason.to_string();
        if !is_explained(reason, &text, name, label, &findings) {
            let help = "correct the definition; clients that check it cannot call the tool";
            findings.push(ServerFinding::error("definition", text, help).of(label));
        }
    }
    JudgedTools {
        findings,
        names: items.iter().filter_map(|item| item.name.clone()).collect(),
        count: items.len(),
        tokens: report.totals.tokens,
    }
}

/// A finding of the linter about the tool's own name, or about all tools.
fn of_lint(found: &Finding, items: &[Item]) -> ServerFinding {
    let finding = ServerFinding::of_lint(found);
    match found.position().and_then(|position| items.get(position)) {
        Some(item) => finding.of(&item.label),
        None => finding,
    }
}

/// Whether another finding reports the same fault.
fn is_said_otherwise(found: &Finding, items: &[Item]) -> bool {
    let item = found.position().and_then(|position| items.get(position));
    let Some(item) = item else { return false };
    match found.rule.as_str() {
        // MCP permits more names than model APIs, which `name` reports.
        "invalid-name" => true,
        "confusable-name" | "duplicate-name" => item.name.is_none(),
        "missing-description" => {
            item.fields.get("description").is_some_and(|said| !said.is_string())
        }
        _ => false,
    }
}

/// Whether a finding about the definition says already why the client withholds the tool. `label` is its
/// name in findings.
fn is_explained(
    reason: &Reason,
    text: &str,
    name: &str,
    label: &str,
    findings: &[ServerFinding],
) -> bool {
    let has = |rules: &[&str]| findings.iter().any(|found| found.is_about(label, rules));
    match reason {
        Reason::Definition(MissingReason::SameName, _) => has(&["duplicate-name"]),
        _ if text == "the server gives it no name" => true,
        // An invalid declaration is reported under the name in this client.
        _ if text.contains(&format!("tool `{name}`")) => {
            has(&["definition", "invalid-schema", "output-schema"])
        }
        _ => false,
    }
}

fn lint_tool(item: &Item) -> LintTool {
    let text = |key: &str| item.fields.get(key).and_then(Value::as_str);
    let of_annotations = || item.fields.get("annotations")?.get("title")?.as_str();
    LintTool {
        name: item.label.clone(),
        description: text("description").unwrap_or_default().to_owned(),
        input_schema: item.fields.get("inputSchema").map(readable),
        title: text("title").or_else(of_annotations).map(str::to_owned),
        output_schema: item.fields.get("outputSchema").filter(|schema| schema.is_object()).cloned(),
        ..LintTool::default()
    }
}

/// A schema without the patterns of another dialect, if it can only be read so.
fn readable(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if !nests_too_deep(&schema) && check_schema(&schema).is_err() {
        leave_foreign_patterns(&mut schema);
    }
    schema
}

fn of_tool(item: &Item, version: Option<&str>) -> Vec<ServerFinding> {
    let mut findings = item.findings();
    findings.extend(pages::mistyped(&item.fields, &FIELDS));
    if let Some(Value::Object(annotations)) = item.fields.get("annotations") {
        findings.extend(pages::mistyped(annotations, &OF_ANNOTATIONS));
        findings.extend(hints::judge(&item.label, description(item), annotations));
    }
    findings.extend(item.name.as_deref().and_then(of_name));
    for key in ["inputSchema", "outputSchema"] {
        if let Some(schema @ Value::Object(fields)) = item.fields.get(key)
            && !nests_too_deep(schema)
        {
            findings.extend(of_schema(key, schema, fields, version));
        }
    }
    findings
}

fn description(item: &Item) -> &str {
    item.fields.get("description").and_then(Value::as_str).unwrap_or_default()
}

fn of_name(name: &str) -> Option<ServerFinding> {
    let is_of_models = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if (1..=64).contains(&name.len()) && name.bytes().all(is_of_models) {
        return None;
    }
    let shown = suggest::quoted([name]);
    let help = "use 1 to 64 of the characters a-z, A-Z, 0-9, `_` and `-`";
    Some(match is_permitted_name(name) {
        true => {
            let message = format!("model APIs refuse the name {shown}, so that clients change it");
            ServerFinding::warning("name", message, help)
        }
        false => {
            ServerFinding::error("name", format!("MCP does not permit the name {shown}"), help)
        }
    })
}

fn of_schema(
    key: &str,
    schema: &Value,
    fields: &Map<String, Value>,
    version: Option<&str>,
) -> Vec<ServerFinding> {
    let mut findings = Vec::new();
    let mut left = schema.clone();
    let patterns: BTreeSet<String> = leave_foreign_patterns(&mut left).into_iter().collect();
    for pattern in patterns {
        let message = format!(
            "the pattern {} in its `{key}` is not of the dialect that Toolcrib reads",
            suggest::quoted([pattern.as_str()])
        );
        let help =
            "nothing to correct if it is one of ECMA-262: Toolcrib leaves the check to the server";
        findings.push(ServerFinding::note("foreign-pattern", message, help));
    }
    if key == "outputSchema" {
        let root = fields.get("type");
        let may_be_any = version.is_none_or(|version| version >= VERSION_OF_ANY_RESULT);
        let problem = if !may_be_any && root != Some(&Value::from("object")) {
            let of = root.map_or("no type".to_owned(), |root| format!("the type {root}"));
            Some(format!("its `outputSchema` has {of}, and must have the type \"object\""))
        } else {
            let problem = check_schema(&left).err();
            problem.map(|problem| format!("its `outputSchema` cannot be enforced: {problem}"))
        };
        if let Some(message) = problem {
            let help = "describe `structuredContent`, which is an object before version 2026-07-28, \
                        or leave out the schema";
            findings.push(ServerFinding::error("output-schema", message, help));
            return findings;
        }
    } else if check_schema(&left).is_err() {
        // The linter reports it.
        return findings;
    }
    findings.extend(schemas::judge(&left));
    findings
}
