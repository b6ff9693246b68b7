//! A model's arguments: parsed, repaired once, validated; never echoed.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use serde_json::{Value, json};
use toolcrib_core::{ErrorCode, Tool, ToolCall, ToolContext, ToolResult, args_digest};
use toolcrib_engine::Engine;

use crate::support::{Log, batch, builder, call, engine, once, tool};

struct Spy {
    engine: Engine,
    ran_with: Arc<Mutex<Vec<Value>>>,
}

fn spy(schema: Value) -> Spy {
    let ran_with = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&ran_with);
    let tool = builder("t")
        .input_schema(schema)
        .handler(move |args: Value, _: ToolContext| {
            seen.lock().unwrap().push(args);
            async { "ran" }
        })
        .unwrap();
    Spy { engine: engine().tool(tool).build().unwrap(), ran_with }
}

fn order() -> Spy {
    spy(json!({
        "type": "object",
        "properties": {
            "order": {"type": "integer"},
            "lines": {"type": "array", "items": {
                "type": "object",
                "properties": {"price": {"type": "number", "minimum": 0}},
                "additionalProperties": false,
            }},
            "state": {"enum": ["open", "closed"]},
            "code": {"type": "string", "pattern": "^[A-Z]{3}$"},
        },
        "required": ["order"],
        "additionalProperties": false,
    }))
}

fn refused(spy: &Spy, result: &ToolResult) -> String {
    assert_eq!(result.code, Some(ErrorCode::InputInvalid));
    assert!(spy.ran_with.lock().unwrap().is_empty(), "it ran");
    assert_eq!(result.value, result.text, "ours, so it is not fenced");
    result.value.to_string()
}

async fn unparsed(engine: &Engine, text: &str) -> ToolResult {
    batch(engine, vec![ToolCall::unparsed("id", "t", text)]).await.remove(0)
}

/// Case 32 of the providers' reference, its first half.
#[tokio::test]
async fn a_wrong_field_is_named_with_what_was_expected_and_never_with_the_value() {
    let spy = order();
    for (args, named) in [
        (json!({"order": "hunter2"}), "`order`"),
        (json!({"order": 1, "lines": [{"price": -42.5}]}), "`lines.0.price`"),
        (json!({"order": 1, "lines": [{"price": "hunter2"}]}), "`lines.0.price`"),
        (json!({"order": 1, "state": "hunter2"}), "`state`"),
        (json!({"order": 1, "code": "hunter2"}), "`code`"),
        (json!({"order": 1.5}), "`order`"),
        (json!({"order": ["hunter2"]}), "`order`"),
        (json!({}), "`order`: it is required"),
        (json!({"order": 1, "oder": "hunter2"}), "`oder`: there is no such argument"),
        (json!("hunter2"), "object"),
        (json!(["hunter2"]), "object"),
    ] {
        let value = refused(&spy, &once(&spy.engine, "t", args.clone()).await);
        assert!(value.contains(named), "{args}: {value}");
        assert!(!value.contains("hunter2") && !value.contains("42.5"), "{value}");
    }
}

/// Found by a review: it said "False schema does not allow the value".
#[tokio::test]
async fn a_tool_that_takes_nothing_says_which_argument_it_does_not_know() {
    let engine = engine().tool(tool("t")).build().unwrap();
    let result = once(&engine, "t", json!({"x": "hunter2"})).await;
    assert!(result.value.contains("\n- `x`: there is no such argument\n"), "{}", result.value);
}

/// Case 32 of the providers' reference, its second half.
#[tokio::test]
async fn the_other_calls_of_the_batch_still_run() {
    let spy = order();
    let calls = vec![
        call("t", json!({"order": "x"})),
        call("t", json!({"order": 2})),
        call("t", json!({})),
    ];
    let results = batch(&spy.engine, calls).await;
    let ok: Vec<_> = results.iter().map(ToolResult::is_ok).collect();
    assert_eq!(ok, [false, true, false]);
    assert_eq!(*spy.ran_with.lock().unwrap(), [json!({"order": 2})]);
}

/// Case 35 of the providers' reference. A schema that is itself malformed fails the build, and a
/// remote tool that has one is withheld: both are our decision, and tested in `schemas`.
#[tokio::test]
async fn more_than_ten_problems_are_counted() {
    let properties: serde_json::Map<_, _> =
        (0..14).map(|n| (format!("p{n}"), json!({"type": "integer"}))).collect();
    let spy = spy(json!({"type": "object", "properties": properties}));
    let wrong: serde_json::Map<_, _> = (0..14).map(|n| (format!("p{n}"), json!("x"))).collect();
    let value = refused(&spy, &once(&spy.engine, "t", wrong.into()).await);
    assert_eq!(value.lines().filter(|line| line.starts_with("- `p")).count(), 10);
    assert!(value.contains("\n- and 4 more"), "{value}");
}

#[tokio::test]
async fn arguments_that_are_not_json_are_refused_and_not_quoted() {
    let spy = order();
    for text in [
        "refund hunter2",
        "{\"order\": hunter2}",
        "{\"order\": \"hunter2",
        "[1",
        "{}}",
        "{} hunter2",
    ] {
        let value = refused(&spy, &unparsed(&spy.engine, text).await);
        assert!(value.contains("not valid JSON"), "{text}: {value}");
        assert!(!value.contains("hunter2"), "{value}");
    }
    let result = unparsed(&spy.engine, "refund hunter2").await;
    assert_eq!(result.args, json!("refund hunter2"), "the operator sees what it was");
}

#[tokio::test]
async fn what_can_be_repaired_runs_with_the_repaired_values() {
    for text in [
        r#"{"order": 7}"#,
        "{order: 7,}",
        "{'order': 7}",
        "```json\n{\"order\": 7}\n```",
        "{\"order\": 7 /* the order */}",
    ] {
        let spy = order();
        let result = unparsed(&spy.engine, text).await;
        assert!(result.is_ok(), "{text}: {}", result.value);
        assert_eq!(result.args, json!({"order": 7}));
        assert_eq!(*spy.ran_with.lock().unwrap(), [json!({"order": 7})]);
    }
    let spy = order();
    let value = refused(&spy, &unparsed(&spy.engine, "{order: 'seven'}").await);
    assert!(value.contains("`order`"), "a repaired call is validated: {value}");
}

#[tokio::test]
async fn empty_arguments_are_an_empty_object() {
    for text in ["", "  \n", "null", "{}"] {
        let spy = spy(json!({"type": "object"}));
        assert!(unparsed(&spy.engine, text).await.is_ok(), "{text:?}");
        assert_eq!(*spy.ran_with.lock().unwrap(), [json!({})]);
    }
}

#[tokio::test]
async fn deeply_nested_arguments_are_refused_without_a_stack_overflow() {
    let spy = order();
    for text in [
        "[".repeat(100_000),
        "{\"a\":".repeat(100_000),
        format!("{{\"order\":{}1{}}}", "[".repeat(5_000), "]".repeat(5_000)),
    ] {
        assert!(unparsed(&spy.engine, &text).await.code == Some(ErrorCode::InputInvalid));
    }
}

#[tokio::test]
async fn arguments_that_pass_the_schema_and_not_the_type_are_the_models_mistake() {
    #[derive(serde::Deserialize)]
    struct Narrow {
        order: u8,
        #[serde(default)]
        lines: Vec<Line>,
    }
    #[derive(serde::Deserialize)]
    struct Line {
        pieces: u32,
    }
    let tool = builder("t")
        .input_schema(json!({"type": "object", "properties": {"order": {"type": "integer"}}}))
        .handler(|args: Narrow, _: ToolContext| async move {
            let pieces: u32 = args.lines.iter().map(|line| line.pieces).sum();
            format!("{} {pieces}", args.order)
        })
        .unwrap();
    let engine = engine().tool(tool).build().unwrap();
    // An integer by the schema is an integer for the type, however it is written.
    let written = json!({"order": 7.0, "lines": [{"pieces": 1}, {"pieces": 2e1}]});
    assert_eq!(&*once(&engine, "t", written).await.value, "7 21");
    let result = once(&engine, "t", json!({"order": 70_000})).await;
    assert_eq!(result.code, Some(ErrorCode::InputInvalid));
    assert_eq!(&*result.value, "argument `order` does not have the type that the tool expects: u8");
    assert!(result.cause.unwrap().contains("70000"), "the operator reads what serde says");
    let quoting = json!({"order": 7, "lines": [{"pieces": 1}, {"pieces": "expected hunter2"}]});
    assert_eq!(
        &*once(&engine, "t", quoting).await.value,
        "argument `lines[1].pieces` does not have the type that the tool expects: u32"
    );
}

// Case 38 of the registry's reference, where such a call has no events; ours has them all.
#[tokio::test]
async fn a_refused_call_has_one_start_and_one_end_like_any_other() {
    let spy = order();
    let mut turn = spy.engine.turn(toolcrib_engine::TurnOptions::default()).unwrap();
    let log = Log::of(turn.events().run());
    let calls = vec![
        call("t", json!({"order": 1})),
        call("t", json!({"order": "x"})),
        call("nothing", json!({"order": 1})),
        ToolCall::unparsed("u", "t", "nonsense"),
    ];
    turn.iteration().await.unwrap().execute(calls).await;
    let (starts, ends) = (log.of_name("tool.start"), log.of_name("tool.end"));
    assert_eq!((starts.len(), ends.len()), (4, 4));
    let mut codes: Vec<_> = ends.iter().map(|end| end["code"].to_string()).collect();
    codes.sort();
    assert_eq!(codes, ["\"input_invalid\"", "\"input_invalid\"", "\"not_available\"", "null"]);
    let digest = args_digest("t", &json!({"order": 1})).to_string();
    assert_eq!(starts[0]["args_digest"], digest);
}

/// Case 33 of the providers' reference asks for modes that warn or look away. There is none here,
/// by our decision: arguments are always validated.
#[tokio::test]
async fn a_tool_runs_only_for_the_calls_that_fit() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let tool: Tool = builder("t")
        .input_schema(
            json!({"type": "object", "properties": {"n": {"type": "integer", "maximum": 9}}}),
        )
        .handler(move |_: Value, _: ToolContext| {
            counted.fetch_add(1, Ordering::SeqCst);
            async { "" }
        })
        .unwrap();
    let engine = engine().tool(tool).build().unwrap();
    let calls = (0..20).map(|n| call("t", json!({ "n": n }))).collect();
    let results = batch(&engine, calls).await;
    for (n, result) in results.iter().enumerate() {
        assert_eq!(result.is_ok(), n < 10, "call {n}");
    }
    assert_eq!(runs.load(Ordering::SeqCst), 10);
}

// Case 39.
#[tokio::test]
async fn a_call_starts_before_its_body_and_ends_after_it_under_one_id() {
    let ran = Arc::new(Mutex::new(Vec::new()));
    let (body, heard) = (Arc::clone(&ran), Arc::clone(&ran));
    let tool = builder("t").handler(move |_: Value, _: ToolContext| {
        body.lock().unwrap().push("body");
        async { "ran" }
    });
    let engine = engine().tool(tool).build().unwrap();
    let log = Log::of(engine.events());
    engine
        .events()
        .on("tool.*", move |event| heard.lock().unwrap().push(event.kind.name()))
        .unwrap();
    once(&engine, "t", json!({})).await;
    assert_eq!(*ran.lock().unwrap(), ["tool.start", "body", "tool.end"]);
    let (start, end) = (log.of_name("tool.start").remove(0), log.of_name("tool.end").remove(0));
    assert_eq!((&start["call_id"], &end["call_id"]), (&json!("id-t"), &json!("id-t")));
    assert_eq!((&start["args"], start["args_digest"].as_str().unwrap().len()), (&json!({}), 64));
}

// Cases 40 and 41.
#[tokio::test]
async fn the_content_id_of_a_call_is_of_what_was_passed_in_whatever_order() {
    let digest = |args: &Value| args_digest("t", args);
    assert_eq!(digest(&json!({"a": 1, "b": [1, 2]})), digest(&json!({"b": [1, 2], "a": 1})));
    for other in [json!({"a": 1, "b": [2, 1]}), json!({"a": 2, "b": [1, 2]}), json!({"a": 1})] {
        assert_ne!(digest(&json!({"a": 1, "b": [1, 2]})), digest(&other));
    }
    assert_ne!(args_digest("t", &json!({})), args_digest("u", &json!({})));
    // A default in the schema is not filled in, so it does not count.
    let spy = spy(json!({
        "type": "object", "properties": { "state": { "type": "string", "default": "open" } },
    }));
    let log = Log::of(spy.engine.events());
    once(&spy.engine, "t", json!({})).await;
    assert_eq!(log.of_name("tool.start")[0]["args_digest"], digest(&json!({})).to_string());
}

// Case 42.
#[tokio::test]
async fn a_body_that_fails_ends_its_call_as_failed_with_the_cause_for_the_operator() {
    let tool = builder("t").handler(|_: Value, _: ToolContext| async {
        let cause = std::io::Error::other("disk 7 is full");
        Err::<String, _>(toolcrib_core::ToolError::failed("it was not saved").caused_by(cause))
    });
    let engine = engine().tool(tool).build().unwrap();
    let log = Log::of(engine.events());
    let result = once(&engine, "t", json!({})).await;
    assert_eq!(
        (result.code, &*result.value),
        (Some(ErrorCode::ExecutionFailed), "it was not saved")
    );
    let end = &log.of_name("tool.end")[0];
    assert_eq!((&end["ok"], &end["code"]), (&json!(false), &json!("execution_failed")));
    assert!(end["cause"].as_str().unwrap().contains("disk 7 is full"));
}
