//! Failed calls: when they are retried, and when a tool is not tried at all.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::time::{Instant, advance, sleep};
use toolcrib_core::{
    BoxFuture, BreakerConfig, Catalog, DiscoveryError, ErrorCode, Journal, Listing, PendingCall,
    Policy, ReliabilityAction, ReliabilityRule, Retry, Rule, Stage, Tool, ToolBuilder, ToolContext,
    ToolError, ToolOutput, ToolResult,
};
use toolcrib_engine::{Engine, TurnOptions};

use crate::support::{Log, batch, builder, call, engine, once, provider};

fn retry() -> ReliabilityRule {
    ReliabilityRule::new(ReliabilityAction::Retry(Retry::default()))
}

fn breaker() -> BreakerConfig {
    BreakerConfig { failures: 2, open_for: Duration::from_secs(30) }
}

/// A tool that fails as configured and then runs; it counts its calls.
fn flaky(annotated: ToolBuilder, codes: &[ErrorCode]) -> (Tool, Arc<AtomicUsize>) {
    let codes = codes.to_vec();
    let calls: Arc<AtomicUsize> = Arc::default();
    let count = Arc::clone(&calls);
    let tool = annotated
        .handler(move |_: Value, _: ToolContext| {
            let code = codes.get(count.fetch_add(1, SeqCst)).copied();
            async move {
                match code {
                    Some(code) => Err(ToolError::new(code, "no")),
                    None => Ok::<_, ToolError>("ran"),
                }
            }
        })
        .unwrap();
    (tool, calls)
}

#[tokio::test(start_paused = true)]
async fn a_call_is_repeated_only_where_that_is_safe() {
    use ErrorCode::{
        Denied, ExecutionFailed, InputInvalid, NotAvailable, OutcomeUnknown, StaleWrite, Timeout,
    };
    let plain = || builder("t");
    let cases = [
        (plain().read_only(), ExecutionFailed, 2),
        (plain().read_only(), Timeout, 2),
        (plain().idempotent(), ExecutionFailed, 2),
        (plain(), NotAvailable, 2),
        (plain(), ExecutionFailed, 1),
        (plain(), Timeout, 1),
        (plain().read_only(), OutcomeUnknown, 1),
        (plain().idempotent(), OutcomeUnknown, 1),
        (plain().read_only(), InputInvalid, 1),
        (plain().read_only(), Denied, 1),
        (plain().read_only(), StaleWrite, 1),
    ];
    for (annotated, code, expected) in cases {
        let (tool, calls) = flaky(annotated, &[code]);
        let engine = engine().tool(tool).reliability([retry()]).build().unwrap();
        let log = Log::of(engine.events());
        let result = once(&engine, "t", json!({})).await;
        assert_eq!((calls.load(SeqCst), result.is_ok()), (expected, expected == 2), "{code}");
        assert_eq!(log.of_name("tool.end").len(), 1, "one call has one end");
        let exhausted = log.of_name("reliability.fail_fast");
        assert_eq!(exhausted.len(), usize::from(expected == 1));
        assert!(exhausted.iter().all(|event| event["code"] == "not_repeatable"), "{exhausted:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn rules_look_at_a_calls_code_and_at_whether_it_was_of_no_use() {
    use ErrorCode::{ExecutionFailed, InputInvalid, NotAvailable};
    let mut of_code = ReliabilityRule::new(ReliabilityAction::FailFast);
    of_code.when.codes = vec!["not_available".into()];
    let mut of_no_use = ReliabilityRule::new(ReliabilityAction::FailFast);
    of_no_use.when.validation_error = Some(true);
    for (rule, about) in [(of_code, NotAvailable), (of_no_use, InputInvalid)] {
        for code in [ExecutionFailed, InputInvalid, NotAvailable] {
            let (tool, _) = flaky(builder("t"), &[code]);
            let engine = engine().tool(tool).reliability([rule.clone()]).build().unwrap();
            let log = Log::of(engine.events());
            assert_eq!(once(&engine, "t", json!({})).await.code, Some(code));
            let exhausted = log.of_name("reliability.fail_fast").len();
            assert_eq!(exhausted, usize::from(code == about), "{code}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_outlasts_its_deadline_is_repeated_when_it_only_reads() {
    let calls: Arc<AtomicUsize> = Arc::default();
    let count = Arc::clone(&calls);
    let slow_once = builder("t")
        .read_only()
        .timeout(Duration::from_secs(5))
        .handler(move |_: Value, _: ToolContext| {
            let is_first = count.fetch_add(1, SeqCst) == 0;
            async move {
                if is_first {
                    sleep(Duration::from_secs(60)).await;
                }
                "ran"
            }
        })
        .unwrap();
    let engine = engine().tool(slow_once).reliability([retry()]).build().unwrap();
    assert_eq!(&*once(&engine, "t", json!({})).await.value, "ran");
    assert_eq!(calls.load(SeqCst), 2);
}

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<String>>>);

impl Journal for Written {
    fn intent<'a>(
        &'a self,
        call: PendingCall<'a>,
    ) -> BoxFuture<'a, Result<(), Box<dyn std::error::Error + Send + Sync>>> {
        self.0.lock().unwrap().push(format!("intent {}", call.call_id));
        Box::pin(async { Ok(()) })
    }

    fn outcome<'a>(
        &'a self,
        _: PendingCall<'a>,
        code: Option<ErrorCode>,
        result: Option<&'a ToolResult>,
    ) -> BoxFuture<'a, ()> {
        let result = result.map(|result| format!(", {}", result.text)).unwrap_or_default();
        self.0.lock().unwrap().push(format!("outcome {code:?}{result}"));
        Box::pin(async {})
    }
}

#[tokio::test(start_paused = true)]
async fn each_attempt_of_a_call_is_written_down_and_approved_once() {
    let (tool, _) = flaky(builder("t").read_only(), &[ErrorCode::ExecutionFailed]);
    let written = Written::default();
    let engine = engine()
        .tool(tool)
        .reliability([retry().stage(Stage::Tool)])
        .journal(written.clone())
        .build()
        .unwrap();
    once(&engine, "t", json!({})).await;
    assert_eq!(
        *written.0.lock().unwrap(),
        ["intent id-t", "outcome Some(ExecutionFailed)", "intent id-t", "outcome None, ran"]
    );
}

/// A call that the engine itself refuses is not a failure of a tool, and no rule is evaluated.
#[tokio::test(start_paused = true)]
async fn refused_calls_are_never_put_to_the_rules() {
    let asked: Arc<AtomicUsize> = Arc::default();
    let count = Arc::clone(&asked);
    let rule = retry().when(move |_| {
        count.fetch_add(1, SeqCst);
        true
    });
    let schema = json!({ "type": "object", "required": ["x"] });
    let strict = builder("strict").input_schema(schema).read_only();
    let (strict, calls) = flaky(strict, &[]);
    let engine = engine().tool(strict).reliability([rule]).build().unwrap();
    for name in ["strict", "unknown"] {
        once(&engine, name, json!({})).await;
    }
    assert_eq!((asked.load(SeqCst), calls.load(SeqCst)), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_tool_whose_breaker_is_open_is_not_run_and_says_so() {
    let (tool, calls) = flaky(builder("t").read_only(), &[ErrorCode::Timeout; 9]);
    let engine = engine().tool(tool).breaker(Stage::Tool, breaker()).build().unwrap();
    for _ in 0..2 {
        assert_eq!(once(&engine, "t", json!({})).await.code, Some(ErrorCode::Timeout));
    }
    let refused = once(&engine, "t", json!({})).await;
    assert_eq!((refused.code, calls.load(SeqCst)), (Some(ErrorCode::NotAvailable), 2));
    assert_eq!(
        &*refused.value,
        "`t` cannot be used at the moment; go on without it, or try it again later"
    );
    assert_eq!(
        refused.cause.as_deref(),
        Some("not tried, because it failed several times in a row; it is tried again in 30.0s")
    );
}

fn bug() -> &'static str {
    panic!("bug")
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_says_no_is_well_and_one_that_panics_is_not() {
    let (says_no, calls) = flaky(builder("says_no"), &[ErrorCode::ExecutionFailed; 9]);
    let panics = builder("panics").handler(|_: Value, _: ToolContext| async { bug() }).unwrap();
    let engine = engine().tools([says_no, panics]).breaker(Stage::Tool, breaker()).build().unwrap();
    for _ in 0..5 {
        once(&engine, "says_no", json!({})).await;
    }
    assert_eq!(calls.load(SeqCst), 5);
    for _ in 0..2 {
        once(&engine, "panics", json!({})).await;
    }
    assert_eq!(once(&engine, "panics", json!({})).await.code, Some(ErrorCode::NotAvailable));
}

/// The cost of a tool counts, so that rules can use it.
#[tokio::test(start_paused = true)]
async fn what_tools_cost_is_seen_by_rules() {
    let paid = builder("paid")
        .handler(|_: Value, _: ToolContext| async { ToolOutput::text("ok").cost(2.0) })
        .unwrap();
    let asked = AtomicUsize::new(0);
    let hub = provider("hub", move |_| match asked.fetch_add(1, SeqCst) {
        0 => Listing::now(Catalog::new()),
        _ => Listing::failed(DiscoveryError::source_failed("gone")),
    });
    let seen: Arc<Mutex<Vec<Option<f64>>>> = Arc::default();
    let costs = Arc::clone(&seen);
    let watch = ReliabilityRule::new(ReliabilityAction::Continue).when(move |state| {
        costs.lock().unwrap().push(state.cost_usd);
        true
    });
    let engine = engine().provider(hub).reliability([watch]).tool(paid).build().unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    turn.iteration().await.unwrap().execute(vec![call("paid", json!({}))]).await;
    turn.iteration().await.unwrap_err();
    assert_eq!(*seen.lock().unwrap(), [Some(2.0)]);
}

/// The call's code, in a fresh turn of that tenant.
async fn code_for(engine: &Engine, tenant: &str, name: &str) -> Option<ErrorCode> {
    let mut turn = engine.turn(TurnOptions::default().tenant(tenant)).unwrap();
    let mut iteration = turn.iteration().await.unwrap();
    iteration.execute(vec![call(name, json!({}))]).await.remove(0).code
}

/// A read-only tool `t` that fails as configured and then runs, with a breaker of two failures, and
/// its number of runs.
fn guarded(codes: &[ErrorCode]) -> (Engine, Arc<AtomicUsize>) {
    let (tool, calls) = flaky(builder("t").read_only(), codes);
    (engine().tool(tool).breaker(Stage::Tool, breaker()).build().unwrap(), calls)
}

#[tokio::test(start_paused = true)]
async fn what_one_tenant_makes_fail_keeps_no_other_from_it() {
    let (engine, calls) = guarded(&[ErrorCode::Timeout; 2]);
    for _ in 0..2 {
        assert_eq!(code_for(&engine, "a", "t").await, Some(ErrorCode::Timeout));
    }
    assert_eq!(code_for(&engine, "a", "t").await, Some(ErrorCode::NotAvailable));
    assert_eq!(code_for(&engine, "b", "t").await, None);
    assert_eq!(calls.load(SeqCst), 3);
}

/// Two tools with one name, each offered to one principal, are distinct.
#[tokio::test(start_paused = true)]
async fn tools_of_one_name_from_two_places_have_a_breaker_each() {
    let (down, _) =
        flaky(builder("t").origin("mcp:one").mcp_server("one"), &[ErrorCode::Timeout; 2]);
    let (up, _) = flaky(builder("t").origin("mcp:two").mcp_server("two"), &[]);
    let both = provider("both", move |cx| {
        let is_ada = cx.identity().principal.as_deref() == Some("ada");
        Listing::now([if is_ada { down.clone() } else { up.clone() }])
    });
    let engine = engine().provider(both).breaker(Stage::Tool, breaker()).build().unwrap();
    let mut codes = Vec::new();
    for principal in ["ada", "ada", "ada", "bob"] {
        let mut turn = engine.turn(TurnOptions::default().principal(principal)).unwrap();
        let mut iteration = turn.iteration().await.unwrap();
        codes.push(iteration.execute(vec![call("t", json!({}))]).await.remove(0).code);
    }
    use ErrorCode::{NotAvailable, Timeout};
    assert_eq!(codes, [Some(Timeout), Some(Timeout), Some(NotAvailable), None]);
}

/// A refusal is a response: it resets the failure count and closes a breaker.
#[tokio::test(start_paused = true)]
async fn a_tool_that_says_no_ends_the_row_of_failures() {
    use ErrorCode::{ExecutionFailed, InputInvalid, Timeout};
    let (engine, calls) = guarded(&[Timeout, ExecutionFailed, Timeout, InputInvalid, Timeout]);
    for _ in 0..5 {
        once(&engine, "t", json!({})).await;
    }
    assert_eq!(calls.load(SeqCst), 5);

    let (engine, _) = guarded(&[Timeout, Timeout, ExecutionFailed]);
    let log = Log::of(engine.events());
    for _ in 0..2 {
        once(&engine, "t", json!({})).await;
    }
    advance(breaker().open_for).await;
    once(&engine, "t", json!({})).await;
    assert_eq!(
        changes(&log),
        ["t: closed -> open", "t: open -> half_open", "t: half_open -> closed"]
    );
}

fn changes(log: &Log) -> Vec<String> {
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    log.of_name("breaker.changed")
        .iter()
        .map(|event| {
            format!("{}: {} -> {}", word(&event["of"]), word(&event["from"]), word(&event["to"]))
        })
        .collect()
}

/// A cancelled attempt says nothing: the next call decides, and listeners see it.
#[tokio::test(start_paused = true)]
async fn a_cancelled_attempt_gives_its_place_in_a_half_open_breaker_back() {
    use ErrorCode::{Cancelled, Timeout};
    let (engine, calls) = guarded(&[Timeout, Timeout, Cancelled]);
    let log = Log::of(engine.events());
    for _ in 0..2 {
        once(&engine, "t", json!({})).await;
    }
    advance(breaker().open_for).await;
    assert_eq!(once(&engine, "t", json!({})).await.code, Some(Cancelled));
    assert!(once(&engine, "t", json!({})).await.is_ok());
    assert_eq!(calls.load(SeqCst), 4);
    assert_eq!(
        changes(&log),
        [
            "t: closed -> open",
            "t: open -> half_open",
            "t: half_open -> open",
            "t: open -> half_open",
            "t: half_open -> closed"
        ]
    );
}

/// However many tenants come, the memory of breakers is limited: the one that is tried again next
/// is evicted.
#[tokio::test(start_paused = true)]
async fn of_too_many_open_breakers_the_one_that_is_next_is_forgotten() {
    let (tool, calls) = flaky(builder("t"), &[ErrorCode::Timeout; 2_000]);
    let one = BreakerConfig { failures: 1, ..breaker() };
    let engine = engine().tool(tool).breaker(Stage::Tool, one).build().unwrap();
    code_for(&engine, "first", "t").await;
    advance(Duration::from_secs(1)).await;
    for n in 0..1_023 {
        code_for(&engine, &n.to_string(), "t").await;
    }
    code_for(&engine, "first", "t").await;
    assert_eq!(calls.load(SeqCst), 1_024, "they are kept");
    code_for(&engine, "one too many", "t").await;
    code_for(&engine, "1022", "t").await;
    assert_eq!(calls.load(SeqCst), 1_025, "a later one is kept");
    code_for(&engine, "first", "t").await;
    assert_eq!(calls.load(SeqCst), 1_026, "the first is not");
}

/// Once a rule of the policy has halted, nothing is run again: not what fails then, and not what
/// waits.
#[tokio::test(start_paused = true)]
async fn a_halt_ends_the_waits_of_other_calls() {
    let stopping = |builder: ToolBuilder, calls: &[ErrorCode]| {
        let (tool, calls) = flaky(builder.read_only(), calls);
        let patient = Retry { base: Duration::ZERO, cap: breaker().open_for, attempts: 9 };
        let engine = engine()
            .tools([tool, crate::support::tool("stop")])
            .reliability([ReliabilityRule::new(ReliabilityAction::Retry(patient))])
            .breaker(Stage::Tool, breaker())
            .policy(Policy::of([Rule::halt("tripwire").tools(["stop"])]))
            .build()
            .unwrap();
        (engine, calls)
    };
    let (t, stop) = (|| vec![call("t", json!({}))], || vec![call("stop", json!({}))]);

    // The breaker opens, and the third attempt waits for it.
    let (engine, calls) = stopping(builder("t"), &[ErrorCode::Timeout; 2]);
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let mut waiting = turn.iteration().await.unwrap();
    let mut halting = turn.iteration().await.unwrap();
    let began = Instant::now();
    let (results, _) = tokio::join!(waiting.execute(t()), async {
        sleep(Duration::from_secs(1)).await;
        halting.execute(stop()).await
    });
    assert_eq!(began.elapsed(), Duration::from_secs(1));
    assert_eq!((results[0].code, calls.load(SeqCst)), (Some(ErrorCode::NotAvailable), 2));

    for t in [builder("t"), builder("t").inline()] {
        let (engine, calls) = stopping(t, &[ErrorCode::Timeout]);
        let log = Log::of(engine.events());
        let calls_of_both = vec![call("t", json!({})), call("stop", json!({}))];
        let results = batch(&engine, calls_of_both).await;
        assert_eq!((results[0].code, calls.load(SeqCst)), (Some(ErrorCode::Timeout), 1));
        assert_eq!(log.of_name("reliability.retried").len(), 0);
    }
}
