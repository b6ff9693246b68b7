//! Schemas: whether arguments can be validated with them.

use serde_json::{Map, Value};
use toolcrib_core::__internal::{
    DEEPEST_JSON, check_schema, may_describe_elsewhere, nests_too_deep,
};

use crate::{
    catalog::{LintCatalog, Subject},
    report::{Finding, Findings},
    text::{name, some_of},
};

const NAME_PARTS: &str = "give its parts names in `$defs` and refer to them";

pub(super) fn invalid(catalog: &LintCatalog<'_>, findings: &mut Findings) {
    for tool in catalog.tools() {
        let output = tool.tool().output_schema.as_ref();
        if output.is_some_and(nests_too_deep) {
            let message = format!(
                "the output schema of {} nests deeper than {DEEPEST_JSON} levels",
                tool.shown()
            );
            findings.push(Finding::error(message, NAME_PARTS).of(tool).at("output_schema"));
        }
        if let Some((problem, help)) = problem(tool) {
            let message = format!("the schema of {} {problem}", tool.shown());
            findings.push(Finding::error(message, help).of(tool).at("input_schema"));
        }
    }
}

fn problem(tool: &Subject<'_>) -> Option<(String, &'static str)> {
    const ROOT: &str = "begin it with \"type\": \"object\", also without parameters";
    let fixed = |problem: &str, help| Some((problem.to_owned(), help));
    if tool.is_too_deep() {
        let problem = format!("nests deeper than {DEEPEST_JSON} levels");
        return Some((problem, NAME_PARTS));
    }
    let Some(schema) = tool.schema().filter(|schema| !schema.is_null()) else {
        return fixed("is missing", ROOT);
    };
    let Value::Object(object) = schema else {
        return fixed("is not an object", ROOT);
    };
    match object.get("type") {
        None => return fixed("does not say that arguments are an object", ROOT),
        Some(Value::String(kind)) if kind == "object" => {}
        Some(_) => return fixed("does not accept an object", ROOT),
    }
    let error = check_schema(schema).err()?;
    let help = "fix it: a tool with a schema that cannot be enforced is not offered";
    Some((format!("cannot be enforced: {error}"), help))
}

pub(super) fn unknown_required(catalog: &LintCatalog<'_>, findings: &mut Findings) {
    for tool in catalog.tools() {
        let Some(Value::Object(schema)) = tool.schema() else { continue };
        let unknown: Vec<String> = unknown(schema).into_iter().map(name).collect();
        if !unknown.is_empty() {
            let message = format!(
                "{} requires {}, and its schema does not describe {}",
                tool.shown(),
                some_of(&unknown),
                if unknown.len() == 1 { "it" } else { "them" }
            );
            let help = "add it to `properties`, or remove it from `required`";
            findings.push(Finding::error(message, help).of(tool).at("input_schema/required"));
        }
    }
}

/// Required names that are not described, unless they may be described elsewhere.
fn unknown(schema: &Map<String, Value>) -> Vec<&str> {
    if may_describe_elsewhere(schema) {
        return Vec::new();
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    let is_known = |name: &str| properties.is_some_and(|properties| properties.contains_key(name));
    let required = schema.get("required").and_then(Value::as_array);
    let names = required.into_iter().flatten().filter_map(Value::as_str);
    names.filter(|name| !is_known(name)).collect()
}
