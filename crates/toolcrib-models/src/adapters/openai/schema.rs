//! The tool block, in the vendor's schema dialect.
//!
//! | refused | sent instead | because |
//! |---|---|---|
//! | `allOf`, `anyOf`, `oneOf`, `enum`, `const`, `not` at the root | the properties and required names common to the alternatives, and the rest as JSON after the tool's description | the root must be a plain object |
//! | `$ref` at the root | the same | the properties must be there |
//! | a root without `properties` | an empty one | "object schema missing properties" |
//! | an array without `items`, or with a boolean | `items: {}` | "array schema missing items" |
//! | keywords of drafts before 2020-12 | the [same](modern()) in 2020-12 | they are not valid in 2020-12 |
//! | `pattern` | the same in words after the description | it is compiled with Python's `re`, which does not support all of JSON Schema's syntax (`\p{…}`, `(?<name>…)`); some models refuse lookarounds, and llama.cpp refuses patterns without anchors |
//! | `patternProperties` | the names in words, the schemas in `additionalProperties` | the same |
//! | `not` and `if` that contain a pattern | the same as JSON after the description | without the pattern they would have another meaning |
//!
//! Everything else is unchanged, in its order.

use serde::Serialize;
use serde_json::{Value, json};
use toolcrib_core::{SEARCH_TOOLS, ToolDefinition};

use crate::adapters::{
    protocol::Offer,
    schema::{Keywords, change_each, flatten, in_words, modern},
    sent_parts::SentForm,
};

/// Further keywords that are not allowed at the root, beside combined schemas.
const NOT_AT_THE_ROOT: [&str; 3] = ["enum", "const", "not"];

/// The form of Chat Completions.
#[derive(Serialize)]
struct ChatTool<'a> {
    r#type: &'static str,
    function: Function<'a>,
}

/// The form of Responses. That API makes a schema strict unless it says otherwise: every property
/// would be required, and optional ones `null`.
#[derive(Serialize)]
struct ResponsesFunction<'a> {
    r#type: &'static str,
    #[serde(flatten)]
    function: Function<'a>,
    strict: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    defer_loading: bool,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: String,
    parameters: Value,
}

/// The tool search of Responses, which the client executes.
#[derive(Serialize)]
struct Search<'a> {
    r#type: &'static str,
    execution: &'static str,
    description: &'a str,
    parameters: &'a Value,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ResponsesTool<'a> {
    Function(ResponsesFunction<'a>),
    Search(Search<'a>),
}

/// The tool block of Chat Completions, as JSON.
pub(super) fn nested(offer: Offer<'_>, first: &SentForm) -> String {
    written(offer, first, |tool| ChatTool { r#type: "function", function: declare(tool) })
}

/// The tool block of Responses, as JSON.
pub(super) fn flat(offer: Offer<'_>, first: &SentForm) -> String {
    written(offer, first, |tool| match offer.loads() && *tool.name() == *SEARCH_TOOLS {
        true => ResponsesTool::Search(Search {
            r#type: "tool_search",
            execution: "client",
            description: tool.description(),
            parameters: tool.input_schema(),
        }),
        false => ResponsesTool::Function(ResponsesFunction::of(tool, false)),
    })
}

/// A found tool, as Responses load it.
pub(super) fn loadable(tool: &ToolDefinition) -> impl Serialize {
    ResponsesFunction::of(tool, true)
}

impl<'a> ResponsesFunction<'a> {
    fn of(tool: &'a ToolDefinition, defer_loading: bool) -> Self {
        Self { r#type: "function", function: declare(tool), strict: false, defer_loading }
    }
}

fn written<'a, T: Serialize>(
    offer: Offer<'a>,
    first: &SentForm,
    form: impl Fn(&'a ToolDefinition) -> T,
) -> String {
    let words = if offer.loads() { &["loads"][..] } else { &[] };
    let declared: Vec<_> = offer
        .declared()
        .filter_map(|tool| first.of_tool(tool.digest(), words, || form(tool)))
        .collect();
    // Strings and JSON can always be serialized; an empty text would be noticed.
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

/// Moves keywords with patterns into the description.
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

/// Appends words to a description.
fn say(schema: &mut Keywords, words: &str) {
    let said = match schema.get("description").and_then(Value::as_str) {
        Some(said) if !said.is_empty() => format!("{said}\n{words}"),
        _ => words.to_owned(),
    };
    schema.insert("description".to_owned(), said.into());
}
