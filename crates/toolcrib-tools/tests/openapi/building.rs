//! From documents to tools.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolcrib_core::Tool;
use toolcrib_tools::openapi::{Auth, OpenApi, OpenApiSpec};

use crate::server::client;

const SHOP: &str = include_str!("shop.yaml");

fn auth() -> Auth {
    Auth { any: Some("KEY".into()), by_scheme: Vec::new() }
}

fn tools(document: &str, spec: &OpenApiSpec) -> Vec<Tool> {
    spec.build(&OpenApi::parse(document).unwrap(), &client()).unwrap()
}

fn shop(spec: OpenApiSpec) -> Vec<Tool> {
    tools(SHOP, &OpenApiSpec { auth: auth(), ..spec })
}

fn names(tools: &[Tool]) -> Vec<&str> {
    tools.iter().map(|tool| tool.name().as_str()).collect()
}

fn named<'t>(tools: &'t [Tool], name: &str) -> &'t Tool {
    tools.iter().find(|tool| tool.name().as_str() == name).unwrap()
}

/// The schema of one schema of OpenAPI 3.0, as the body of a request.
fn converted(version: &str, schema: Value) -> Value {
    let document = json!({
        "openapi": version, "servers": [{ "url": "https://a.example" }],
        "paths": { "/a": { "post": { "operationId": "a", "requestBody": {
            "content": { "application/json": { "schema": schema } } } } } },
        "components": { "schemas": { "Node": { "type": "object", "properties": {
            "next": { "$ref": "#/components/schemas/Node" } } } } },
    });
    let tools = tools(&document.to_string(), &OpenApiSpec::new());
    assert_eq!(tools[0].check_available(), Ok(()));
    let mut schema = tools[0].input_schema().clone();
    let body = schema["properties"]["body"].take();
    match schema.get("$defs") {
        Some(definitions) => json!([body, definitions]),
        None => body,
    }
}

#[test]
fn names_texts_and_effects_are_those_of_the_document() {
    let tools = shop(OpenApiSpec::new());
    let all = [
        "listOrders",
        "createOrder",
        "replaceOrder",
        "deleteOrder",
        "head_orders_id",
        "pay",
        "area",
        "upload",
        "elsewhere",
        "both",
    ];
    let mut found = names(&tools);
    let mut expected = all.to_vec();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
    assert_eq!(named(&tools, "listOrders").description(), "Lists orders. Newest first.");
    assert_eq!(named(&tools, "deleteOrder").description(), "Deprecated. DELETE /orders/{id}");
    let effects = |name: &str| {
        let annotations = named(&tools, name).definition().annotations();
        (annotations.read_only, annotations.idempotent, annotations.destructive)
    };
    assert_eq!(effects("listOrders"), (true, false, false));
    assert_eq!(effects("head_orders_id"), (true, false, false));
    assert_eq!(effects("createOrder"), (false, false, false));
    assert_eq!(effects("replaceOrder"), (false, true, false));
    assert_eq!(effects("deleteOrder"), (false, true, true));
    assert_eq!(
        names(&shop(OpenApiSpec {
            prefix: Some("shop".into()),
            include: vec!["pay".into()],
            ..OpenApiSpec::new()
        })),
        ["shop_pay"]
    );
}

#[test]
fn an_operation_that_cannot_be_made_is_withheld_with_its_reason() {
    let tools = shop(OpenApiSpec::new());
    for (name, reason) in [
        ("upload", "its body is `application/cbor`"),
        ("elsewhere", "`other.yaml#/A` leads out of the document"),
        ("both", "needs the security schemes"),
    ] {
        let why = named(&tools, name).check_available().unwrap_err();
        assert!(why.contains(reason), "{name}: {why}");
    }
    assert_eq!(tools.iter().filter(|tool| tool.check_available().is_err()).count(), 3);
    let without = tools_without_auth();
    let why = named(&without, "listOrders").check_available().unwrap_err();
    assert!(why.contains("auth = { \"token\" = \"secret:NAME\" }"), "{why}");
    assert_eq!(named(&without, "head_orders_id").check_available(), Ok(()));
    let by_scheme = vec![("token".into(), "A".into()), ("key".into(), "B".into())];
    let auth = Auth { any: None, by_scheme };
    let spec = OpenApiSpec { auth, ..OpenApiSpec::new() };
    let both = tools_of(&spec);
    let secrets = &named(&both, "both").capabilities().secrets;
    assert_eq!(secrets.iter().map(|name| &**name).collect::<Vec<_>>(), ["A", "B"]);
    assert!(named(&both, "pay").check_available().is_err());
}

fn tools_without_auth() -> Vec<Tool> {
    tools(SHOP, &OpenApiSpec::new())
}

fn tools_of(spec: &OpenApiSpec) -> Vec<Tool> {
    tools(SHOP, spec)
}

#[test]
fn operations_are_chosen_by_tag_path_method_and_id() {
    for (include, exclude, expected) in [
        (vec!["tag:orders"], vec!["DELETE"], vec!["createOrder", "listOrders", "replaceOrder"]),
        (vec!["/orders/*"], vec!["PUT /orders/*", "HEAD"], vec!["deleteOrder", "pay"]),
        (vec!["GET"], vec!["elsewhere", "both"], vec!["area", "listOrders"]),
        (vec!["*Order"], vec!["tag:none"], vec!["createOrder", "deleteOrder", "replaceOrder"]),
        (vec!["nothing"], vec![], vec![]),
    ] {
        let texts = |all: Vec<&str>| all.into_iter().map(str::to_owned).collect();
        let spec =
            OpenApiSpec { include: texts(include), exclude: texts(exclude), ..OpenApiSpec::new() };
        let tools = shop(spec);
        let mut found = names(&tools);
        found.sort_unstable();
        assert_eq!(found, expected);
    }
}

#[test]
fn schemas_of_both_versions_become_the_same_json_schema() {
    for (version, schema, expected) in [
        (
            "3.0.0",
            json!({ "type": "string", "nullable": true }),
            json!({ "type": ["string", "null"] }),
        ),
        ("3.1.0", json!({ "type": ["string", "null"] }), json!({ "type": ["string", "null"] })),
        (
            "3.0.0",
            json!({ "type": "integer", "minimum": 1, "exclusiveMinimum": true, "maximum": 9 }),
            json!({ "type": "integer", "exclusiveMinimum": 1, "maximum": 9 }),
        ),
        (
            "3.1.0",
            json!({ "type": "integer", "exclusiveMinimum": 1 }),
            json!({ "type": "integer", "exclusiveMinimum": 1 }),
        ),
        (
            "3.0.0",
            json!({ "enum": ["a"], "type": "string", "nullable": true, "example": "a", "xml": {} }),
            json!({ "type": ["string", "null"], "enum": ["a", null] }),
        ),
        (
            "3.0.0",
            json!({ "type": "object", "required": ["a", "id"], "properties": {
                "a": { "type": "string" }, "id": { "type": "string", "readOnly": true } } }),
            json!({ "type": "object", "required": ["a"], "properties": { "a": { "type": "string" } } }),
        ),
        (
            "3.0.0",
            json!({ "oneOf": [{ "type": "string" }, { "type": "integer" }], "discriminator": {} }),
            json!({ "anyOf": [{ "type": "string" }, { "type": "integer" }] }),
        ),
        (
            "3.0.0",
            json!({ "type": "string", "pattern": "(" }),
            json!({
                "type": "string", "description": "Must match the pattern (, which the server checks.",
            }),
        ),
        ("3.0.0", json!({ "type": "any", "pattern": 5, "minLength": -1 }), json!({})),
        (
            "3.0.0",
            json!({ "$ref": "#/components/schemas/Node" }),
            json!([{ "$ref": "#/$defs/Node" }, { "Node": { "type": "object", "properties": {
                "next": { "$ref": "#/$defs/Node" } } } }]),
        ),
    ] {
        assert_eq!(converted(version, schema.clone()), expected, "{version} {schema}");
    }
}

#[test]
fn a_schema_is_bounded_and_stays_callable() {
    let mut schemas = serde_json::Map::new();
    for level in 0..40 {
        let properties: serde_json::Map<_, _> = (0..40)
            .map(|n| {
                (
                    format!("p{n}"),
                    json!({ "$ref": format!("#/components/schemas/S{}", (level + n) % 40) }),
                )
            })
            .collect();
        let text = "x".repeat(290);
        schemas.insert(
            format!("S{level}"),
            json!({ "type": "object", "description": text, "properties": properties }),
        );
    }
    let mut nested = json!({ "type": "string" });
    for _ in 0..30 {
        nested = json!({ "type": "object", "properties": { "a": nested.clone() } });
    }
    let document = json!({
        "openapi": "3.0.0", "servers": [{ "url": "https://a.example" }],
        "components": { "schemas": schemas },
        "paths": { "/a": { "post": { "operationId": "a", "requestBody": { "content": {
            "application/json": { "schema": { "$ref": "#/components/schemas/S0" } } } } } },
            "/b": { "post": { "operationId": "b", "requestBody": { "content": {
            "application/json": { "schema": nested } } } } } },
    });
    let tools = tools(&document.to_string(), &OpenApiSpec::new());
    for tool in &tools {
        assert_eq!(tool.check_available(), Ok(()));
        assert!(tool.input_schema().to_string().len() <= 50_000);
    }
    assert!(tools[0].input_schema()["properties"]["body"].is_object());
}

#[test]
fn closed_schemas_can_be_composed() {
    let closed = |name: &str| {
        json!({ "type": "object", "properties": { name: { "type": "string" } },
                "required": [name], "additionalProperties": false })
    };
    let body = json!({
        "allOf": [{ "$ref": "#/components/schemas/Base" }, { "oneOf": [closed("x"), closed("y")] }],
        "properties": { "alone": closed("z"), "same": { "allOf": [{ "$ref": "#/components/schemas/Alone" }] } },
        "additionalProperties": false,
    });
    let base = json!({ "allOf": [{ "$ref": "#/components/schemas/Root" }], "additionalProperties": false });
    let document = json!({
        "openapi": "3.0.3", "servers": [{ "url": "https://a.example" }],
        "components": { "schemas": { "Base": base, "Root": closed("r"), "Alone": closed("a") } },
        "paths": { "/a": { "post": { "operationId": "add", "requestBody": {
            "content": { "application/json": { "schema": body } } } } } },
    });
    let tools = tools(&document.to_string(), &OpenApiSpec::new());
    let schema = tools[0].input_schema();
    let is_closed = |pointer: &str| {
        let schema =
            schema.pointer(pointer).unwrap_or_else(|| panic!("{pointer} is not in {schema}"));
        schema.get("additionalProperties").is_some()
    };
    for open in
        ["/properties/body", "/properties/body/allOf/1/anyOf/0", "/$defs/Base", "/$defs/Root"]
    {
        assert!(!is_closed(open), "{open}: {schema}");
    }
    for closed in ["", "/properties/body/properties/alone", "/$defs/Alone"] {
        assert!(is_closed(closed), "{closed}: {schema}");
    }
}

#[test]
fn a_scheme_that_cannot_be_sent_is_named_as_such() {
    let document = json!({
        "openapi": "3.1.0", "servers": [{ "url": "https://a.example" }],
        "components": { "securitySchemes": {
            "mtls": { "type": "mutualTLS" },
            "digest": { "type": "http", "scheme": "digest" },
            "token": { "type": "http", "scheme": "bearer" },
        } },
        "paths": { "/a": {
            "get": { "operationId": "one", "security": [{ "mtls": [] }] },
            "put": { "operationId": "two", "security": [{ "digest": [] }, { "token": [] }] },
            "post": { "operationId": "both", "security": [{ "digest": [], "token": [] }] },
        } },
    });
    let tools = tools(&document.to_string(), &OpenApiSpec::new());
    for (name, reason) in [
        ("one", "`mtls` is of a type that Toolcrib cannot send"),
        ("two", "auth = { \"token\" = \"secret:NAME\" }"),
        ("both", "`digest` is of a type that Toolcrib cannot send"),
    ] {
        let why = named(&tools, name).check_available().unwrap_err();
        assert!(why.contains(reason), "{name}: {why}");
    }
}

#[test]
fn swagger_2_is_read() {
    let document = json!({
        "swagger": "2.0", "host": "a.example", "basePath": "/v2", "schemes": ["http", "https"],
        "securityDefinitions": { "k": { "type": "apiKey", "in": "header", "name": "X-K" } },
        "security": [{ "k": [] }],
        "definitions": { "Pet": { "type": "object", "properties": { "name": { "type": "string" } } } },
        "paths": {
            "/pets": {
                "get": { "operationId": "pets", "parameters": [
                    { "name": "tags", "in": "query", "type": "array", "items": { "type": "string" }, "collectionFormat": "pipes" } ] },
                "post": { "operationId": "add", "parameters": [
                    { "name": "pet", "in": "body", "required": true, "schema": { "$ref": "#/definitions/Pet" } } ] } },
            "/pets/{id}": { "post": { "operationId": "change", "consumes": ["application/x-www-form-urlencoded"], "parameters": [
                { "name": "id", "in": "path", "required": true, "type": "integer", "minimum": 1 },
                { "name": "name", "in": "formData", "required": true, "type": "string" } ] } },
            "/photo": { "post": { "operationId": "photo", "consumes": ["multipart/form-data"], "parameters": [
                { "name": "f", "in": "formData", "type": "file" } ] } },
        },
    });
    let tools = tools(&document.to_string(), &OpenApiSpec { auth: auth(), ..OpenApiSpec::new() });
    let photo = &named(&tools, "photo").input_schema()["properties"]["body"];
    assert_eq!(photo["properties"]["f"], json!({ "type": "string" }));
    assert_eq!(named(&tools, "pets").input_schema()["properties"]["tags"]["type"], "array");
    let add = named(&tools, "add").input_schema();
    assert_eq!(add["required"], json!(["body"]));
    assert_eq!(add["properties"]["body"], json!({ "$ref": "#/$defs/Pet" }));
    let change = named(&tools, "change").input_schema();
    assert_eq!(change["properties"]["id"], json!({ "type": "integer", "minimum": 1 }));
    assert_eq!(change["properties"]["body"]["required"], json!(["name"]));
}

#[test]
fn names_are_unique_and_valid_whatever_the_document_says() {
    let document = json!({
        "openapi": "3.0.0", "servers": [{ "url": "https://a.example" }],
        "paths": {
            "/a": { "get": { "operationId": "same" }, "post": { "operationId": "same" } },
            "/b/{x y}": { "get": {}, "put": { "operationId": "repos/list-all" } },
            "/c": { "get": { "operationId": "é" }, "put": { "operationId": "x".repeat(200) }, "post": { "operationId": "mcp__git__push" } },
        },
    });
    let tools = tools(&document.to_string(), &OpenApiSpec::new());
    assert_eq!(tools.len(), 7);
    let all = names(&tools);
    assert!(all.contains(&"repos_list-all") && all.contains(&"get_b_x_y"), "{all:?}");
    // The prefix of tools of MCP servers is never that of an operation.
    assert!(all.contains(&"mcp_git_push"), "{all:?}");
    let mut unique = all.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), all.len(), "{all:?}");
}

#[test]
fn texts_that_are_not_openapi_are_refused() {
    for (text, problem) in [
        ("", "as YAML, it is empty"),
        ("a: [1", "as YAML, line "),
        ("{\"a\":", "as JSON, "),
        ("a: 1", "neither a key `openapi` nor `swagger`"),
        ("openapi: 4.0.0", "its version is `4.0.0`"),
        ("swagger: \"1.2\"", "its version is `1.2`"),
    ] {
        let error = OpenApi::parse(text).unwrap_err().to_string();
        assert!(error.contains(problem), "{text}: {error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any part of a document may be of any type.
    #[test]
    fn no_document_causes_a_panic(
        position in 0_usize..400,
        replacement in prop_oneof![
            Just(json!(null)), Just(json!(-1)), Just(json!("{")), Just(json!([[]])), Just(json!({ "$ref": "#" })),
            Just(json!({ "$ref": "#/paths" })), Just(json!(true)),
        ],
    ) {
        let mut document: Value = serde_json::from_str(include_str!("shop.json")).unwrap();
        let mut left = position;
        replace(&mut document, &mut left, &replacement);
        if let Ok(document) = OpenApi::parse(&document.to_string()) {
            let spec = OpenApiSpec { auth: auth(), ..OpenApiSpec::new() };
            spec.build(&document, &client()).unwrap();
        }
    }
}

/// Replaces the value at a position in the order of the document.
fn replace(value: &mut Value, left: &mut usize, with: &Value) {
    if *left == 0 {
        *left = usize::MAX;
        *value = with.clone();
        return;
    }
    *left -= 1;
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, left, with)),
        Value::Object(map) => map.values_mut().for_each(|item| replace(item, left, with)),
        _ => {}
    }
}
