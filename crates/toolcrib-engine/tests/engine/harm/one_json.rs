//! The arguments that reach the body are those that schema, policy, middleware, approver and events
//! saw.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use toolcrib_core::{
    Approval, ArgumentMatch, CallDecision, Effect, ErrorCode, EventKind, Policy, Rule, Tool,
    ToolCall, ToolContext, ToolContextParts, ToolResult, call_approver, call_middleware,
};
use toolcrib_engine::{Engine, TurnOptions};

use crate::support::{Log, batch, builder, call, engine, once, policy};

const RAW: &str = "$serde_json::private::RawValue";
const NUMBER: &str = "$serde_json::private::Number";

type Seen = Arc<Mutex<Vec<(&'static str, String)>>>;

/// A tool, a middleware and an approver that record the arguments they see, as text.
fn watched() -> (Engine, Seen, Log) {
    let seen = Seen::default();
    let noting = |who: &'static str| {
        let seen = Arc::clone(&seen);
        move |args: &Value| seen.lock().unwrap().push((who, args.to_string()))
    };
    let (body, middleware, approver) = (noting("body"), noting("middleware"), noting("approver"));
    let tool = builder("t")
        .input_schema(json!({ "type": "object" }))
        .handler(move |args: Value, _: ToolContext| {
            body(&args);
            async { "ran" }
        })
        .unwrap();
    let engine = engine()
        .tool(tool)
        .policy(policy([Rule::new("asked", Effect::Ask)]))
        .middleware(call_middleware("notes", move |call| {
            middleware(call.args);
            Ok(CallDecision::Proceed)
        }))
        .approver(call_approver(move |call| {
            approver(call.args);
            async { Approval::Approved }
        }))
        .build()
        .unwrap();
    let log = Log::of(engine.events());
    (engine, seen, log)
}

/// Makes a call, and checks that all of them saw the same arguments.
fn check(call: ToolCall) -> ToolResult {
    let (engine, seen, log) = watched();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let result = runtime.block_on(batch(&engine, vec![call])).remove(0);
    let started = log.kinds().into_iter().find_map(|kind| match kind {
        EventKind::ToolStart { args, .. } => Some(args.to_string()),
        _ => None,
    });
    let seen = seen.lock().unwrap().clone();
    if result.is_ok() {
        let who: Vec<_> = seen.iter().map(|(who, _)| *who).collect();
        assert_eq!(who, ["middleware", "approver", "body"]);
        for (who, args) in &seen {
            assert_eq!(Some(args), started.as_ref(), "{who}");
            assert_eq!(*args, result.args.to_string(), "{who}");
        }
    } else {
        assert_eq!(result.code, Some(ErrorCode::InputInvalid), "{}", result.text);
        assert!(seen.is_empty(), "{seen:?}");
    }
    result
}

fn text(arguments: &str) -> ToolResult {
    check(ToolCall::unparsed("1", "t", arguments))
}

#[test]
fn a_key_that_the_json_library_expands_reached_the_body_as_another_value() {
    let hidden = format!(r#"{{path: {{"{RAW}": "\"/etc/passwd\""}},}}"#);
    let strict = format!(r#"{{"path": {{"{RAW}": "\"/etc/passwd\""}}}}"#);
    let escaped = strict.replace('$', "\\u0024");
    let behind = format!(r#"{{"a": {{"b": 1, "{RAW}": "2"}}}}"#);
    let number = format!(r#"{{path: {{"{NUMBER}": "1"}},}}"#);
    for arguments in [&hidden, &strict, &escaped, &behind, &number] {
        assert_eq!(text(arguments).code, Some(ErrorCode::InputInvalid), "{arguments}");
    }
    let told = text(&strict).text;
    assert!(told.contains("a key begins with `$serde_json::private::`"), "{told}");
    let data = json!({ "path": { RAW: "\"/etc/passwd\"" } });
    assert_eq!(check(call("t", data.clone())).code, Some(ErrorCode::InputInvalid));
    let parsed = json!({ "id": "1", "name": "t", "arguments": data });
    assert!(serde_json::from_str::<ToolCall>(&parsed.to_string()).is_err());
}

#[tokio::test]
async fn a_deny_on_a_path_and_a_schema_pattern_were_passed() {
    let secret = Rule::deny("no secrets")
        .arguments([ArgumentMatch::at("/path").unwrap().starts_with("/etc/")]);
    let tool = builder("read")
        .input_schema(json!({ "type": "object", "properties": { "path": {} } }))
        .handler(|args: Value, _: ToolContext| async move { args["path"].to_string() })
        .unwrap();
    let engine = engine().tool(tool).policy(Policy::of([secret])).build().unwrap();
    assert_eq!(
        once(&engine, "read", json!({ "path": "/etc/x" })).await.code,
        Some(ErrorCode::Denied)
    );
    let around = format!(r#"{{path: {{"{RAW}": "\"/etc/x\""}},}}"#);
    let result = batch(&engine, vec![ToolCall::unparsed("1", "read", around)]).await.remove(0);
    assert_eq!(result.code, Some(ErrorCode::InputInvalid), "{}", result.text);
}

#[tokio::test]
async fn a_middleware_passed_on_a_key_that_was_expanded_before_the_body() {
    let engine = engine()
        .tool(crate::support::tool("t"))
        .middleware(call_middleware("rewrites", |_| {
            Ok(CallDecision::Rewrite(json!({ "path": { "a": 1, RAW: "\"/etc/passwd\"" } })))
        }))
        .build()
        .unwrap();
    let result = once(&engine, "t", json!({})).await;
    assert_eq!(result.code, Some(ErrorCode::Denied));
    assert!(result.cause.unwrap().contains("the arguments that it passes instead are refused"));
}

#[tokio::test]
async fn the_same_text_was_read_once_for_policy_and_once_more_for_the_body() {
    // Also without the engine: a body that takes a value gets the one that it is called with.
    let tool = builder("t").handler(|args: Value, _: ToolContext| async move { args.to_string() });
    let tool: Tool = tool.unwrap();
    let args = json!({ "a": { RAW: "[1]" } });
    let output = tool.call(args.clone(), ToolContextParts::detached().into()).await.unwrap();
    assert_eq!(output.value, args.to_string());
}

#[test]
fn of_two_equal_keys_one_was_checked_and_the_other_one_could_be_meant() {
    for arguments in [
        r#"{"path": "/tmp/a", "path": "/etc/passwd"}"#,
        r#"{"path": "/tmp/a", "\u0070ath": "/etc/passwd"}"#,
        r#"{"in": [{"path": 1, "path": 1}]}"#,
        r#"{path: "/tmp/a", path: "/etc/passwd"}"#,
        "```json\n{\"path\": 1, \"path\": 2}\n```",
    ] {
        let result = text(arguments);
        assert_eq!(result.code, Some(ErrorCode::InputInvalid), "{arguments}");
    }
    let told = text(r#"{"path": "/tmp/a", "path": "/etc/passwd"}"#).text;
    assert!(told.contains("duplicate key in an object"), "{told}");
    assert!(!told.contains("passwd"), "{told}");
}

#[test]
fn a_text_of_2_kb_expanded_to_a_depth_that_ended_the_process() {
    let mut nested = String::from("1");
    for _ in 0..12 {
        let deeper = format!("{}{nested}{}", "[".repeat(125), "]".repeat(125));
        nested = json!({ RAW: deeper }).to_string();
    }
    assert_eq!(text(&format!("{{\"a\": {nested}}}")).code, Some(ErrorCode::InputInvalid));
    assert_eq!(text(&format!("{{a: {nested},}}")).code, Some(ErrorCode::InputInvalid));
}

#[test]
fn numbers_and_characters_are_what_everybody_sees() {
    for (arguments, seen) in [
        (r#"{"a": 10.0, "b": -0, "c": 1e2}"#, Some(r#"{"a":10,"b":0,"c":100}"#)),
        (r#"{"a": 123456789012345678901234567890}"#, None),
        (r#"{"a": 123456789012345678901234567890.5}"#, Some(r#"{"a":1.2345678901234568e+29}"#)),
        (r#"{"a": 18446744073709551615}"#, Some(r#"{"a":18446744073709551615}"#)),
        (r#"{"a": "\u0000"}"#, Some(r#"{"a":"\u0000"}"#)),
        ("\u{feff}{\"a\": 1}", Some(r#"{"a":1}"#)),
        (r#"{"a": 1e400}"#, None),
        (r#"{"a": NaN}"#, None),
        (r#"{"a": "\ud83d"}"#, None),
        (r#"{"a": 1} {"a": 2}"#, None),
    ] {
        let result = text(arguments);
        assert_eq!(result.is_ok().then(|| result.args.to_string()).as_deref(), seen, "{arguments}");
    }
}

/// Texts of a hostile model: JSON and JSON5, with duplicate or reserved keys, deep, with odd
/// numbers and escapes.
fn hostile() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        Just("null".to_owned()),
        "-?[0-9]{1,25}(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,3})?",
        "\"([a-z/$ ]|\\\\u00[0-7][0-9a-f]|\\\\ud83d|\\\\\"){0,8}\"",
        "'[a-z/]{0,4}'",
        Just(r#""[{\"a\": 1}]""#.to_owned()),
    ];
    let key = prop_oneof![
        "\"[ab]\"",
        "[ab]",
        Just(format!("\"{RAW}\"")),
        Just(format!("\"{NUMBER}\"")),
        Just("\"\\u0024serde_json::private::RawValue\"".to_owned()),
    ];
    let value = scalar.prop_recursive(4, 24, 4, move |inner| {
        let entry = (key.clone(), inner.clone()).prop_map(|(key, value)| format!("{key}: {value}"));
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3)
                .prop_map(|items| format!("[{}]", items.join(", "))),
            prop::collection::vec(entry, 0..4)
                .prop_map(|entries| format!("{{{}}}", entries.join(", "))),
        ]
    });
    prop_oneof![
        4 => value.clone().prop_map(|value| format!("{{\"x\": {value}}}")),
        2 => value.clone().prop_map(|value| format!("{{x: {value},}}")),
        1 => value.prop_map(|value| format!("```json\n{{\"x\": {value}}}\n```")),
        1 => "[\\[\\]{}\"':,a0 \\\\u$]{0,40}",
    ]
}

/// Data as code passes it, with reserved keys among the others.
fn data() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
        Just(json!("[1]")),
    ];
    let key = prop_oneof![4 => "[ab]", 1 => Just(RAW.to_owned()), 1 => Just(NUMBER.to_owned())];
    scalar.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..4)
                .prop_map(|entries| entries.into_iter().collect::<Map<_, _>>().into()),
        ]
    })
}

proptest! {
    #[test]
    fn what_policy_saw_is_what_the_body_got_of_a_text(arguments in hostile()) {
        text(&arguments);
    }

    #[test]
    fn what_policy_saw_is_what_the_body_got_of_data(arguments in data()) {
        check(call("t", json!({ "x": arguments })));
    }
}

/// The types that bodies read arguments into see what was checked, too.
#[tokio::test]
async fn a_typed_body_reads_no_other_value() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let body = Arc::clone(&seen);
    let tool = builder("t")
        .input_schema(json!({ "type": "object" }))
        .handler(move |args: Map<String, Value>, _: ToolContext| {
            body.lock().unwrap().push(Value::Object(args).to_string());
            async { "ran" }
        })
        .unwrap();
    let engine = engine().tool(tool).build().unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let mut iteration = turn.iteration().await.unwrap();
    let hidden = format!(r#"{{a: {{b: 1, "{RAW}": "2"}},}}"#);
    let calls =
        vec![call("t", json!({ "a": [{ "b": 1.0 }] })), ToolCall::unparsed("2", "t", hidden)];
    let results = iteration.execute(calls).await;
    assert_eq!(*seen.lock().unwrap(), [r#"{"a":[{"b":1}]}"#]);
    assert_eq!(results[1].code, Some(ErrorCode::InputInvalid));
}

#[test]
fn an_integer_of_more_than_64_bits_reached_the_body_with_other_digits() {
    for arguments in [
        r#"{"charge": 123456789012345678901234567890}"#,
        r#"{"of": [{"amount": -9223372036854775809}]}"#,
        r#"{"id": 18446744073709551617}"#,
        "{charge: 123456789012345678901234567890,}",
        "```json\n{\"charge\": 123456789012345678901234567890}\n```",
    ] {
        let told = text(arguments);
        assert_eq!(told.code, Some(ErrorCode::InputInvalid), "{arguments}");
        assert!(told.text.contains("pass it as a string"), "{arguments}: {}", told.text);
    }
    for arguments in [
        r#"{"charge":"123456789012345678901234567890"}"#,
        r#"{"id":18446744073709551615,"low":-9223372036854775808}"#,
        // A float is what it says, and here exactly that integer.
        r#"{"far":1e+300,"exact":100000000000000000000}"#,
    ] {
        assert!(text(arguments).is_ok(), "{arguments}");
    }
}
