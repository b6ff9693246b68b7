//! The tool block, in the dialect that the vendor takes.
//!
//! The vendor refuses a whole request for one tool whose schema it does not take. What it would
//! refuse is said in other words here, for the model's eyes only: calls are checked against the
//! schema as it was declared.
//!
//! | refused | sent instead |
//! |---|---|
//! | `oneOf`, `anyOf`, `allOf` beside the root's properties | properties and required ones as far as the alternatives agree, and the rest in words after the description |
//! | names of arguments other than 1 to 64 of `a-z A-Z 0-9 _ . -` | the argument in words after the description |
//! | keywords as drafts before 2020-12 wrote them: `items` as a list, `exclusiveMinimum` as a flag, `required` as a flag | the same as 2020-12 writes it; a flag without an equal is dropped |

use indexmap::IndexMap;
use serde::Serialize;
use serde_json::{Map, Value, json};
use toolcrib_core::{Menu, ToolDefinition};

use super::Breakpoint;

/// What the root of a schema may not have.
const COMBINING: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// The longest name of an argument.
const MAX_ARGUMENT_NAME: usize = 64;

#[derive(Serialize)]
struct Declared<'a> {
    name: &'a str,
    description: String,
    input_schema: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Breakpoint>,
}

/// The tool block as JSON. Its end is a cache breakpoint.
pub(super) fn tools(menu: &Menu) -> String {
    let mut declared: Vec<_> = menu.tools().iter().map(|tool| declare(tool)).collect();
    if let Some(last) = declared.last_mut() {
        last.cache_control = Some(Breakpoint::Ephemeral);
    }
    // Strings and JSON can always be written as JSON; what is empty would be noticed.
    serde_json::to_string(&declared).unwrap_or_default()
}

fn declare(tool: &ToolDefinition) -> Declared<'_> {
    let mut input_schema = tool.input_schema().clone();
    modernise(&mut input_schema);
    let mut description = tool.description().to_owned();
    if let Value::Object(root) = &mut input_schema
        && let Some(words) = take_refused(root)
    {
        description.push_str("\n\nThe arguments must also match this JSON Schema: ");
        description.push_str(&words);
    }
    Declared { name: tool.name(), description, input_schema, cache_control: None }
}

/// Brings a schema and all within it into the form of draft 2020-12, where older drafts wrote the
/// same otherwise.
fn modernise(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    if map.get("items").is_some_and(Value::is_array) {
        rename(map, "items", "prefixItems");
        rename(map, "additionalItems", "items");
    }
    exclude(map, "minimum", "exclusiveMinimum");
    exclude(map, "maximum", "exclusiveMaximum");
    if map.get("required").is_some_and(Value::is_boolean) {
        map.shift_remove("required");
    }
    for (keyword, value) in map {
        match keyword.as_str() {
            "additionalProperties"
            | "contains"
            | "contentSchema"
            | "else"
            | "if"
            | "items"
            | "not"
            | "propertyNames"
            | "then"
            | "unevaluatedItems"
            | "unevaluatedProperties" => {
                modernise(value);
            }
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => {
                value.as_array_mut().into_iter().flatten().for_each(modernise);
            }
            "$defs" | "definitions" | "dependencies" | "dependentSchemas" | "patternProperties"
            | "properties" => {
                let schemas = value.as_object_mut().into_iter().flat_map(Map::values_mut);
                schemas.for_each(modernise);
            }
            // Everything else is data, also where it looks like a schema.
            _ => {}
        }
    }
}

/// Gives a keyword another name, at its place.
fn rename(map: &mut Map<String, Value>, from: &str, to: &str) {
    let renamed = |key: String| if key == from { to.to_owned() } else { key };
    *map = std::mem::take(map).into_iter().map(|(key, value)| (renamed(key), value)).collect();
}

/// A limit that a flag makes exclusive is an exclusive limit.
fn exclude(map: &mut Map<String, Value>, limit: &str, exclusive: &str) {
    let Some(flag) = map.get(exclusive).and_then(Value::as_bool) else { return };
    map.shift_remove(exclusive);
    if flag {
        rename(map, limit, exclusive);
    }
}

/// Takes away what the root may not have, and returns it as JSON for the description.
fn take_refused(root: &mut Map<String, Value>) -> Option<String> {
    let mut refused = Map::new();
    for keyword in COMBINING {
        if let Some(branches) = root.shift_remove(keyword) {
            let list = branches.as_array().map(Vec::as_slice).unwrap_or_default();
            show_branches(root, keyword, list);
            refused.insert(keyword.to_owned(), branches);
        }
    }
    take_badly_named(root, &mut refused);
    (!refused.is_empty()).then(|| Value::Object(refused).to_string())
}

/// Shows in the root's properties what the branches have, and requires what each way requires.
fn show_branches(root: &mut Map<String, Value>, keyword: &str, branches: &[Value]) {
    let mut found: IndexMap<&String, Vec<&Value>> = IndexMap::new();
    for (name, schema) in
        branches.iter().filter_map(|branch| branch.get("properties")?.as_object()).flatten()
    {
        let schemas = found.entry(name).or_default();
        if !schemas.contains(&schema) {
            schemas.push(schema);
        }
    }
    // A root that is closed takes no property that is not its own.
    let is_closed = root.get("additionalProperties") == Some(&Value::Bool(false));
    if !is_closed && !found.is_empty() {
        let together = if keyword == "allOf" { "allOf" } else { "anyOf" };
        let properties = root.entry("properties").or_insert_with(|| json!({}));
        for (name, schemas) in found {
            if let Value::Object(properties) = properties {
                properties.entry(name.clone()).or_insert_with(|| match *schemas {
                    [schema] => schema.clone(),
                    _ => json!({ together: schemas }),
                });
            }
        }
    }
    let required = |branch: &Value| required_of(branch).map(str::to_owned).collect::<Vec<_>>();
    let mut ways = branches.iter().map(required);
    let all = match keyword {
        "allOf" => ways.flatten().collect(),
        _ => {
            let first = ways.next().unwrap_or_default();
            ways.fold(first, |common, way| {
                common.into_iter().filter(|name| way.contains(name)).collect()
            })
        }
    };
    require(root, all);
}

fn required_of(schema: &Value) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn require(root: &mut Map<String, Value>, names: Vec<String>) {
    if names.is_empty() {
        return;
    }
    if let Value::Array(required) = root.entry("required").or_insert_with(|| json!([])) {
        for name in names.into_iter().map(Value::String) {
            if !required.contains(&name) {
                required.push(name);
            }
        }
    }
}

/// Takes away the arguments whose names the vendor refuses.
fn take_badly_named(root: &mut Map<String, Value>, refused: &mut Map<String, Value>) {
    let Some(Value::Object(properties)) = root.get_mut("properties") else { return };
    let (kept, taken): (Map<_, _>, Map<_, _>) =
        std::mem::take(properties).into_iter().partition(|(name, _)| is_taken_name(name));
    *properties = kept;
    if taken.is_empty() {
        return;
    }
    // Closed, it would say that there are no such arguments.
    if root.get("additionalProperties") == Some(&Value::Bool(false)) {
        root.shift_remove("additionalProperties");
    }
    if let Some(Value::Array(required)) = root.get_mut("required") {
        let is_taken =
            |name: &mut Value| name.as_str().is_some_and(|name| taken.contains_key(name));
        let moved: Vec<Value> = required.extract_if(.., is_taken).collect();
        if !moved.is_empty() {
            refused.insert("required".to_owned(), moved.into());
        }
    }
    refused.insert("properties".to_owned(), taken.into());
}

fn is_taken_name(name: &str) -> bool {
    let is_taken = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    (1..=MAX_ARGUMENT_NAME).contains(&name.len()) && name.bytes().all(is_taken)
}
