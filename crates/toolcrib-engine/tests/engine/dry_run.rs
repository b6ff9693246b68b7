//! Dry runs: all decisions on a call, and no effect.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use serde_json::{Value, json};
use toolcrib_core::{
    CallDecision, Effect, ErrorCode, Rule, Tool, ToolBuilder, ToolContext, ToolResult,
    call_approver, call_middleware,
};
use toolcrib_engine::{Engine, TurnOptions};

use crate::support::{Log, builder, call, engine, policy, rule_on};

/// A tool with a number `n` that counts its calls, and says whether they are those of a dry run.
fn counting(builder: ToolBuilder, runs: &Arc<AtomicUsize>) -> Tool {
    let runs = Arc::clone(runs);
    builder
        .input_schema(json!({ "type": "object", "properties": { "n": { "type": "integer" } } }))
        .handler(move |_: Value, cx: ToolContext| {
            runs.fetch_add(1, Ordering::SeqCst);
            async move { format!("dry run: {}", cx.dry_run()) }
        })
        .unwrap()
}

/// `send` is a usual tool, `page` has untrusted results and a schema of them, `show` can be called in a
/// dry run; `post` and `peek` are the same, and need approval; `wipe` is denied.
fn all(runs: &Arc<AtomicUsize>) -> Engine {
    let reason = "Others read it.";
    let ask = |label: &str, tool: &str| Rule {
        reason: Some(reason.into()),
        ..rule_on(label, Effect::Ask, tool)
    };
    engine()
        .tool(counting(builder("send"), runs))
        .tool(counting(
            builder("page").untrusted().output_schema(json!({ "type": "object" })),
            runs,
        ))
        .tool(counting(builder("show").dry_run(), runs))
        .tool(counting(builder("post"), runs))
        .tool(counting(builder("peek").dry_run(), runs))
        .tool(counting(builder("wipe"), runs))
        .policy(policy([
            ask("asks", "p??t"),
            ask("asks too", "peek"),
            rule_on("never", Effect::Deny, "wipe"),
        ]))
        .approver(call_approver(|_| async { panic!("no approver is asked") }))
        .middleware(call_middleware("odd", |call| {
            Ok(match call.args["n"] == json!(13) {
                true => CallDecision::Deny("no 13".into()),
                false => CallDecision::Proceed,
            })
        }))
        .build()
        .unwrap()
}

async fn made(engine: &Engine, options: TurnOptions, tool: &str, args: Value) -> ToolResult {
    let mut turn = engine.turn(options).unwrap();
    turn.iteration().await.unwrap().execute(vec![call(tool, args)]).await.remove(0)
}

#[tokio::test]
async fn a_call_of_a_dry_run_passes_all_checks_and_has_no_effect() {
    let runs = Arc::default();
    let engine = all(&runs);
    let dry = |tool: &'static str, args: Value| {
        made(&engine, TurnOptions::default().dry_run(), tool, args)
    };
    for tool in ["send", "page"] {
        let result = dry(tool, json!({ "n": 1 })).await;
        let plan = result.plan.as_ref().unwrap();
        assert_eq!((result.code, &plan.approval_rule), (None, &None), "{result:?}");
        assert!(result.text.contains("was not called; the call would be made"), "{}", result.text);
        // The text is Toolcrib's.
        assert!(!result.untrusted && !result.text.contains("<untrusted"), "{}", result.text);
        assert_eq!(result.args, json!({ "n": 1 }));
    }
    for (tool, rule) in [("post", "asks"), ("peek", "asks too")] {
        let result = dry(tool, json!({})).await;
        let plan = result.plan.as_ref().unwrap();
        assert_eq!(plan.approval_rule.as_deref(), Some(rule));
        assert_eq!(plan.approval_reason.as_deref(), Some("Others read it."));
        assert!(result.text.contains("would need approval"), "{}", result.text);
    }
    // Refusals are those of a usual turn.
    for (tool, args, code) in [
        ("send", json!({ "n": "x" }), ErrorCode::InputInvalid),
        ("send", json!({ "n": 13 }), ErrorCode::Denied),
        ("wipe", json!({}), ErrorCode::NotAvailable),
        ("gone", json!({}), ErrorCode::NotAvailable),
    ] {
        let result = dry(tool, args).await;
        assert_eq!((result.code, result.plan), (Some(code), None), "{tool}");
    }
    assert_eq!(runs.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_body_runs_in_a_dry_run_only_if_its_tool_declares_it() {
    let runs = Arc::default();
    let engine = all(&runs);
    let options = TurnOptions::default().dry_run();
    let result = made(&engine, options, "show", json!({})).await;
    assert_eq!((&*result.text, result.plan), ("dry run: true", None));
    for tool in ["show", "send"] {
        let result = made(&engine, TurnOptions::default(), tool, json!({})).await;
        assert_eq!((&*result.text, result.plan), ("dry run: false", None));
    }
    assert_eq!(runs.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_dry_run_halts_as_a_usual_turn_does() {
    let runs = Arc::default();
    let engine = engine()
        .tool(counting(builder("trap"), &runs))
        .policy(policy([rule_on("tripwire", Effect::Halt, "trap")]))
        .build()
        .unwrap();
    let log = Log::of(engine.events());
    let result = made(&engine, TurnOptions::default().dry_run(), "trap", json!({})).await;
    assert_eq!((result.code, result.plan), (Some(ErrorCode::Denied), None));
    assert_eq!(log.of_name("policy.denied").len(), 1);
    assert_eq!(runs.load(Ordering::SeqCst), 0);
}
