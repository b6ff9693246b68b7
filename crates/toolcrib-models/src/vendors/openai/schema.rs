//! The tool block, in the dialect that the vendor takes.
//!
//! | refused | sent instead | because |
//! |---|---|---|
//! | `allOf`, `anyOf`, `oneOf`, `enum`, `const`, `not` at the root | properties and required ones as far as the alternatives agree, and the rest as JSON behind the tool's description | the root must be a plain object |
//! | `$ref` at the root | the same | the properties must stand there |
//! | a root without `properties` | an empty one | "object schema missing properties" |
//! | an array without `items`, or with a boolean | `items: {}` | "array schema missing items" |
//! | keywords as drafts before 2020-12 wrote them | the [same](modern()) as 2020-12 writes it | it is no schema in 2020-12 |
//! | `pattern` | the same in words behind the description | it is compiled with Python's `re`, which does not know all that JSON Schema allows (`\p{…}`, `(?<name>…)`); some models refuse lookarounds, and llama.cpp all that is not anchored |
//! | `patternProperties` | the names in words, the schemas in `additionalProperties` | the same |
//! | `not` and `if` in which there is a pattern | the same as JSON behind the description | without the pattern they would say something else |
//!
//! Everything else stays as it is, in its order.

use serde::Serialize;
use serde_json::{Value, json};
use toolcrib_core::{Menu, ToolDefinition};

use crate::vendors::schema::{Keywords, change_each, flatten, in_words, modern};

/// What else than combined schemas may not stand at the root.
const NOT_AT_THE_ROOT: [&str; 3] = ["enum", "const", "not"];

/// As Chat Completions have it.
#[derive(Serialize)]
struct Nested<'a> {
    r#type: &'static str,
    function: Function<'a>,
}

/// As Responses have it. They make a schema strict that does not say that it is not: every property
/// would be required, and optional ones `null`.
#[derive(Serialize)]
struct Flat<'a> {
    r#type: &'static str,
    #[serde(flatten)]
    function: Function<'a>,
    strict: bool,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: String,
    parameters: Value,
}

/// The tool block of Chat Completions, as JSON.
pub(super) fn nested(menu: &Menu) -> String {
    written(menu, |function| Nested { r#type: "function", function })
}

/// The tool block of Responses, as JSON.
pub(super) fn flat(menu: &Menu) -> String {
    written(menu, |function| Flat { r#type: "function", function, strict: false })
}

fn written<'a, T: Serialize>(menu: &'a Menu, form: impl Fn(Function<'a>) -> T) -> String {
    let declared: Vec<_> = menu.tools().iter().map(|tool| form(declare(tool))).collect();
    // Strings and JSON can always be written as JSON; an empty text would be noticed.
    serde_json::to_string(&declared).unwrap_or_default()
}

fn declare(tool: &ToolDefinition) -> Function<'_> {
    let mut parameters = modern(tool.input_schema());
    let taken = flatten(&mut parameters, &NOT_AT_THE_ROOT);
    change_each(&mut parameters, |schema| {
        say_patterns(schema);
        say_items(schema);
    });
    if let Value::Object(root) = &mut parameters {
        root.entry("properties").or_insert_with(|| json!({}));
    }
    Function { name: tool.name(), description: in_words(tool.description(), taken), parameters }
}

fn say_items(schema: &mut Keywords) {
    if is_array(schema) && !schema.get("items").is_some_and(Value::is_object) {
        schema.insert("items".to_owned(), json!({}));
    }
}

fn is_array(schema: &Keywords) -> bool {
    match schema.get("type") {
        Some(Value::String(kind)) => kind == "array",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "array"),
        _ => false,
    }
}

/// Puts what has to do with patterns into words.
fn say_patterns(schema: &mut Keywords) {
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
fn say(schema: &mut Keywords, words: &str) {
    let said = match schema.get("description").and_then(Value::as_str) {
        Some(said) if !said.is_empty() => format!("{said}\n{words}"),
        _ => words.to_owned(),
    };
    schema.insert("description".to_owned(), said.into());
}
