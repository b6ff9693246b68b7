//! The tool block, in the vendor's schema dialect.

use serde_json::{Value, json};
use toolcrib_core::Message;

use super::{find_order, sent, sent_by};
use crate::support::{request, tool};

#[tokio::test]
async fn a_schema_is_sent_as_the_vendor_takes_it() {
    let object = |rest: Value| {
        let mut schema = json!({ "type": "object" });
        schema.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        schema
    };
    // (declared, sent, additions to the description)
    let cases = [
        (json!({}), json!({}), ""),
        // Supported keywords are unchanged, at any depth.
        (
            json!({ "properties": { "z": { "enum": [2, 1, null], "default": 1 }, "a": {
                "anyOf": [{ "type": "string", "pattern": "^x", "format": "date" }, { "not": {} }],
                "const": { "items": [1], "required": true },
            }}, "required": ["z"], "$defs": { "n": { "$ref": "#/$defs/n" } } }),
            json!({ "properties": { "z": { "enum": [2, 1, null], "default": 1 }, "a": {
                "anyOf": [{ "type": "string", "pattern": "^x", "format": "date" }, { "not": {} }],
                "const": { "items": [1], "required": true },
            }}, "required": ["z"], "$defs": { "n": { "$ref": "#/$defs/n" } } }),
            "",
        ),
        (
            json!({ "properties": { "id": {}, "name": {} }, "additionalProperties": false,
                    "oneOf": [{ "required": ["id"] }, { "required": ["name"] }] }),
            json!({ "properties": { "id": {}, "name": {} }, "additionalProperties": false }),
            r#"{"oneOf":[{"required":["id"]},{"required":["name"]}]}"#,
        ),
        // Each alternative has a separate property, and both have `kind`.
        (
            json!({ "anyOf": [
                { "properties": { "kind": { "const": "a" }, "x": true }, "required": ["kind", "x"] },
                { "properties": { "kind": { "const": "b" }, "x": true }, "required": ["kind"] },
            ]}),
            json!({
                "properties": { "kind": { "anyOf": [{ "const": "a" }, { "const": "b" }] }, "x": true },
                "required": ["kind"],
            }),
            concat!(
                r#"{"anyOf":[{"properties":{"kind":{"const":"a"},"x":true},"required":["kind","x"]},"#,
                r#"{"properties":{"kind":{"const":"b"},"x":true},"required":["kind"]}]}"#
            ),
        ),
        (
            json!({ "properties": { "own": {} }, "required": ["own"], "allOf": [
                { "properties": { "own": false, "x": { "type": "string" } }, "required": ["x"] },
                { "properties": { "x": { "minLength": 1 } }, "required": ["own"] },
            ]}),
            json!({
                "properties": {
                    "own": {}, "x": { "allOf": [{ "type": "string" }, { "minLength": 1 }] },
                },
                "required": ["own", "x"],
            }),
            concat!(
                r#"{"allOf":[{"properties":{"own":false,"x":{"type":"string"}},"required":["x"]},"#,
                r#"{"properties":{"x":{"minLength":1}},"required":["own"]}]}"#
            ),
        ),
        // A closed root takes no property of a branch.
        (
            json!({ "properties": { "a": {} }, "additionalProperties": false,
                    "anyOf": [{ "properties": { "b": {} } }] }),
            json!({ "properties": { "a": {} }, "additionalProperties": false }),
            r#"{"anyOf":[{"properties":{"b":{}}}]}"#,
        ),
        (
            json!({ "properties": { "$id": {}, "größe": { "type": "number" }, "a.b-C_1": {} },
                    "required": ["a.b-C_1", "größe"], "additionalProperties": false }),
            json!({ "properties": { "a.b-C_1": {} }, "required": ["a.b-C_1"] }),
            r#"{"required":["größe"],"properties":{"$id":{},"größe":{"type":"number"}}}"#,
        ),
        // Older drafts.
        (
            json!({ "properties": { "pair": {
                "items": [{ "type": "string", "required": true }, { "items": [true] }],
                "additionalItems": { "exclusiveMinimum": true, "minimum": 3 },
            }}}),
            json!({ "properties": { "pair": {
                "prefixItems": [{ "type": "string" }, { "prefixItems": [true] }],
                "items": { "exclusiveMinimum": 3 },
            }}}),
            "",
        ),
        (
            json!({ "patternProperties": { "^x": { "exclusiveMaximum": false, "maximum": 3 } },
                    "dependencies": { "a": ["b"], "c": { "exclusiveMaximum": true } } }),
            json!({ "patternProperties": { "^x": { "maximum": 3 } },
                    "dependencies": { "a": ["b"], "c": {} } }),
            "",
        ),
    ];
    for (declared, expected, words) in cases {
        let asked = request(
            vec![Message::user("Hello.")],
            vec![find_order(), tool("odd", "An odd tool.", object(declared.clone()))],
        );
        let found = sent(asked).await;
        assert!(found["tools"][0].get("cache_control").is_none());
        let found = &found["tools"][1];
        assert_eq!(found["cache_control"], json!({ "type": "ephemeral" }));
        assert_eq!(found["input_schema"], object(expected), "{declared}");
        let told = found["description"].as_str().unwrap().strip_prefix("An odd tool.").unwrap();
        let more = "\n\nThe arguments must also match this JSON Schema: ";
        match words {
            "" => assert_eq!(told, "", "{declared}"),
            _ => assert_eq!(told.strip_prefix(more), Some(words), "{declared}"),
        }
    }
}

#[tokio::test]
async fn properties_keep_their_order() {
    let schema = json!({ "type": "object", "properties": { "b": {}, "a": {}, "ß": {}, "0": {} } });
    let asked = request(vec![Message::user("Hello.")], vec![tool("odd", "An odd tool.", schema)]);
    let body = sent_by(asked, |b| b).await.body;
    assert!(body.contains(r#""properties":{"b":{},"a":{},"0":{}}"#), "{body}");
}
