//! The sent schemas.

use super::*;

#[tokio::test]
async fn schemas_are_said_as_the_vendor_takes_them() {
    let object = |properties: Value| json!({ "type": "object", "properties": properties });
    // (declared, sent, additions to the description)
    let cases = [
        // Unchanged keywords.
        (
            json!({ "type": "object", "properties": {
                "b": { "type": "string", "enum": ["y", "x"], "description": "B" },
                "a": { "anyOf": [{ "type": "null" }, { "$ref": "#/$defs/n" }] },
                "any": true,
                "pattern": { "type": "string", "format": "date" },
            }, "required": ["b"], "additionalProperties": false, "$defs": { "n": { "const": 1 } } }),
            json!({ "type": "object", "properties": {
                "b": { "type": "string", "enum": ["y", "x"], "description": "B" },
                "a": { "anyOf": [{ "type": "null" }, { "$ref": "#/$defs/n" }] },
                "any": true,
                "pattern": { "type": "string", "format": "date" },
            }, "required": ["b"], "additionalProperties": false, "$defs": { "n": { "const": 1 } } }),
            None,
        ),
        (json!({ "type": "object" }), json!({ "type": "object", "properties": {} }), None),
        // Arrays.
        (
            object(json!({
                "a": { "type": "array" },
                "b": { "type": ["array", "null"], "items": true },
                "c": { "type": "object", "properties": { "d": { "type": "array", "items": { "type": "array" } } } },
                "e": { "items": [{ "type": "array" }], "additionalItems": { "type": "array" } },
                "f": { "type": "array", "prefixItems": [true] },
            })),
            object(json!({
                "a": { "type": "array", "items": {} },
                "b": { "type": ["array", "null"], "items": {} },
                "c": { "type": "object", "properties": { "d": { "type": "array", "items": { "type": "array", "items": {} } } } },
                "e": { "items": { "type": "array", "items": {} }, "prefixItems": [{ "type": "array", "items": {} }] },
                "f": { "type": "array", "prefixItems": [true], "items": {} },
            })),
            None,
        ),
        // Patterns.
        (
            object(json!({
                "a": { "type": "string", "pattern": "^\\p{L}+$" },
                "b": { "pattern": "x", "description": "B" },
                "c": { "propertyNames": { "pattern": "^x" } },
                "d": { "default": { "pattern": "x" } },
                "e": { "patternProperties": { "^a": { "pattern": "y" } }, "additionalProperties": false },
                "f": { "patternProperties": { "^a": true, "^b": false } , "additionalProperties": false },
                "g": { "patternProperties": { "^a": true } },
                "h": { "not": { "pattern": "^ " } },
                "i": { "if": { "properties": { "a": { "pattern": "x" } } }, "then": { "required": ["b"] } },
                "j": { "if": { "minimum": 1 }, "then": { "pattern": "z" }, "not": {} },
            })),
            object(json!({
                "a": { "type": "string", "description": "Must match the regular expression ^\\p{L}+$" },
                "b": { "description": "B\nMust match the regular expression x" },
                "c": { "propertyNames": { "description": "Must match the regular expression ^x" } },
                "d": { "default": { "pattern": "x" } },
                "e": { "additionalProperties": { "description": "Must match the regular expression y" }, "description": "Names of properties match ^a" },
                "f": { "additionalProperties": { "anyOf": [true, false] }, "description": "Names of properties match ^a or ^b" },
                "g": { "description": "Names of properties match ^a" },
                "h": { "description": "Must match the JSON Schema {\"not\":{\"pattern\":\"^ \"}}" },
                "i": { "description": "Must match the JSON Schema {\"if\":{\"properties\":{\"a\":{\"pattern\":\"x\"}}},\"then\":{\"required\":[\"b\"]}}" },
                "j": { "if": { "minimum": 1 }, "then": { "description": "Must match the regular expression z" }, "not": {} },
            })),
            None,
        ),
        // The root.
        (
            json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"],
                "oneOf": [
                    { "properties": { "a": true, "k": { "const": 1 }, "b": { "type": "array" } }, "required": ["k", "b"] },
                    { "properties": { "k": { "const": 2 } }, "required": ["k"] },
                ] }),
            json!({ "type": "object", "properties": {
                "a": { "type": "string" },
                "k": { "anyOf": [{ "const": 1 }, { "const": 2 }] },
                "b": { "type": "array", "items": {} },
            }, "required": ["a", "k"] }),
            Some(
                r#"{"oneOf":[{"properties":{"a":true,"k":{"const":1},"b":{"type":"array"}},"required":["b","k"]},{"properties":{"k":{"const":2}},"required":["k"]}]}"#,
            ),
        ),
        (
            json!({ "type": "object", "additionalProperties": false, "properties": { "a": {}, "b": {} },
                "anyOf": [{ "required": ["a"], "properties": { "c": {} } }, { "required": ["b"] }] }),
            json!({ "type": "object", "additionalProperties": false, "properties": { "a": {}, "b": {} } }),
            Some(r#"{"anyOf":[{"required":["a"],"properties":{"c":{}}},{"required":["b"]}]}"#),
        ),
        (
            json!({ "allOf": [{ "$ref": "#/$defs/x" }, { "properties": { "a": { "minimum": 1 } } }, { "$ref": "#/nowhere" }],
                "$defs": { "x": { "properties": { "a": { "type": "integer" } }, "required": ["a"] } } }),
            json!({ "$defs": { "x": { "properties": { "a": { "type": "integer" } }, "required": ["a"] } }, "type": "object",
                "properties": { "a": { "allOf": [{ "type": "integer" }, { "minimum": 1 }] } }, "required": ["a"] }),
            Some(
                r##"{"allOf":[{"$ref":"#/$defs/x"},{"properties":{"a":{"minimum":1}}},{"$ref":"#/nowhere"}]}"##,
            ),
        ),
        (
            json!({ "$ref": "#/definitions/x", "definitions": { "x": { "properties": { "a": {} }, "required": ["a"] } } }),
            json!({ "definitions": { "x": { "properties": { "a": {} }, "required": ["a"] } }, "type": "object",
                "properties": { "a": {} }, "required": ["a"] }),
            Some(r##"{"$ref":"#/definitions/x"}"##),
        ),
        (
            json!({ "type": "object", "not": { "required": ["a"] }, "enum": [{ "b": 1 }], "const": { "b": 1 } }),
            json!({ "type": "object", "properties": {} }),
            Some(r#"{"enum":[{"b":1}],"const":{"b":1},"not":{"required":["a"]}}"#),
        ),
    ];
    let words = "Does it.\n\nThe arguments must also match this JSON Schema: ";
    for (declared, expected, besides) in cases {
        let asked = request(vec![Message::user("Go.")], vec![tool("t", "Does it.", declared)]);
        let function = sent(asked).await["tools"][0]["function"].take();
        assert_eq!(function["parameters"], expected);
        let description = function["description"].as_str().unwrap();
        match besides {
            None => assert_eq!(description, "Does it."),
            Some(schema) => {
                let found = description.strip_prefix(words).unwrap();
                assert_eq!(found.parse::<Value>().unwrap(), schema.parse::<Value>().unwrap());
            }
        }
        // The order in which a model reads and writes arguments.
        let names = |of: &Value| of["properties"].as_object().unwrap().keys().cloned().collect();
        let (found, expected): (Vec<_>, Vec<_>) =
            (names(&function["parameters"]), names(&expected));
        assert_eq!(found, expected);
    }
}
