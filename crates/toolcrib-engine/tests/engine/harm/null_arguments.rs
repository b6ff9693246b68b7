//! `null` for an optional argument.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolcrib_core::{CallDecision, ErrorCode, ToolCall, ToolContext, args_digest, call_middleware};
use toolcrib_engine::Engine;

use crate::support::{Log, batch, builder, engine, once};

fn watched() -> (Engine, Arc<Mutex<Vec<String>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (body, middleware) = (Arc::clone(&seen), Arc::clone(&seen));
    let tool = builder("t").input_schema(json!({
        "type": "object",
        "properties": {
            "order": { "type": "integer" },
            "note": { "type": "string" },
            "until": { "type": ["string", "null"] },
            "where": { "type": "object", "properties": { "city": { "type": "string" } } },
        },
        "required": ["order"],
        "additionalProperties": false,
    }));
    let tool = tool.handler(move |args: Value, _: ToolContext| {
        body.lock().unwrap().push(args.to_string());
        async { "ran" }
    });
    let engine = engine()
        .tool(tool)
        .middleware(call_middleware("notes", move |call| {
            middleware.lock().unwrap().push(call.args.to_string());
            Ok(CallDecision::Proceed)
        }))
        .build()
        .unwrap();
    (engine, seen)
}

#[tokio::test]
async fn a_null_for_an_optional_argument_was_refused() {
    let (engine, seen) = watched();
    let log = Log::of(engine.events());
    let given = json!({ "order": 1, "note": null, "until": null, "where": { "city": null } });
    let left = json!({ "order": 1, "until": null, "where": {} });
    for call in [
        ToolCall::new("1", "t", given.clone()),
        ToolCall::unparsed("2", "t", given.to_string()),
        ToolCall::unparsed("3", "t", "{order: 1, note: null, until: null, 'where': {city: null},}"),
    ] {
        let result = batch(&engine, vec![call]).await.remove(0);
        assert!(result.is_ok(), "{}", result.text);
        assert_eq!(result.args, left);
    }
    assert_eq!(*seen.lock().unwrap(), vec![left.to_string(); 6]);
    for start in log.of_name("tool.start") {
        assert_eq!(start["args"], left);
        assert_eq!(start["args_digest"], args_digest("t", &left).to_string());
    }
}

#[tokio::test]
async fn a_null_that_says_something_stays() {
    let (engine, _) = watched();
    for args in [json!({ "order": null }), json!({}), json!({ "order": 1, "other": null })] {
        let result = once(&engine, "t", args.clone()).await;
        assert_eq!(result.code, Some(ErrorCode::InputInvalid), "{args}");
    }
}

#[tokio::test]
async fn a_middleware_may_write_null_as_a_model_does() {
    let tool = builder("t")
        .input_schema(json!({ "type": "object", "properties": { "note": { "type": "string" } } }))
        .handler(|args: Value, _: ToolContext| async move { args.to_string() });
    let engine = engine()
        .tool(tool)
        .middleware(call_middleware("rewrites", |_| {
            Ok(CallDecision::Rewrite(json!({ "note": null })))
        }))
        .build()
        .unwrap();
    let result = once(&engine, "t", json!({ "note": "a" })).await;
    assert_eq!((&*result.text, &result.args), ("{}", &json!({})));
}
