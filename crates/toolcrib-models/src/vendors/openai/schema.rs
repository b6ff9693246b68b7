//! The tool block, in the dialect that the vendor takes.
//!
//! OpenAI refuses a whole request for one tool whose schema it does not take. What it would refuse is
//! said in other words here, for the model's eyes only: calls are checked against the schema as it
//! was declared.
//!
//! | refused | sent instead | because |
//! |---|---|---|
//! | `allOf`, `anyOf`, `oneOf`, `enum`, `const`, `not` at the root | properties and required ones as far as the alternatives agree, and the rest as JSON behind the tool's description | the root must be a plain object |
//! | `$ref` at the root | the same, as if it were the only one of an `allOf` | the properties must stand there |
//! | a root without `properties` | an empty one | "object schema missing properties" |
//! | an array without `items`, or with a boolean | `items: {}` | "array schema missing items" |
//! | `items` as a list | `prefixItems` | it is no schema in 2020-12 |
//! | `pattern` | the same in words behind the description | it is compiled with Python's `re`, which does not know all that JSON Schema allows (`\p{…}`, `(?<name>…)`); some models refuse lookarounds, and llama.cpp all that is not anchored |
//! | `patternProperties` | the names in words, the schemas in `additionalProperties` | the same |
//! | `not` and `if` in which there is a pattern | the same as JSON behind the description | without the pattern they would say something else |
//!
//! Everything else stays as it is, in its order.

use serde::Serialize;
use serde_json::{Map, Value, json};
use toolcrib_core::{Menu, ToolDefinition};

type Schema = Map<String, Value>;

/// What may not stand at the root.
const NOT_AT_THE_ROOT: [&str; 7] = ["$ref", "allOf", "anyOf", "oneOf", "enum", "const", "not"];

#[derive(Serialize)]
struct Declared<'a> {
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: String,
    parameters: Value,
}

/// The tool block as JSON.
pub(super) fn tools(menu: &Menu) -> String {
    let declared: Vec<_> = menu.tools().iter().map(|tool| declare(tool)).collect();
    // Strings and JSON can always be written as JSON; an empty text would be noticed.
    serde_json::to_string(&declared).unwrap_or_default()
}

fn declare(tool: &ToolDefinition) -> Declared<'_> {
    let mut description = tool.description().to_owned();
    let mut parameters = tool.input_schema().clone();
    if let Value::Object(root) = &mut parameters {
        if let Some(refused) = plain_root(root) {
            description.push_str("\n\nThe arguments must also match this JSON Schema: ");
            description.push_str(&refused.to_string());
        }
        root.entry("properties").or_insert_with(|| json!({}));
    }
    rewrite(&mut parameters);
    Declared {
        r#type: "function",
        function: Function { name: tool.name(), description, parameters },
    }
}

/// Makes the root a plain object, and gives back what it had to lose for that.
fn plain_root(root: &mut Schema) -> Option<Value> {
    let mut refused = Map::new();
    for keyword in NOT_AT_THE_ROOT {
        let Some(value) = root.shift_remove(keyword) else { continue };
        match (keyword, &value) {
            ("$ref", _) => show(root, "allOf", &[json!({ "$ref": value })]),
            ("allOf" | "anyOf" | "oneOf", Value::Array(branches)) => show(root, keyword, branches),
            _ => {}
        }
        refused.insert(keyword.to_owned(), value);
    }
    (!refused.is_empty()).then_some(Value::Object(refused))
}

/// Shows at the root which properties its branches have, and requires what all of them require.
fn show(root: &mut Schema, keyword: &str, branches: &[Value]) {
    let branches = branches.iter().map(|branch| referred(root, branch).unwrap_or_default());
    let branches: Vec<Schema> = branches.collect();
    let all_hold = keyword == "allOf";
    let mut found: Map<String, Value> = Map::new();
    for (name, schema) in
        branches.iter().filter_map(|branch| branch.get("properties")?.as_object()).flatten()
    {
        let schemas = found.entry(name).or_insert_with(|| json!([]));
        if let Value::Array(schemas) = schemas
            && !schemas.contains(schema)
        {
            schemas.push(schema.clone());
        }
    }
    // A closed root takes no property that is not its own.
    let is_closed = root.get("additionalProperties") == Some(&Value::Bool(false));
    if !is_closed
        && let Value::Object(properties) = root.entry("properties").or_insert_with(|| json!({}))
    {
        for (name, schemas) in found {
            let schema = match schemas.as_array().map(Vec::as_slice) {
                Some([schema]) => schema.clone(),
                _ => json!({ if all_hold { "allOf" } else { "anyOf" }: schemas }),
            };
            properties.entry(name).or_insert(schema);
        }
    }
    let required = |branch: &Schema| match branch.get("required") {
        Some(Value::Array(names)) => names.clone(),
        _ => Vec::new(),
    };
    let ways = branches.iter().map(required);
    let names = match all_hold {
        true => ways.flatten().collect(),
        false => ways
            .reduce(|mut common, way| {
                common.retain(|name| way.contains(name));
                common
            })
            .unwrap_or_default(),
    };
    if names.is_empty() {
        return;
    }
    if let Value::Array(required) = root.entry("required").or_insert_with(|| json!([])) {
        for name in names {
            if !required.contains(&name) {
                required.push(name);
            }
        }
    }
}

/// A branch, or what it refers to within the root's definitions.
fn referred(root: &Schema, branch: &Value) -> Option<Schema> {
    let Some(reference) = branch.get("$ref").and_then(Value::as_str) else {
        return branch.as_object().cloned();
    };
    let (definitions, name) = reference.strip_prefix("#/")?.split_once('/')?;
    root.get(definitions)?.get(name)?.as_object().cloned()
}

/// Rewrites a schema and all within it.
fn rewrite(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    say_patterns(map);
    if map.get("items").is_some_and(Value::is_array) {
        let rest = map.shift_remove("additionalItems").unwrap_or_else(|| json!({}));
        let first = map.insert("items".to_owned(), rest).unwrap_or_default();
        map.insert("prefixItems".to_owned(), first);
    }
    if is_array(map) && !map.get("items").is_some_and(Value::is_object) {
        map.insert("items".to_owned(), json!({}));
    }
    for (keyword, value) in map {
        match keyword.as_str() {
            "additionalProperties"
            | "contains"
            | "else"
            | "if"
            | "items"
            | "not"
            | "propertyNames"
            | "then"
            | "unevaluatedItems"
            | "unevaluatedProperties" => rewrite(value),
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => {
                value.as_array_mut().into_iter().flatten().for_each(rewrite);
            }
            "$defs" | "definitions" | "dependencies" | "dependentSchemas" | "properties" => {
                value.as_object_mut().into_iter().flat_map(Map::values_mut).for_each(rewrite);
            }
            // Everything else is data, also where it looks like a schema.
            _ => {}
        }
    }
}

fn is_array(schema: &Schema) -> bool {
    match schema.get("type") {
        Some(Value::String(kind)) => kind == "array",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "array"),
        _ => false,
    }
}

/// Puts what has to do with patterns into words.
fn say_patterns(schema: &mut Schema) {
    for keywords in [&["not"][..], &["if", "then", "else"]] {
        let in_doubt = keywords.first().and_then(|keyword| schema.get(*keyword));
        if in_doubt.is_some_and(has_pattern) {
            let taken = keywords.iter().filter_map(|keyword| schema.shift_remove_entry(*keyword));
            let taken = Value::Object(taken.collect());
            say(schema, &format!("Must match the JSON Schema {taken}"));
        }
    }
    if let Some(Value::String(pattern)) = schema.get("pattern") {
        let words = format!("Must match the regular expression {pattern}");
        schema.shift_remove("pattern");
        say(schema, &words);
    }
    if let Some(Value::Object(by_name)) = schema.get("patternProperties") {
        let names: Vec<&str> = by_name.keys().map(String::as_str).collect();
        let words = format!("Names of properties match {}", names.join(" or "));
        let mut schemas: Vec<Value> = by_name.values().cloned().collect();
        schema.shift_remove("patternProperties");
        if schema.get("additionalProperties") == Some(&Value::Bool(false)) {
            let any =
                if schemas.len() == 1 { schemas.remove(0) } else { json!({ "anyOf": schemas }) };
            schema.insert("additionalProperties".to_owned(), any);
        }
        say(schema, &words);
    }
}

fn has_pattern(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => {
            map.contains_key("pattern")
                || map.contains_key("patternProperties")
                || map.values().any(has_pattern)
        }
        Value::Array(items) => items.iter().any(has_pattern),
        _ => false,
    }
}

/// Adds words to a description.
fn say(schema: &mut Schema, words: &str) {
    let said = match schema.get("description").and_then(Value::as_str) {
        Some(said) if !said.is_empty() => format!("{said}\n{words}"),
        _ => words.to_owned(),
    };
    schema.insert("description".to_owned(), said.into());
}
