//! A call of `call_tool` is judged, and leaves traces, as a direct call of its target does.

use std::{
    error::Error,
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};
use toolcrib_core::{
    Approval, ApprovalRequest, ArgumentMatch, BoxFuture, CallDecision, Effect, ErrorCode, Journal,
    Middleware, PendingCall, Policy, Rule, Tool, ToolCall, ToolResult, call_approver,
    call_middleware,
};
use toolcrib_engine::{CALL_TOOL, EngineBuilder, TurnOptions};

use crate::{
    deferral::deferred,
    support::{Log, builder, engine, once, policy, rule_on, says},
};

/// Notes what it is asked to record.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    fn add(&self, what: &str, call: &PendingCall<'_>) {
        let note = format!("{what} {} {} {}", call.tool.name(), call.args, call.args_digest);
        self.0.lock().unwrap().push(note);
    }
}

impl Journal for Notes {
    fn intent<'a>(
        &'a self,
        call: PendingCall<'a>,
    ) -> BoxFuture<'a, Result<(), Box<dyn Error + Send + Sync>>> {
        self.add("intent", &call);
        Box::pin(async { Ok(()) })
    }

    fn outcome<'a>(
        &'a self,
        call: PendingCall<'a>,
        code: Option<ErrorCode>,
        _: Option<&'a ToolResult>,
    ) -> BoxFuture<'a, ()> {
        self.add(&format!("outcome {code:?}"), &call);
        Box::pin(async {})
    }
}

/// Everything that a call leaves behind, without times.
#[derive(Debug, PartialEq)]
struct Traces {
    events: Vec<Value>,
    notes: Vec<String>,
    value: String,
    code: Option<ErrorCode>,
}

async fn traces(rules: &[Rule], tools: &[Tool], call: ToolCall) -> Traces {
    traces_of(engine(), rules, tools, call).await
}

async fn traces_of(
    engine: EngineBuilder,
    rules: &[Rule],
    tools: &[Tool],
    call: ToolCall,
) -> Traces {
    let notes = Notes::default();
    let asked = notes.clone();
    let approver = call_approver(move |call: &ApprovalRequest<'_>| {
        asked.add("approve", call);
        async { Approval::Approved }
    });
    let engine = engine
        .tools(tools.iter().cloned())
        .policy(Policy::of(rules.iter().cloned()))
        .journal(notes.clone())
        .approver(approver)
        .build()
        .unwrap();
    let log = Log::of(engine.events());
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let mut iteration = turn.iteration().await.unwrap();
    let result = iteration.execute(vec![call]).await.remove(0);
    let events = log.events().into_iter().filter_map(|event| {
        let mut event = serde_json::to_value(&event.kind).unwrap();
        if !event["type"].as_str().unwrap().starts_with("tools.") {
            event.as_object_mut().unwrap().remove("duration_ms");
            return Some(event);
        }
        None
    });
    let events = events.collect();
    let notes = notes.0.lock().unwrap().clone();
    Traces { events, notes, value: result.value.to_string(), code: result.code }
}

#[tokio::test]
async fn call_tool_leaves_the_traces_of_a_direct_call() {
    let schema = json!({
        "type": "object",
        "properties": { "order": { "type": "integer" }, "note": { "type": "string" } },
        "required": ["order"],
    });
    let refund = builder("refund").input_schema(schema).max_result_chars(400).untrusted();
    let much = "much ".repeat(200);
    let tools = [deferred("other", "Something else."), says(refund.deferred(true), &much)];
    let on = |rule: Rule| rule.tools(["refund"]);
    let cents = || [ArgumentMatch::at("/order").unwrap().greater_than(1_000)];
    let lists = [
        vec![],
        vec![on(Rule::ask("ask"))],
        vec![on(Rule::deny("no"))],
        vec![on(Rule::halt("halt"))],
        vec![on(Rule::deny("large")).arguments(cents())],
    ];
    for rules in &lists {
        for arguments in [
            json!({ "order": 1042 }),
            json!({ "order": 7.0, "note": null }),
            json!({ "order": "text" }),
            json!({}),
        ] {
            let id = "one-id";
            let direct = ToolCall::new(id, "refund", arguments.clone());
            let target = json!({ "tool": "refund", "arguments": arguments });
            let through = ToolCall::new(id, CALL_TOOL, target.clone());
            let as_text = ToolCall::unparsed(id, CALL_TOOL, target.to_string());
            let expected = traces(rules, &tools, direct).await;
            assert_eq!(traces(rules, &tools, through).await, expected);
            assert_eq!(traces(rules, &tools, as_text).await, expected);
        }
    }
}

/// A middleware that multiplies the order by ten.
fn tenfold() -> impl Middleware {
    call_middleware("tenfold", |call| {
        let order = call.args["order"].as_i64().unwrap_or_default();
        Ok(CallDecision::Rewrite(json!({ "order": order * 10 })))
    })
}

/// A deferred tool with an order.
fn refund() -> Tool {
    let schema = json!({
        "type": "object",
        "properties": { "order": { "type": "integer" } },
        "required": ["order"],
    });
    says(builder("refund").input_schema(schema).deferred(true), "refunded")
}

#[tokio::test]
async fn a_rewritten_call_of_call_tool_is_judged_like_a_direct_one() {
    let tools = [refund()];
    let above = |number: i64| [ArgumentMatch::at("/order").unwrap().greater_than(number)];
    let rules = [
        Rule::deny("large").tools(["refund"]).arguments(above(1_000)),
        Rule::ask("ask").tools(["refund"]).arguments(above(100)),
    ];
    let mut codes = Vec::new();
    for order in [1, 50, 500, 5_000] {
        let (id, arguments) = ("one-id", json!({ "order": order }));
        let direct = ToolCall::new(id, "refund", arguments.clone());
        let target = json!({ "tool": "refund", "arguments": arguments });
        let through = ToolCall::new(id, CALL_TOOL, target);
        let engine = || engine().middleware(tenfold());
        let expected = traces_of(engine(), &rules, &tools, direct).await;
        let traces = traces_of(engine(), &rules, &tools, through).await;
        assert_eq!(traces, expected);
        let is_approved = traces.notes.iter().any(|note| note.starts_with("approve"));
        assert_eq!(is_approved, order == 50, "{traces:?}");
        let has_new = |note: &String| note.contains(&format!("\"order\":{}", order * 10));
        assert!(traces.notes.iter().all(has_new), "{traces:?}");
        codes.push(traces.code);
    }
    let denied = Some(ErrorCode::Denied);
    assert_eq!(codes, [None, None, denied, denied]);
}

#[tokio::test]
async fn a_rule_for_call_tool_judges_a_rewritten_call_too() {
    let above = [ArgumentMatch::at("/arguments/order").unwrap().greater_than(1_000)];
    for effect in [Effect::Deny, Effect::Ask, Effect::Halt] {
        let rule = rule_on("large", effect, CALL_TOOL).arguments(above.clone());
        let engine =
            engine().tool(refund()).middleware(tenfold()).policy(policy([rule])).build().unwrap();
        for (order, code) in [(1, None), (500, Some(ErrorCode::Denied))] {
            let args = json!({ "tool": "refund", "arguments": { "order": order } });
            assert_eq!(once(&engine, CALL_TOOL, args).await.code, code, "{effect:?}: {order}");
        }
    }
}
