//! The check of tools: valid ones pass, and for each clause a violation is found. Also test tools.

use std::{
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::time::sleep;
use toolcrib_core::{
    ErrorCode, IntoToolOutput, Tool, ToolBuilder, ToolContext, ToolContextParts, ToolError,
    ToolOutput,
};
use toolcrib_testing::{CheckReport, Clause, TestTool, Violations, check_tool, paused, tool};

use crate::support::failure;

fn builder() -> ToolBuilder {
    Tool::builder("find_order").description("The state of an order.").input_schema(json!({
        "type": "object",
        "properties": { "order": { "type": "integer", "minimum": 0 }, "note": { "type": "string" } },
        "required": ["order"],
        "additionalProperties": false,
    }))
}

fn sample() -> Value {
    json!({ "order": 1042 })
}

/// A tool made from a plain function.
fn by<T: IntoToolOutput>(
    builder: ToolBuilder,
    body: impl Fn(&Value) -> T + Send + Sync + 'static,
) -> Tool {
    TestTool::of(builder).answers(body).tool()
}

fn check(tool: &Tool) -> Result<CheckReport, Violations> {
    paused(check_tool(tool, [sample()]))
}

#[track_caller]
fn breaks<const N: usize>(tool: &Tool, clauses: [Clause; N]) -> String {
    let violations = check(tool).unwrap_err();
    assert_eq!(violations.clauses(), clauses.into(), "{violations}");
    violations.to_string()
}

#[test]
fn a_sound_tool_is_tried_for_everything() {
    let make = || {
        builder().read_only().max_result_chars(500).timeout(Duration::from_secs(5)).handler(
            |args: Value, cx: ToolContext| async move {
                tokio::select! {
                    () = sleep(Duration::from_secs(2)) => {}
                    () = cx.cancellation().cancelled() => {
                        return Err(ToolError::new(ErrorCode::Cancelled, "stopped"));
                    }
                }
                match args["note"].as_str() {
                    Some(_) => Err(ToolError::input_invalid("`note` is not taken yet")),
                    None => Ok(ToolOutput::text("on its way").structured(json!({ "ok": true }))),
                }
            },
        )
    };
    let check =
        check_tool(&make().unwrap(), [sample(), json!({ "order": 1, "note": "to be kept short" })])
            .rejects([json!({}), json!({ "order": "1" }), json!({ "order": -1 }), json!([])])
            .again(&make().unwrap());
    let checked = paused(check.assert());
    let all = [
        Clause::SchemaEnforceable,
        Clause::SchemaAccepts,
        Clause::SchemaRejects,
        Clause::SameDefinition,
        Clause::EndsInTime,
        Clause::HasText,
        Clause::FitsItsCap,
        Clause::Repeatable,
        Clause::ErrorsWithoutValues,
        Clause::StopsWhenCancelled,
        Clause::NeverPanics,
        Clause::TakesWhatItsSchemaTakes,
    ];
    assert_eq!(checked.clauses(), &all.into());
}

#[test]
fn a_tool_that_does_not_say_that_it_is_read_only_is_called_with_nothing_that_is_made_up() {
    let count = Arc::new(Mutex::new(vec![]));
    let seen = Arc::clone(&count);
    let tool = by(builder(), move |args| {
        seen.lock().unwrap().push(args.clone());
        "done"
    });
    let checked = check(&tool).unwrap();
    assert!(!checked.tried(Clause::Repeatable) && !checked.tried(Clause::TakesWhatItsSchemaTakes));
    assert_eq!(*count.lock().unwrap(), vec![sample(); 2], "once, and once to be cancelled");
    count.lock().unwrap().clear();
    let checked = paused(check_tool(&tool, [sample()]).generate(10, 1)).unwrap();
    assert!(checked.tried(Clause::TakesWhatItsSchemaTakes));
    assert_eq!(count.lock().unwrap().len(), 12);
    let first: Vec<Value> = count.lock().unwrap().drain(..).collect();
    paused(check_tool(&tool, [sample()]).generate(10, 1)).unwrap();
    assert_eq!(*count.lock().unwrap(), first, "the same seed, the same values");
    count.lock().unwrap().clear();
    paused(check_tool(&tool, [sample()]).generate(10, 2)).unwrap();
    assert_ne!(*count.lock().unwrap(), first);
}

#[test]
fn a_schema_that_cannot_be_enforced_is_found_and_no_body_is_called() {
    for schema in [
        json!({ "type": "object", "properties": { "a": { "type": "strin" } } }),
        json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/gone" } } }),
        json!({ "type": "object", "properties": { "a": { "$ref": "http://example.com/a.json" } } }),
        json!({ "type": "object", "properties": { "a": { "pattern": "(?>a)b" } } }),
    ] {
        let spy = TestTool::of(builder().input_schema(schema));
        let text = breaks(&spy.tool(), [Clause::SchemaEnforceable]);
        assert!(
            text.contains("the input schema of tool `find_order` (code) cannot be enforced"),
            "{text}"
        );
        spy.assert_never_called();
    }
}

#[test]
fn a_schema_that_accepts_or_rejects_the_wrong_things_is_found() {
    let spy = TestTool::of(builder());
    let check = check_tool(&spy.tool(), [json!({ "order": "1042" })]);
    let violations = paused(check).unwrap_err();
    assert_eq!(violations.clauses(), [Clause::SchemaAccepts].into());
    assert!(violations.to_string().contains("`order`: "), "{violations}");
    spy.assert_never_called();
    let check = check_tool(&spy.tool(), []).rejects([json!({}), json!({ "order": 0 }), json!("x")]);
    let violations = paused(check).unwrap_err();
    assert_eq!(violations.clauses(), [Clause::SchemaRejects].into());
    assert!(
        violations.to_string().ends_with(
            r#"the schema must reject the arguments of `rejects`: it accepts {"order":0}"#
        ),
        "{violations}"
    );
    spy.assert_never_called();
}

#[test]
fn a_tool_that_is_another_one_when_made_again_is_found() {
    let tool = tool("t").tool();
    let other = Tool::builder("t").description("Made at noon.");
    let other = other.handler(|_: Value, _: ToolContext| async { "" }).unwrap();
    let violations = paused(check_tool(&tool, []).again(&other)).unwrap_err();
    assert_eq!(violations.clauses(), [Clause::SameDefinition].into());
    assert!(violations.to_string().contains("Made at noon."));
    paused(check_tool(&tool, []).again(&tool)).unwrap();
}

#[test]
fn a_body_that_panics_is_found_with_samples_and_with_what_is_made_up() {
    let text = breaks(&TestTool::of(builder()).panics("bug").tool(), [Clause::NeverPanics]);
    assert!(text.ends_with("it must not panic: it panicked: bug"), "{text}");
    // The first letter of a text that may be empty.
    let tool = by(builder().read_only(), |args| match args["note"].as_str() {
        Some(note) => note.chars().next().expect("a letter").to_string(),
        None => "no note".to_owned(),
    });
    let text = breaks(&tool, [Clause::TakesWhatItsSchemaTakes]);
    assert!(text.contains("it panicked: a letter, with"), "{text}");
    assert!(text.contains(r#""note":"""#), "{text}");
    // An order that is too large for arithmetic.
    let tool = by(builder().read_only(), |args| {
        i32::try_from(args["order"].as_i64().unwrap()).unwrap().to_string()
    });
    breaks(&tool, [Clause::TakesWhatItsSchemaTakes]);
    // A tool that hangs on an unexpected value.
    let tool = builder().read_only().handler(|args: Value, cx: ToolContext| async move {
        if args["note"].is_string() {
            cx.cancellation().cancelled().await;
        }
        "done"
    });
    let text = breaks(&tool.unwrap(), [Clause::TakesWhatItsSchemaTakes]);
    assert!(text.contains("did not end within 60s"), "{text}");
}

#[test]
fn a_body_that_does_not_end_within_its_timeout_is_found() {
    let slow = |timeout: Option<u64>| {
        let builder = match timeout {
            Some(seconds) => builder().timeout(Duration::from_secs(seconds)),
            None => builder(),
        };
        let body = |_: Value, cx: ToolContext| async move {
            tokio::select! {
                () = sleep(Duration::from_secs(40)) => "done",
                () = cx.cancellation().cancelled() => "stopped",
            }
        };
        builder.handler(body).unwrap()
    };
    let text = breaks(&slow(Some(5)), [Clause::EndsInTime]);
    assert!(text.ends_with("it did not end within 5s"), "{text}");
    check(&slow(Some(50))).unwrap();
    check(&slow(None)).unwrap();
}

#[test]
fn a_body_that_does_not_stop_when_cancelled_is_found() {
    let deaf = |_: Value, _: ToolContext| async {
        sleep(Duration::from_secs(20)).await;
        "done"
    };
    let tool = builder().handler(deaf).unwrap();
    let text = breaks(&tool, [Clause::StopsWhenCancelled]);
    assert!(text.ends_with("it still ran 1s after its token fired"), "{text}");
    paused(check_tool(&tool, [sample()]).stop_within(Duration::from_secs(30)).assert());
    paused(check_tool(&tool, [sample()]).without(Clause::StopsWhenCancelled).assert());
}

/// The clock does not advance while the blocking pool works, so only real time detects this one.
#[test]
fn a_blocking_body_that_does_not_stop_is_found_on_a_clock_that_stands_still() {
    let calls = AtomicUsize::new(0);
    let (go, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let deaf = builder()
        .blocking(move |_: Value, _: ToolContext| {
            if calls.fetch_add(1, Ordering::SeqCst) > 0 {
                let _ = wait.lock().unwrap().recv();
            }
            "done"
        })
        .unwrap();
    let began = Instant::now();
    let violations = paused(async {
        let found = check_tool(&deaf, [sample()]).stop_within(Duration::from_millis(50)).await;
        drop(go);
        found.unwrap_err()
    });
    assert_eq!(violations.clauses(), [Clause::StopsWhenCancelled].into(), "{violations}");
    assert!(began.elapsed() < Duration::from_secs(300));
    let calls = AtomicUsize::new(0);
    let heeding = builder().blocking(move |_: Value, cx: ToolContext| {
        // The second call is the one that is cancelled.
        if calls.fetch_add(1, Ordering::SeqCst) != 1 {
            return "done";
        }
        while !cx.cancellation().is_cancelled() {
            std::thread::sleep(Duration::from_millis(1));
        }
        "stopped"
    });
    let check = check_tool(&heeding.unwrap(), [sample()]).stop_within(Duration::from_secs(300));
    let checked = paused(check.assert());
    assert!(checked.tried(Clause::StopsWhenCancelled));
}

#[test]
fn a_result_without_a_text_is_found() {
    for text in ["", "  \n"] {
        breaks(&by(builder(), move |_| text), [Clause::HasText]);
    }
    let data = |_: &Value| ToolOutput::text("").structured(json!({ "rows": 7 }));
    breaks(&by(builder(), data), [Clause::HasText]);
}

#[test]
fn a_result_of_which_its_cap_leaves_nothing_is_found() {
    let fenced = by(builder().untrusted().max_result_chars(100), |_| "x".repeat(500));
    let text = breaks(&fenced, [Clause::FitsItsCap]);
    let found = "a text of 500 characters exceeds the cap of 100, and nothing of it is left";
    assert!(text.contains(found), "{text}");
    let rows = |n: usize| json!({ "rows": vec!["a row of some length"; n] });
    let tool = by(builder().max_result_chars(200), move |_| {
        ToolOutput::text("many rows").structured(rows(100))
    });
    let text = breaks(&tool, [Clause::FitsItsCap]);
    assert!(text.contains("its data exceeds the cap of 200 characters"), "{text}");
    // Within the cap; over it and truncated with text left; no cap at all; a fence counts too.
    check(&by(builder().max_result_chars(600), |_| "x".repeat(500))).unwrap();
    check(&by(builder().max_result_chars(300), |_| "x".repeat(500))).unwrap();
    check(&by(builder(), |_| "x".repeat(100_000))).unwrap();
    check(&by(builder().untrusted().max_result_chars(300), |_| "x".repeat(500))).unwrap();
}

#[test]
fn a_read_only_tool_that_changes_is_found() {
    let counting = |builder: ToolBuilder, fails: bool| {
        let count = AtomicUsize::new(0);
        by(builder, move |_| {
            let n = count.fetch_add(1, Ordering::SeqCst);
            if fails {
                Err(ToolError::failed(format!("failure {n}")))
            } else {
                Ok(format!("read {n} times"))
            }
        })
    };
    let text = breaks(&counting(builder().read_only(), false), [Clause::Repeatable]);
    assert!(text.ends_with(r#"first it gave "read 0 times", then "read 1 times""#), "{text}");
    let text = breaks(&counting(builder().read_only(), true), [Clause::Repeatable]);
    assert!(
        text.ends_with(r#"first it gave the error "failure 0", then the error "failure 1""#),
        "{text}"
    );
    check(&counting(builder(), false)).unwrap();
    let clock = check_tool(&counting(builder().read_only(), false), [sample()]);
    paused(clock.without(Clause::Repeatable).assert());
    // The cost may differ.
    let cost = AtomicUsize::new(0);
    let paid = by(builder().read_only(), move |_| {
        ToolOutput::text("the same").cost(if cost.fetch_add(1, Ordering::SeqCst) == 0 {
            0.5
        } else {
            0.0
        })
    });
    check(&paid).unwrap();
}

#[test]
fn an_error_that_repeats_an_argument_is_found() {
    let secret = json!({ "order": 1, "note": "sk-very-secret" });
    let quoting = |builder: ToolBuilder| {
        by(builder, |args| Err::<String, _>(ToolError::failed(format!("I do not take {args}"))))
    };
    let violations = paused(check_tool(&quoting(builder()), [secret.clone()])).unwrap_err();
    assert_eq!(violations.clauses(), [Clause::ErrorsWithoutValues].into());
    assert!(violations.to_string().ends_with(r#"contains "sk-very-secret""#), "{violations}");
    // Not detectable: the sample contains no text. Generated values do.
    check(&quoting(builder())).unwrap();
    breaks(&quoting(builder().read_only()), [Clause::ErrorsWithoutValues]);
    // A cause is for the operator.
    let causing = by(builder(), |args| {
        Err::<String, _>(ToolError::failed("I do not take that").caused_by(args.to_string()))
    });
    let checked = paused(check_tool(&causing, [secret])).unwrap();
    assert!(checked.tried(Clause::ErrorsWithoutValues));
    // The schema's own texts are not secret.
    let choice = Tool::builder("t").description("A choice.").input_schema(json!({
        "type": "object", "properties": { "kind": { "enum": ["by-parcel", "by-letter"] } }
    }));
    let naming = by(choice, |_| Err::<String, _>(ToolError::failed("no by-parcel today")));
    paused(check_tool(&naming, [json!({ "kind": "by-parcel" })])).unwrap();
}

#[test]
fn values_are_made_for_schemas_of_the_common_kind() {
    let schema = json!({
        "type": "object",
        "properties": {
            "id": { "type": "integer", "minimum": 5, "exclusiveMaximum": 10, "multipleOf": 1 },
            "ratio": { "type": "number", "minimum": 0, "maximum": 1 },
            "flag": { "type": "boolean" },
            "kind": { "enum": ["a", "b", 3] },
            "fixed": { "const": { "x": 1 } },
            "tags": { "type": "array", "items": { "type": "string", "maxLength": 3 }, "minItems": 1, "maxItems": 2 },
            "name": { "type": "string", "minLength": 2, "maxLength": 60 },
            "maybe": { "type": ["null", "string"] },
            "either": { "anyOf": [{ "type": "integer" }, { "$ref": "#/$defs/point" }] },
            "free": {},
        },
        "required": ["id", "ratio", "flag", "kind", "fixed", "tags", "name", "maybe", "either", "free"],
        "additionalProperties": false,
        "$defs": {
            "point": { "type": "object", "properties": { "x": { "type": "number" }, "next": { "$ref": "#/$defs/point" } }, "required": ["x"] },
        },
    });
    let seen = Arc::new(Mutex::new(vec![]));
    let kept = Arc::clone(&seen);
    let tool = by(builder().input_schema(schema), move |args| {
        kept.lock().unwrap().push(args.clone());
        "fine"
    });
    paused(check_tool(&tool, []).generate(200, 7).assert());
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 200, "a value that fits is found each time");
    let some = |wanted: fn(&Value) -> bool| seen.iter().any(wanted);
    assert!(some(|args| args["id"] == 5) && some(|args| args["id"] == 9));
    assert!(some(|args| args["ratio"] == 1.0) && some(|args| args["ratio"] == 0.0));
    assert!(some(|args| args["kind"] == 3) && some(|args| args["tags"] == json!([""])));
    assert!(some(|args| args["maybe"].is_null()) && some(|args| args["maybe"].is_string()));
    assert!(
        some(|args| args["either"].is_number())
            && some(|args| args["either"]["next"]["x"].is_number())
    );
    assert!(some(|args| args["name"].as_str().is_some_and(|name| name.chars().count() == 60)));
    assert!(some(|args| args["name"].as_str().is_some_and(|name| name.contains('\0'))));
}

#[test]
fn where_a_value_cannot_be_made_up_parts_of_samples_help() {
    let schema = json!({
        "type": "object",
        "properties": { "code": { "type": "string", "pattern": "^[A-Z]{3}-[0-9]{4}$" }, "n": { "type": "integer" } },
        "required": ["code", "n"],
    });
    let spy = TestTool::of(builder().input_schema(schema));
    let check = check_tool(&spy.tool(), [json!({ "code": "ABC-1234", "n": 1 })]).generate(20, 0);
    assert!(paused(check.assert()).tried(Clause::TakesWhatItsSchemaTakes));
    assert!(spy.calls().iter().all(|args| args["code"] == "ABC-1234"));
    assert!(spy.calls().iter().any(|args| args["n"] != 1));
    // If no value can be generated, the clause counts as not tested.
    let check = check_tool(&spy.tool(), []).generate(20, 0);
    assert!(!paused(check.assert()).tried(Clause::TakesWhatItsSchemaTakes));
}

#[test]
fn a_context_of_ones_own_reaches_the_body() {
    let seen = Arc::new(Mutex::new(String::new()));
    let kept = Arc::clone(&seen);
    let noting = builder().handler(move |_: Value, cx: ToolContext| {
        *kept.lock().unwrap() = cx.working_dir().display().to_string();
        async { "noted" }
    });
    let context = || ToolContextParts {
        working_dir: Arc::from(Path::new("/some/where")),
        ..ToolContextParts::detached()
    };
    paused(check_tool(&noting.unwrap(), [sample()]).context(context).assert());
    assert_eq!(*seen.lock().unwrap(), "/some/where");
}

#[test]
fn a_tool_of_a_test_does_as_it_is_told_and_remembers() {
    let spy = tool("t");
    paused(async {
        let call = |n: u8| spy.tool().call(json!({ "n": n }), ToolContextParts::detached().into());
        assert_eq!(call(1).await.unwrap().value, "ran");
        let _ = spy.clone().says("text");
        assert_eq!(call(2).await.unwrap().value, "text");
        let _ = spy.clone().answers(|args| args["n"].clone());
        assert_eq!(call(3).await.unwrap().structured, Some(json!(3)));
        let _ = spy.clone().fails(ErrorCode::StaleWrite, "too late");
        assert_eq!(call(4).await.unwrap_err().code, ErrorCode::StaleWrite);
        let _ = spy.clone().never_returns();
        let endless = call(5);
        assert_eq!(spy.running(), 1);
        drop(endless);
    });
    assert_eq!(spy.running(), 0);
    let numbers: Vec<_> = spy.calls().iter().map(|args| args["n"].clone()).collect();
    assert_eq!(json!(numbers), json!([1, 2, 3, 4, 5]));
    assert!(failure(|| tool("no name")).contains("`no name` is not a tool name"));
}

#[test]
fn the_assertion_shows_what_is_broken() {
    let silent = by(builder(), |_| "");
    let text = failure(|| paused(check_tool(&silent, [sample()]).assert()));
    assert_eq!(
        text,
        "tool `find_order` breaks its contract:\n- a result must have a text: its text is empty"
    );
}
