//! The same schemas for every vendor: in each dialect the model sees the arguments, and nothing is
//! sent that would be refused.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolcrib_core::{Message, Tool};
use toolcrib_models::{OpenAiApi, Vendor, VendorModel};

use crate::support::{Reply, Server, ask, request, tool};

/// The schemas that an API accepts.
struct Dialect {
    vendor: Vendor,
    api: Option<OpenAiApi>,
    /// The path of its tools in a body, and of the schema in each.
    tools: &'static str,
    schema: &'static str,
    /// The keywords that are refused at a root, or not passed on.
    not_at_the_root: &'static [&'static str],
    /// The keywords that are refused anywhere.
    nowhere: &'static [&'static str],
}

const COMBINING: &[&str] = &["$ref", "allOf", "anyOf", "oneOf"];
const NOT_PLAIN: &[&str] = &["$ref", "$defs", "definitions", "allOf", "oneOf", "const", "not"];

const DIALECTS: [Dialect; 5] = [
    Dialect {
        vendor: Vendor::OpenAi,
        api: Some(OpenAiApi::ChatCompletions),
        tools: "/tools",
        schema: "/function/parameters",
        not_at_the_root: COMBINING,
        nowhere: &["pattern"],
    },
    Dialect {
        vendor: Vendor::OpenAi,
        api: Some(OpenAiApi::Responses),
        tools: "/tools",
        schema: "/parameters",
        not_at_the_root: COMBINING,
        nowhere: &["pattern"],
    },
    Dialect {
        vendor: Vendor::Anthropic,
        api: None,
        tools: "/tools",
        schema: "/input_schema",
        not_at_the_root: COMBINING,
        nowhere: &[],
    },
    Dialect {
        vendor: Vendor::Gemini,
        api: None,
        tools: "/tools/0/functionDeclarations",
        schema: "/parametersJsonSchema",
        not_at_the_root: &[],
        nowhere: NOT_PLAIN,
    },
    Dialect {
        vendor: Vendor::Ollama,
        api: None,
        tools: "/tools",
        schema: "/function/parameters",
        not_at_the_root: COMBINING,
        nowhere: NOT_PLAIN,
    },
];

impl Dialect {
    /// The tools as they are sent.
    async fn sent(&self, tools: Vec<Tool>) -> Vec<Value> {
        let server = Server::start([Reply::json(400, "{}")]).await;
        let path = if self.vendor == Vendor::OpenAi { "/v1" } else { "" };
        let mut builder =
            VendorModel::builder(self.vendor, "a-model").base_url(server.url.clone() + path);
        if let Some(api) = self.api {
            builder = builder.api(api);
        }
        let asked = request(vec![Message::user("Go.")], tools);
        ask(&Arc::new(builder.build().unwrap()), asked).await.outcome.unwrap_err();
        server.last().json().pointer(self.tools).unwrap().as_array().unwrap().clone()
    }
}

/// A schema, the arguments that a model must see in it, the required ones, and some valid
/// arguments.
struct Case {
    declared: Value,
    shown: &'static [&'static str],
    required: &'static [&'static str],
    taken: Value,
}

fn cases() -> Vec<Case> {
    let card = json!({ "type": "object", "properties": {
        "kind": { "const": "card" }, "number": { "type": "string", "pattern": "^[0-9]+$" },
    }, "required": ["kind", "number"] });
    let iban = json!({ "type": "object", "properties": {
        "kind": { "const": "iban" }, "iban": { "type": "string" },
    }, "required": ["kind", "iban"] });
    let payments = json!([
        { "kind": "card", "number": "4242" },
        { "kind": "iban", "iban": "AT02" },
    ]);
    vec![
        Case {
            declared: json!({ "properties": { "b": { "type": "integer" }, "a": {} }, "required": ["b"] }),
            shown: &["b", "a"],
            required: &["b"],
            taken: json!([{ "b": 1, "a": [] }]),
        },
        // An enum of structs, as schemars and pydantic write it.
        Case {
            declared: json!({ "oneOf": [{ "$ref": "#/$defs/Card" }, { "$ref": "#/$defs/Iban" }],
                "$defs": { "Card": card, "Iban": iban } }),
            shown: &["kind", "number", "iban"],
            required: &["kind"],
            taken: payments.clone(),
        },
        // The same, tagged from outside.
        Case {
            declared: json!({ "oneOf": [
                { "$ref": "#/definitions/a~1b", "properties": { "kind": { "const": "card" } },
                  "required": ["kind"] },
                { "$ref": "#/definitions/iban", "properties": { "kind": { "const": "iban" } },
                  "required": ["kind"] },
            ], "definitions": {
                "a/b": { "properties": { "number": { "type": "string" } }, "required": ["number"] },
                "iban": { "properties": { "iban": { "type": "string" } }, "required": ["iban"] },
            } }),
            shown: &["kind", "number", "iban"],
            required: &["kind"],
            taken: payments.clone(),
        },
        // A schema with a name, as zod writes it, and one that is called otherwise once more.
        Case {
            declared: json!({ "$ref": "#/definitions/Pay",
                "definitions": { "Pay": { "$ref": "#/definitions/Card" }, "Card": card } }),
            shown: &["kind", "number"],
            required: &["kind", "number"],
            taken: json!([payments[0]]),
        },
        // Inheritance, also in alternatives.
        Case {
            declared: json!({ "properties": { "own": {} }, "required": ["own"],
                "allOf": [{ "$ref": "#/$defs/Base" }, { "properties": { "own": { "type": "integer" } } }],
                "$defs": { "Base": { "properties": { "id": { "type": "integer" } }, "required": ["id"] } } }),
            shown: &["own", "id"],
            required: &["own", "id"],
            taken: json!([{ "own": 1, "id": 2 }]),
        },
        Case {
            declared: json!({ "anyOf": [
                { "allOf": [{ "$ref": "#/$defs/Base" }, { "properties": { "a": {} }, "required": ["a"] }] },
                { "anyOf": [{ "$ref": "#/$defs/Base" }, { "$ref": "#/$defs/Other" }] },
            ], "$defs": {
                "Base": { "properties": { "id": { "type": "integer" } }, "required": ["id"] },
                "Other": { "$ref": "#/$defs/Base", "properties": { "b": {} } },
            } }),
            shown: &["id", "a", "b"],
            required: &["id"],
            taken: json!([{ "id": 1, "a": 2 }, { "id": 1, "b": 2 }]),
        },
        // Cycles.
        Case {
            declared: json!({ "$ref": "#/$defs/Node", "$defs": { "Node": {
                "properties": { "name": {}, "parts": { "type": "array", "items": { "$ref": "#/$defs/Node" } } },
                "required": ["name"] } } }),
            shown: &["name", "parts"],
            required: &["name"],
            taken: json!([{ "name": "a", "parts": [{ "name": "b", "parts": [] }] }]),
        },
        Case {
            declared: json!({ "properties": { "own": {} },
                "anyOf": [{ "$ref": "#" }, { "$ref": "#/$defs/A" }],
                "$defs": { "A": { "anyOf": [{ "$ref": "#/$defs/A" }, { "properties": { "a": {} }, "required": ["a"] }] } } }),
            shown: &["own", "a"],
            required: &[],
            taken: json!([{ "own": 1 }, { "a": 1 }]),
        },
        // Closed, with alternatives of what must be there.
        Case {
            declared: json!({ "properties": { "id": {}, "name": {} }, "additionalProperties": false,
                "oneOf": [{ "required": ["id"] }, { "required": ["name"] }] }),
            shown: &["id", "name"],
            required: &[],
            taken: json!([{ "id": 1 }, { "name": 1 }]),
        },
        // An older draft.
        Case {
            declared: json!({ "properties": { "pair": {
                "type": "array", "items": [{ "type": "string" }, { "type": "integer" }],
                "additionalItems": { "type": "number", "minimum": 0, "exclusiveMinimum": true },
            } } }),
            shown: &["pair"],
            required: &[],
            taken: json!([{ "pair": ["a", 1, 0.5] }]),
        },
    ]
}

#[tokio::test]
async fn every_vendor_shows_the_arguments_of_every_schema() {
    let cases = cases();
    for dialect in &DIALECTS {
        let tools = cases.iter().enumerate();
        let tools =
            tools.map(|(n, case)| tool(&format!("t{n}"), "Does it.", case.declared.clone()));
        let sent = dialect.sent(tools.collect()).await;
        assert_eq!(sent.len(), cases.len());
        for (case, sent) in cases.iter().zip(&sent) {
            let what =
                format!("{} {:?}: {} becomes {sent}", dialect.vendor, dialect.api, case.declared);
            let schema = sent.pointer(dialect.schema).unwrap();
            assert_eq!(schema["type"], "object", "{what}");
            assert_eq!(shown(schema), case.shown, "{what}");
            assert_eq!(required(schema), case.required, "{what}");
            for keyword in dialect.not_at_the_root {
                assert_eq!(schema.get(keyword), None, "{what}");
            }
            // Parts in words, too, can be looked up.
            let words = sent.pointer("/description").or(sent.pointer("/function/description"));
            let words = words.unwrap().as_str().unwrap().strip_prefix("Does it.").unwrap();
            let words =
                words.split_once(": ").map_or(Value::Null, |(_, json)| json.parse().unwrap());
            for part in objects(schema).into_iter().chain(objects(&words)) {
                if let Some(Value::String(reference)) = part.get("$ref") {
                    let pointer = reference.strip_prefix('#').unwrap();
                    assert!(schema.pointer(pointer).is_some(), "{reference} in {what}");
                }
            }
            for part in objects(schema) {
                for keyword in dialect.nowhere {
                    assert_eq!(part.get(*keyword), None, "{what}");
                }
            }
            assert!(jsonschema::meta::is_valid(schema), "{what}");
            let validator = jsonschema::draft202012::new(schema).unwrap();
            for arguments in case.taken.as_array().unwrap() {
                assert!(validator.is_valid(arguments), "{arguments} in {what}");
            }
        }
    }
}

#[tokio::test]
async fn recursive_references_end() {
    let reference = |n: usize| json!({ "$ref": format!("#/$defs/{n}") });
    // Many times as much at each definition, a way that is long, and one that leads far in at each
    // step.
    let wide = |n: usize| json!({ "properties": { n.to_string(): {} }, "anyOf": vec![reference(n + 1); 10] });
    let deep = |n: usize| (0..30).fold(reference(n + 1), |inner, _| json!({ "allOf": [inner] }));
    let definitions = |count: usize, definition: &dyn Fn(usize) -> Value| {
        let all: Map<_, _> = (0..count).map(|n| (n.to_string(), definition(n))).collect();
        json!({ "$ref": "#/$defs/0", "$defs": all })
    };
    let schemas =
        [definitions(40, &wide), definitions(2000, &|n| reference(n + 1)), definitions(60, &deep)];
    for dialect in &DIALECTS {
        for schema in &schemas {
            let declared = schema.to_string().len();
            let sent = dialect.sent(vec![tool("t", "Does it.", schema.clone())]).await;
            let length = sent[0].to_string().len();
            assert!(length < declared + 2 * 256 * 1024, "{length} of {declared}");
        }
    }
}

/// The directly visible arguments, also in alternatives if these are allowed.
fn shown(schema: &Value) -> Vec<&str> {
    let own = schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys);
    let mut names: Vec<&str> = own.map(String::as_str).collect();
    for name in alternatives(schema).iter().flat_map(shown) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The required ones of them.
fn required(schema: &Value) -> Vec<&str> {
    let own = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let mut names: Vec<&str> = own.map(|name| name.as_str().unwrap()).collect();
    let ways: Vec<Vec<&str>> = alternatives(schema).iter().map(required).collect();
    for name in ways.first().into_iter().flatten() {
        if ways.iter().all(|way| way.contains(name)) && !names.contains(name) {
            names.push(name);
        }
    }
    names
}

fn alternatives(schema: &Value) -> &[Value] {
    schema.get("anyOf").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// All objects within a value.
fn objects(value: &Value) -> Vec<&Map<String, Value>> {
    match value {
        Value::Array(items) => items.iter().flat_map(objects).collect(),
        Value::Object(map) => {
            let mut found = vec![map];
            found.extend(map.values().flat_map(objects));
            found
        }
        _ => Vec::new(),
    }
}
