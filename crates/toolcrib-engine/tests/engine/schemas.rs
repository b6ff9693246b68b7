//! Schemas that are invalid, refer outside, nest too deep, or match slowly.

use serde_json::{Value, json};
use toolcrib_core::{ErrorCode, InvalidToolError, Tool, WithheldBy, static_tools};
use toolcrib_engine::{BuildError, TurnOptions};

use crate::support::{builder, engine, in_time, menu, once, says, tool};

fn with_schema(schema: Value) -> Tool {
    says(builder("odd").origin("toolcrib.toml:12").input_schema(schema), "ran")
}

/// The problem of a schema, from the error of building an engine with it.
fn problem(schema: &Value) -> String {
    let built = engine().tool(with_schema(schema.clone())).build();
    let Err(error @ BuildError::Schema { .. }) = built else {
        panic!("built with {schema}");
    };
    error.to_string()
}

fn unenforceable() -> Vec<Value> {
    vec![
        json!({"type": "object", "properties": {"a": {"type": "nonsense"}}}),
        json!({"type": "object", "properties": 7}),
        json!({"type": "object", "required": "a"}),
        json!({"type": "object", "properties": {"a": {"minLength": -1}}}),
        json!({"type": "object", "properties": {"a": {"pattern": "("}}}),
        json!({"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/x.json"}}}),
        json!({"type": "object", "properties": {"a": {"$ref": "file:///etc/passwd"}}}),
        json!({"type": "object", "properties": {"a": {"$ref": "other.json#/a"}}}),
        json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/missing"}}}),
        json!({"type": "object", "$schema": "http://127.0.0.1:9/meta.json"}),
    ]
}

#[test]
fn a_schema_that_cannot_be_enforced_fails_the_build_naming_tool_and_origin() {
    for schema in unenforceable() {
        let text = problem(&schema);
        let start = "the input schema of tool `odd` (toolcrib.toml:12) cannot be enforced: ";
        assert!(text.starts_with(start), "{text}");
        assert!(text.len() > start.len());
    }
}

#[tokio::test]
async fn a_provider_tool_with_an_unenforceable_schema_is_withheld_alone() {
    for schema in unenforceable() {
        let engine = engine()
            .provider(static_tools([with_schema(schema.clone()), tool("good")]))
            .build()
            .unwrap();
        let mut turn = engine.turn(TurnOptions::default()).unwrap();
        let mut iteration = turn.iteration().await.unwrap();
        assert_eq!(menu(&iteration), ["good"], "{schema}");
        let withheld: Vec<_> = iteration.withheld().tools().collect();
        assert_eq!(withheld[0].by, WithheldBy::Schema);
        assert!(withheld[0].reason.starts_with("its schema cannot be enforced: "));
        let result =
            iteration.execute(vec![crate::support::call("odd", json!({}))]).await.remove(0);
        assert_eq!(result.code, Some(ErrorCode::NotAvailable));
    }
}

#[test]
fn references_to_other_documents_are_not_fetched() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}/schema.json", listener.local_addr().unwrap());
    for schema in [
        json!({"type": "object", "properties": {"a": {"$ref": url}}}),
        json!({"type": "object", "$schema": url}),
        json!({"type": "object", "allOf": [{"$dynamicRef": url}]}),
    ] {
        problem(&schema);
        let nobody = listener.accept().unwrap_err();
        assert_eq!(nobody.kind(), std::io::ErrorKind::WouldBlock);
    }
}

#[test]
fn references_inside_the_schema_are_followed_even_in_circles() {
    let tree = json!({
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/node"}},
        "$defs": {"node": {"type": "object", "properties": {"left": {"$ref": "#/$defs/node"}}}},
    });
    engine().tool(with_schema(tree)).build().unwrap();
}

#[test]
fn a_ref_key_that_is_data_is_not_a_reference() {
    for schema in [
        json!({"type": "object", "properties": {"$ref": {"type": "string"}}}),
        json!({"type": "object", "properties": {"a": {"const": {"$ref": "http://x/"}}}}),
        json!({"type": "object", "properties": {"a": {"enum": [{"$ref": "http://x/"}]}}}),
        json!({"type": "object", "properties": {"a": {"default": {"$ref": "http://x/"}}}}),
    ] {
        let built = engine().tool(with_schema(schema.clone())).build();
        assert!(built.is_ok(), "{schema}: {:?}", built.err().map(|e| e.to_string()));
    }
}

fn nested(levels: usize) -> Value {
    let mut schema = json!({"type": "string"});
    for _ in 0..levels {
        schema = Value::Object(serde_json::Map::from_iter([("not".to_owned(), schema)]));
    }
    if let Value::Object(map) = &mut schema {
        map.insert("type".to_owned(), json!("object"));
    }
    schema
}

#[test]
fn a_schema_nested_without_measure_is_refused_where_the_tool_is_made() {
    for levels in [1_000, 10_000, 100_000] {
        let made = builder("deep")
            .input_schema(nested(levels))
            .handler(|_: Value, _: toolcrib_core::ToolContext| async { "" });
        let error = made.unwrap_err();
        assert!(matches!(error, InvalidToolError::SchemaTooDeep { .. }));
        assert!(error.to_string().contains("`deep`"), "{error}");
    }
    says(builder("shallow").input_schema(nested(50)), "");
}

#[test]
fn title_and_output_schema_are_no_part_of_what_a_model_reads() {
    let plain = tool("t");
    assert_eq!((plain.title(), plain.output_schema()), (None, None));
    let schema = json!({"type": "object", "required": ["b", "a"], "properties": {}});
    let told = says(builder("t").title(" A tool ").output_schema(schema), "ran");
    assert_eq!(told.title(), Some("A tool"));
    let canonical = r#"{"properties":{},"required":["a","b"],"type":"object"}"#;
    assert_eq!(told.output_schema().unwrap().to_string(), canonical);
    assert_eq!(told.rendering(), plain.rendering());
    assert_eq!((told.digest(), told.schema_digest()), (plain.digest(), plain.schema_digest()));
    assert_eq!(says(builder("t").title("  "), "").title(), None);
    says(builder("any").output_schema(json!(true)), "");

    let made = |schema| builder("odd").output_schema(schema).body(NoBody).unwrap_err();
    assert!(matches!(made(json!("text")), InvalidToolError::OutputSchemaNotASchema { .. }));
    let error = made(nested(100_000));
    assert!(matches!(error, InvalidToolError::SchemaTooDeep { schema: "output", .. }));
    assert!(error.to_string().starts_with("the output schema of tool `odd` nests"), "{error}");
}

/// A body that is never called.
struct NoBody;

impl toolcrib_core::ToolBody for NoBody {
    fn call(
        self: std::sync::Arc<Self>,
        _: Value,
        _: toolcrib_core::ToolContext,
    ) -> toolcrib_core::BoxFuture<
        'static,
        Result<toolcrib_core::ToolOutput, toolcrib_core::ToolError>,
    > {
        Box::pin(async { Ok(toolcrib_core::ToolOutput::text("")) })
    }
}

#[tokio::test]
async fn a_pattern_that_backtracks_elsewhere_matches_in_no_time_here() {
    let schema = json!({"type": "object", "properties": {"a": {"pattern": "^(a+)+$"}}});
    let engine = engine().tool(with_schema(schema)).build().unwrap();
    let hostile = format!("{}!", "a".repeat(50_000));
    let result = in_time(once(&engine, "odd", json!({ "a": hostile }))).await;
    assert_eq!(result.code, Some(ErrorCode::InputInvalid));
    assert!(result.value.len() < 1_000);
    assert!(once(&engine, "odd", json!({"a": "aaa"})).await.is_ok());
}

#[test]
fn a_tool_must_take_an_object_and_say_what_it_is_for() {
    let make = |description: &str, schema: Value| {
        Tool::builder("t")
            .description(description)
            .input_schema(schema)
            .handler(|_: Value, _: toolcrib_core::ToolContext| async { "" })
    };
    for schema in
        [json!({"type": "string"}), json!(true), json!([]), json!({"type": ["object", "null"]})]
    {
        assert!(matches!(make("d", schema), Err(InvalidToolError::NotAnObjectSchema { .. })));
    }
    assert!(matches!(make(" \n", json!({})), Err(InvalidToolError::NoDescription { .. })));
    let untyped = make("d", json!({"properties": {"a": {}}})).unwrap();
    assert_eq!(untyped.input_schema()["type"], "object");
}
