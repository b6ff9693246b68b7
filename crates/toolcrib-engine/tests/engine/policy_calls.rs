//! Rules at the call: by arguments, with messages for the model, and those that end the run. The
//! cases are those of the references, by number.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use serde_json::{Value, json};
use toolcrib_core::{
    Approval, ArgumentMatch, CallDecision, Capabilities, CapabilityGranter, ErrorCode, PendingCall,
    Policy, Rule, Secret, SecretError, Tool, ToolContext, ToolResult, call_approver,
    call_middleware, secrets_fn,
};
use toolcrib_engine::{Engine, TurnOptions};

use crate::support::{Log, batch, builder, call, engine, in_time, menu, offered, once, tool};

/// A tool that takes a path, or a list of them, and counts its calls.
fn files(name: &str, runs: &Arc<AtomicUsize>) -> Tool {
    let runs = Arc::clone(runs);
    let schema = json!({
        "type": "object",
        "properties": { "path": {}, "amount": { "type": "number" } },
    });
    builder(name)
        .input_schema(schema)
        .handler(move |_: Value, _: ToolContext| {
            runs.fetch_add(1, Ordering::SeqCst);
            async { "ran" }
        })
        .unwrap()
}

fn at(pointer: &str) -> ArgumentMatch {
    ArgumentMatch::at(pointer).unwrap()
}

fn etc() -> [ArgumentMatch; 1] {
    [at("/path").starts_with("/etc")]
}

struct Desk {
    engine: Engine,
    runs: Arc<AtomicUsize>,
}

fn desk(rules: impl IntoIterator<Item = Rule>) -> Desk {
    let runs = Arc::default();
    let tools = [files("read", &runs), files("write", &runs), files("list", &runs)];
    let engine = engine().tools(tools).policy(Policy::of(rules)).build().unwrap();
    Desk { engine, runs }
}

impl Desk {
    fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }
}

fn codes(results: &[ToolResult]) -> Vec<Option<ErrorCode>> {
    results.iter().map(|result| result.code).collect()
}

const DENIED: Option<ErrorCode> = Some(ErrorCode::Denied);

#[tokio::test]
async fn a_rule_on_arguments_never_hides_and_denies_the_calls_that_it_fits() {
    let desk = desk([Rule::deny("no etc").tools(["read"]).arguments(etc())]);
    assert_eq!(offered(&desk.engine, TurnOptions::default()).await, ["read", "write", "list"]);
    for (tool, path, code) in [
        ("read", json!("/etc/passwd"), DENIED),
        ("read", json!(["/tmp/a", "/etc/passwd"]), DENIED),
        ("read", json!("/tmp/a"), None),
        ("read", json!(5), None),
        ("write", json!("/etc/passwd"), None),
    ] {
        let result = once(&desk.engine, tool, json!({"path": path})).await;
        assert_eq!(result.code, code, "{tool} {path}");
    }
    assert_eq!(once(&desk.engine, "read", json!({})).await.code, None);
    assert_eq!(desk.runs(), 4);
}

#[tokio::test]
async fn before_arguments_are_known_deny_walks_on_and_the_others_end_the_walk() {
    let last = || Rule::deny("the rest");
    for (first, offers) in [
        (Rule::deny("1"), false),
        (Rule::allow("1"), true),
        (Rule::ask("1"), true),
        (Rule::halt("1"), true),
    ] {
        let effect = first.effect;
        let desk = desk([first.arguments(etc()), last()]);
        let offered = offered(&desk.engine, TurnOptions::default()).await;
        assert_eq!(!offered.is_empty(), offers, "{effect:?}");
        // At the call the whole list is walked again.
        if offers {
            let elsewhere = once(&desk.engine, "read", json!({"path": "/tmp"})).await;
            assert_eq!(elsewhere.cause.as_deref(), Some("the rest"), "{effect:?}");
            let there = once(&desk.engine, "read", json!({"path": "/etc"})).await;
            assert_eq!(there.is_ok(), effect == toolcrib_core::Effect::Allow, "{effect:?}");
        }
    }
}

#[tokio::test]
async fn what_is_left_out_is_denied_by_a_rule_that_says_so() {
    let desk = desk([
        Rule::deny("no path").tools(["read"]).arguments([at("/path").exists(false)]),
        Rule::deny("much").arguments([at("/amount").greater_than(100)]),
    ]);
    let result = |args| once(&desk.engine, "read", args);
    assert_eq!(result(json!({})).await.cause.as_deref(), Some("no path"));
    assert_eq!(result(json!({"path": "/x", "amount": 101})).await.cause.as_deref(), Some("much"));
    assert!(result(json!({"path": "/x", "amount": 100})).await.is_ok());
}

#[tokio::test]
async fn allowing_a_list_needs_each_of_its_items() {
    let inside = Rule::allow("inside").arguments([at("/path").starts_with("/work/")]);
    let desk = desk([inside, Rule::deny("outside").arguments([at("")])]);
    let result = |path: Value| once(&desk.engine, "read", json!({"path": path}));
    assert!(result(json!(["/work/a", "/work/b"])).await.is_ok());
    assert_eq!(result(json!(["/work/a", "/etc/b"])).await.code, DENIED);
    assert_eq!(result(json!([])).await.code, DENIED);
}

#[tokio::test]
async fn a_rule_that_cannot_be_told_denies_and_says_why_to_the_operator() {
    let panics = ArgumentMatch::by("office hours", |_| panic!("s3cret bug"));
    let fails = ArgumentMatch::by("office hours", |_| Err("no clock".to_owned()));
    let long = at("/path").matches("x").unwrap();
    for (condition, problem) in [
        (panics, "`office hours`: it panicked: s3cret bug"),
        (fails, "`office hours`: no clock"),
        (long, "`/path`: a text of 70000 bytes is too long to be searched (at most 65536)"),
    ] {
        for rule in [Rule::allow("rule 3"), Rule::ask("rule 3"), Rule::halt("rule 3")] {
            let desk = desk([rule.arguments([condition.clone()])]);
            let log = Log::of(desk.engine.events());
            let result = once(&desk.engine, "read", json!({"path": "y".repeat(70_000)})).await;
            assert_eq!(result.code, DENIED);
            assert_eq!(&*result.value, "calling `read` is not permitted here; do not try it again");
            let denied = &log.of_name("policy.denied")[0];
            assert_eq!(denied["rule"], "rule 3");
            assert_eq!(denied["reason"], format!("the rule could not be evaluated: {problem}"));
            assert_eq!(desk.runs(), 0);
        }
    }
}

/// Case 34.
#[tokio::test]
async fn case_34_a_denied_call_is_never_validated_and_asks_for_no_secret() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&asked);
    let secrets = secrets_fn(move |_: &str| -> Result<Secret, SecretError> {
        counting.fetch_add(1, Ordering::SeqCst);
        Ok(Secret::new("s3cret"))
    });
    let pay = builder("pay")
        .input_schema(
            json!({"type": "object", "required": ["x"], "properties": {"x": {"type": "integer"}}}),
        )
        .capabilities(Capabilities::none().secrets(["BANK"]))
        .handler(|_: Value, cx: ToolContext| async move { cx.secret("BANK").await.map(|_| "ran") })
        .unwrap();
    let rules = [
        Rule::halt("stop")
            .tools(["pay"])
            .when(toolcrib_core::RuleConditions::default().principals(["eve"])),
        Rule::deny("large").arguments([at("/x").greater_than(5)]),
    ];
    let engine = engine().tool(pay).secrets(secrets).policy(Policy::of(rules)).build().unwrap();
    let large = once(&engine, "pay", json!({"x": 6})).await;
    assert_eq!(large.code, DENIED);
    let mut turn = engine.turn(TurnOptions::default().principal("eve")).unwrap();
    let mut iteration = turn.iteration().await.unwrap();
    let unfit = iteration.execute(vec![call("pay", json!({"x": "one"}))]).await.remove(0);
    assert_eq!(unfit.code, DENIED, "{}", unfit.value);
    assert_eq!(asked.load(Ordering::SeqCst), 0);
    assert!(once(&engine, "pay", json!({"x": 5})).await.is_ok());
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

/// Cases 31 and 36.
#[tokio::test]
async fn cases_31_and_36_a_denial_is_read_the_turn_goes_on_and_it_is_checked_once() {
    let rule =
        Rule::deny("rule 1").reason("Audit 7.").model_message("files below /etc are not yours");
    let desk = desk([rule.arguments(etc())]);
    let mut turn = desk.engine.turn(TurnOptions::default()).unwrap();
    let log = Log::of(turn.events().run());
    let mut iteration = turn.iteration().await.unwrap();
    let calls = vec![
        call("read", json!({"path": "/etc/passwd"})),
        call("write", json!({"path": "/tmp"})),
        call("unknown", json!({})),
    ];
    let results = iteration.execute(calls).await;
    assert_eq!(codes(&results), [DENIED, None, Some(ErrorCode::NotAvailable)]);
    assert_eq!(&*results[0].value, "files below /etc are not yours");
    assert_eq!(results[0].cause.as_deref(), Some("rule 1: Audit 7."));
    assert_eq!(desk.runs(), 1);
    let checked = log.of_name("policy.checked");
    let told: Vec<_> = checked
        .iter()
        .map(|event| {
            let field = |name: &str| event[name].as_str().unwrap().to_owned();
            ["call_id", "tool", "rule", "effect", "stage"].map(field).join(" ")
        })
        .collect();
    assert_eq!(
        told,
        ["id-read read rule 1 deny arguments", "id-write write policy_default allow arguments"]
    );
    assert_eq!(menu(&turn.iteration().await.unwrap()), ["read", "write", "list"]);
}

/// Case 37: a checker that throws is a rule that fails, above; this tests the text of its event.
#[tokio::test]
async fn case_37_what_a_failing_rule_says_is_in_the_event_and_not_in_the_models_text() {
    let broken = ArgumentMatch::by("broken", |_| Err("s3cret".to_owned()));
    let desk = desk([Rule::deny("rule 1").arguments([broken])]);
    let log = Log::of(desk.engine.events());
    let result = once(&desk.engine, "read", json!({})).await;
    assert!(!result.text.contains("s3cret") && result.code == DENIED);
    assert!(log.of_name("policy.denied")[0]["reason"].as_str().unwrap().contains("s3cret"));
    assert_eq!(log.of_name("policy.checked")[0]["effect"], "deny");
}

/// Case 38.
#[tokio::test]
async fn case_38_halt_ends_the_run_with_a_valid_history_and_a_generic_text() {
    let halt = Rule::halt("rule 2").reason("Tripwire.").tools(["write"]);
    for (rule, text) in [
        (halt.clone(), "calling `write` is not permitted here; do not try it again"),
        (halt.model_message("this conversation ends here"), "this conversation ends here"),
    ] {
        let desk = desk([rule]);
        let mut turn = desk.engine.turn(TurnOptions::default()).unwrap();
        let log = Log::of(turn.events().run());
        let mut iteration = turn.iteration().await.unwrap();
        assert_eq!(menu(&iteration), ["read", "write", "list"]);
        assert_eq!(iteration.halted(), None);
        let calls = ["read", "write", "list", "write"].map(|name| call(name, json!({})));
        let results = iteration.execute(calls.into()).await;
        // A running call ends normally; each call has its one result.
        assert_eq!(codes(&results), [None, DENIED, DENIED, DENIED]);
        assert_eq!(&*results[1].value, text);
        assert_eq!(&*results[2].value, "not made: the run was ended");
        assert_eq!(desk.runs(), 1);
        assert!(results.iter().all(|result| !result.text.contains("Tripwire")));
        let halted = iteration.halted().unwrap();
        assert_eq!((&*halted.tool, &*halted.call_id), ("write", "id-write"));
        assert_eq!(halted.to_string(), "rule 2 ended the run at a call of `write`: Tripwire.");
        assert_eq!(results[2].cause.as_deref(), Some(&*halted.to_string()));
        let denied = log.of_name("policy.denied");
        assert_eq!(denied.len(), 1);
        assert_eq!(denied[0]["reason"], "Tripwire.");
        assert_eq!(log.of_name("policy.checked").last().unwrap()["effect"], "halt");
        // Continuing anyway achieves nothing, in the next iteration neither.
        let mut next = turn.iteration().await.unwrap();
        assert_eq!(menu(&next), ["read", "write", "list"]);
        assert!(next.halted().is_some() && next.halted() == turn.halted());
        for iteration in [&mut iteration, &mut next] {
            let more = iteration.execute(vec![call("read", json!({}))]).await;
            assert_eq!(codes(&more), [DENIED]);
            assert_eq!(&*more[0].value, "not made: the run was ended");
        }
        assert_eq!(desk.runs(), 1);
        assert!(desk.engine.turn(TurnOptions::default()).unwrap().halted().is_none());
    }
}

#[tokio::test]
async fn halt_by_arguments_ends_what_waits_for_a_person_and_sequential_calls_behind_it() {
    let runs = Arc::default();
    let alone = builder("alone").sequential().handler({
        let runs = Arc::clone(&runs);
        move |_: Value, _: ToolContext| {
            AtomicUsize::fetch_add(&runs, 1, Ordering::SeqCst);
            async { "ran" }
        }
    });
    let never = call_approver(|_| std::future::pending::<Approval>());
    let rules = [Rule::ask("consent").tools(["write"]), Rule::halt("tripwire").arguments(etc())];
    let engine = engine()
        .tools([files("read", &runs), files("write", &runs), alone.unwrap()])
        .approver(never)
        .policy(Policy::of(rules))
        .build()
        .unwrap();
    let calls = vec![
        call("write", json!({})),
        call("read", json!({"path": "/etc"})),
        call("alone", json!({})),
    ];
    let results = in_time(batch(&engine, calls)).await;
    assert_eq!(codes(&results), [DENIED; 3]);
    assert_eq!(runs.load(Ordering::SeqCst), 0);
    let other = in_time(batch(&engine, vec![call("read", json!({"path": "/tmp"}))])).await;
    assert!(other[0].is_ok());
}

#[tokio::test]
async fn ask_has_words_for_the_model_where_nobody_can_be_asked() {
    let desk = desk([Rule::ask("consent").reason("Law.").model_message("ask the user first")]);
    let result = once(&desk.engine, "read", json!({})).await;
    assert_eq!((result.code, &*result.value), (DENIED, "ask the user first"));
    assert_eq!(desk.runs(), 0);
}

#[tokio::test]
async fn what_a_middleware_rewrites_is_judged_again() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let shown = Arc::clone(&seen);
    let rewrites = call_middleware("home", move |pending| {
        shown.lock().unwrap().push(pending.args.clone());
        Ok(match pending.args["path"].as_str() {
            Some("~") => CallDecision::Rewrite(json!({"path": "/etc"})),
            Some("/etc2") => CallDecision::Rewrite(json!({"path": "/tmp"})),
            _ => CallDecision::Proceed,
        })
    });
    let runs = Arc::default();
    let engine = engine()
        .tool(files("read", &runs))
        .middleware(rewrites)
        .policy(Policy::of([Rule::deny("no etc").arguments(etc())]))
        .build()
        .unwrap();
    let log = Log::of(engine.events());
    assert_eq!(once(&engine, "read", json!({"path": "~"})).await.code, DENIED);
    let effects: Vec<_> =
        log.of_name("policy.checked").iter().map(|event| event["effect"].clone()).collect();
    assert_eq!(effects, ["allow", "deny"]);
    // A denied call is not shown to a middleware that would fix it.
    assert_eq!(once(&engine, "read", json!({"path": "/etc2"})).await.code, DENIED);
    assert_eq!(*seen.lock().unwrap(), [json!({"path": "~"})]);
    assert_eq!(runs.load(Ordering::SeqCst), 0);
}

/// Case 60, and the defect W18.
#[tokio::test]
async fn case_60_a_denial_with_words_of_its_own_is_no_executed_call() {
    let rule = Rule::deny("rule 1").model_message("[done] 3 files were deleted");
    let desk = desk([rule.arguments(etc())]);
    let log = Log::of(desk.engine.events());
    let result = once(&desk.engine, "read", json!({"path": "/etc"})).await;
    assert_eq!(&*result.value, "[done] 3 files were deleted");
    assert!(!result.is_ok());
    let end = &log.of_name("tool.end")[0];
    assert_eq!((&end["ok"], &end["code"]), (&json!(false), &json!("denied")));
    assert_eq!(desk.runs(), 0);
}

#[tokio::test]
async fn without_a_policy_no_check_is_reported_and_a_default_is_reported_once() {
    let none = engine().tool(tool("t")).build().unwrap();
    let log = Log::of(none.events());
    once(&none, "t", json!({})).await;
    assert!(log.of_name("policy.checked").is_empty());
    let closed = Policy {
        default: toolcrib_core::PolicyDefault::Deny,
        ..Policy::of([Rule::allow("rule 1")])
    };
    let some = engine().tool(tool("t")).policy(closed).build().unwrap();
    let log = Log::of(some.events());
    once(&some, "t", json!({})).await;
    assert_eq!(log.of_name("policy.checked").len(), 1);
}

/// Case 40: a capability granter grants the declared capabilities. It is called after the rules, once, and
/// never for a call that they deny.
#[tokio::test]
async fn case_40_what_a_tool_declares_is_asked_for_after_the_rules_and_never_for_a_denied_call() {
    struct Counting(Arc<AtomicUsize>);
    impl CapabilityGranter for Counting {
        fn grant(
            &self,
            _: PendingCall<'_>,
            cx: ToolContext,
        ) -> Result<ToolContext, toolcrib_core::ToolError> {
            self.0.fetch_add(1, Ordering::SeqCst);
            Ok(cx)
        }
    }
    let (asked, runs) = (Arc::new(AtomicUsize::new(0)), Arc::default());
    let engine = engine()
        .tools([files("read", &runs), files("write", &runs)])
        .capability_granter(Counting(Arc::clone(&asked)))
        .policy(Policy::of([Rule::deny("no etc").arguments(etc())]))
        .build()
        .unwrap();
    let calls = vec![
        call("read", json!({"path": "/etc"})),
        call("write", json!({"path": "/tmp"})),
        call("gone", json!({})),
    ];
    batch(&engine, calls).await;
    assert_eq!((asked.load(Ordering::SeqCst), runs.load(Ordering::SeqCst)), (1, 1));
}

/// Case 54.
#[tokio::test]
async fn case_54_a_tool_that_is_not_offered_in_this_iteration_is_refused_when_it_is_named() {
    let late = toolcrib_core::RuleConditions::default().from_iteration(2);
    let desk = desk([Rule::deny("early only").tools(["read"]).when(late)]);
    let mut turn = desk.engine.turn(TurnOptions::default()).unwrap();
    let mut first = turn.iteration().await.unwrap();
    let mut second = turn.iteration().await.unwrap();
    let refused = second.execute(vec![call("read", json!({}))]).await;
    assert_eq!(codes(&refused), [Some(ErrorCode::NotAvailable)]);
    // Calls of tools that the first one offered are still accepted.
    assert_eq!(codes(&first.execute(vec![call("read", json!({}))]).await), [None]);
    assert_eq!(desk.runs(), 1);
}
