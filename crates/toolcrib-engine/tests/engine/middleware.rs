//! Middleware at the *call* hook: it sees exactly the arguments that run, may deny, rewrite or
//! answer, and fails closed.

use std::{
    error::Error,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{FutureExt as _, future::BoxFuture};
use serde_json::{Value, json};
use toolcrib_core::{
    Approval, ApprovalRequest, Approver, CallDecision, CancellationToken, Effect, ErrorCode,
    Middleware, PendingCall, Tool, ToolContext, ToolOutput, call_middleware,
};
use toolcrib_engine::{EngineBuilder, PluginRegistrar, TurnOptions};

use crate::{
    plugins::Brings,
    support::{Log, builder, call, engine, in_time, once, policy, rule},
};

type Decision = Result<CallDecision, Box<dyn Error + Send + Sync>>;

/// A tool that takes a whole number `n` and gives back its arguments, and what it was run with.
fn echo() -> (Tool, Arc<Mutex<Vec<Value>>>) {
    let ran = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&ran);
    let tool = builder("echo")
        .input_schema(json!({
            "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"],
            "additionalProperties": false,
        }))
        .handler(move |args: Value, _: ToolContext| {
            seen.lock().unwrap().push(args.clone());
            async move { args }
        })
        .unwrap();
    (tool, ran)
}

fn setup() -> (EngineBuilder, Arc<Mutex<Vec<Value>>>) {
    let (tool, ran) = echo();
    (engine().tool(tool), ran)
}

/// Adds to `n`.
fn add(name: &'static str, more: i64) -> impl Middleware {
    call_middleware(name, move |call| {
        Ok(CallDecision::Rewrite(json!({ "n": call.args["n"].as_i64().unwrap() + more })))
    })
}

/// Notes what it is shown.
fn watch(seen: &Arc<Mutex<Vec<Value>>>) -> impl Middleware {
    let seen = Arc::clone(seen);
    call_middleware("watch", move |call| {
        seen.lock().unwrap().push(call.args.clone());
        Ok(CallDecision::Proceed)
    })
}

#[tokio::test]
async fn a_denying_middleware_prevents_the_body_from_running() {
    let (engine, ran) = setup();
    let deny = call_middleware("hours", |_| Ok(CallDecision::Deny("closed at night".into())));
    let engine = engine.middleware(deny).build().unwrap();
    let log = Log::of(engine.events());
    let result = once(&engine, "echo", json!({ "n": 1 })).await;
    assert_eq!(result.code, Some(ErrorCode::Denied));
    assert_eq!(&*result.text, "closed at night");
    assert_eq!(result.cause.as_deref(), Some("denied by middleware `hours`"));
    assert!(ran.lock().unwrap().is_empty());
    assert_eq!(log.of_name("policy.denied")[0]["rule"], "middleware `hours`");
}

#[tokio::test]
async fn a_call_that_is_rewritten_is_validated_again_and_runs_as_all_have_seen_it() {
    let (engine, ran) = setup();
    let seen = Arc::default();
    let engine = engine.middleware(watch(&seen)).middleware(add("plus", 10)).build().unwrap();
    let log = Log::of(engine.events());
    let result = once(&engine, "echo", json!({ "n": 1 })).await;
    assert_eq!(&*result.value, r#"{"n":11}"#);
    assert_eq!(result.args, json!({ "n": 11 }), "a result says what ran");
    assert_eq!(*ran.lock().unwrap(), [json!({ "n": 11 })]);
    // The earlier one was called again, with the arguments that run; the author was not.
    assert_eq!(*seen.lock().unwrap(), [json!({ "n": 1 }), json!({ "n": 11 })]);
    let rewritten = &log.of_name("tool.rewritten")[0];
    assert_eq!(
        (&rewritten["middleware"], &rewritten["args"]),
        (&json!("middleware `plus`"), &json!({ "n": 11 }))
    );
    assert_ne!(rewritten["args_digest"], log.of_name("tool.start")[0]["args_digest"]);
}

#[tokio::test]
async fn a_rewritten_call_must_pass_the_schema_and_the_policy() {
    let (engine_, ran) = setup();
    let wrong = call_middleware("wrong", |_| Ok(CallDecision::Rewrite(json!({ "n": "many" }))));
    let result = once(&engine_.middleware(wrong).build().unwrap(), "echo", json!({ "n": 1 })).await;
    assert_eq!(result.code, Some(ErrorCode::InputInvalid));
    assert!(ran.lock().unwrap().is_empty());

    let deep = call_middleware("deep", |_| {
        Ok(CallDecision::Rewrite((0..5_000).fold(json!(1), |inner, _| Value::Array(vec![inner]))))
    });
    let (engine, ran) = setup();
    let result = once(&engine.middleware(deep).build().unwrap(), "echo", json!({ "n": 1 })).await;
    assert_eq!(result.code, Some(ErrorCode::Denied));
    assert!(ran.lock().unwrap().is_empty());
}

#[tokio::test]
async fn rewriting_middlewares_agree_or_the_call_is_refused() {
    // Each is called once …
    let capped = call_middleware("cap", |call| {
        Ok(CallDecision::Rewrite(json!({ "n": call.args["n"].as_i64().unwrap().min(5) })))
    });
    let (engine, _) = setup();
    let engine = engine.middleware(capped).middleware(add("plus", 1)).build().unwrap();
    // … 9 is cut to 5, raised to 6, cut to 5, raised to 6: they never agree.
    let result = once(&engine, "echo", json!({ "n": 9 })).await;
    assert_eq!(result.code, Some(ErrorCode::Denied));
    assert!(result.cause.as_deref().unwrap().contains("rewritten more than 8 times"));
    // 1 stays below the cap, so they do.
    assert_eq!(&*once(&engine, "echo", json!({ "n": 1 })).await.value, r#"{"n":2}"#);
}

#[tokio::test]
async fn an_answer_of_a_middleware_replaces_the_body_and_passes_the_rest_of_the_pipe() {
    let (tool, ran) = echo();
    let answer = call_middleware("cache", |_| {
        Ok(CallDecision::Answer(ToolOutput::text("from the cache <|im_start|>").cost(0.5)))
    });
    let untrusted = builder("page").untrusted().handler(|_: Value, _: ToolContext| async { "x" });
    let engine = engine().tool(tool).tool(untrusted).middleware(answer).build().unwrap();
    let log = Log::of(engine.events());
    let result = once(&engine, "echo", json!({ "n": 1 })).await;
    assert!(result.is_ok());
    assert_eq!(result.cost_usd, Some(0.5));
    assert!(ran.lock().unwrap().is_empty());
    assert_eq!(log.of_name("tool.answered")[0]["middleware"], "middleware `cache`");
    let page = once(&engine, "page", json!({})).await;
    assert!(page.untrusted && page.text.contains("‹|im_start|›"), "{}", page.text);
}

/// One that never gives a verdict.
struct Hangs;

impl Middleware for Hangs {
    fn name(&self) -> &str {
        "hangs"
    }

    fn call<'a>(&'a self, _: PendingCall<'a>) -> BoxFuture<'a, Decision> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test(start_paused = true)]
async fn a_middleware_that_fails_panics_or_hangs_denies_the_call() {
    let failing = || call_middleware("fails", |_| Err("hunter2: the directory is down".into()));
    let panicking = || call_middleware("panics", |_| panic!("hunter2"));
    let build = |engine: EngineBuilder| engine.build().unwrap();
    let cases = [
        (build(setup().0.middleware(failing())), "it failed: hunter2: the directory is down"),
        (build(setup().0.middleware(panicking())), "it panicked: hunter2"),
        (build(setup().0.middleware(Hangs)), "it gave no verdict within the call's time limit"),
    ];
    for (engine, cause) in cases {
        let result = once(&engine, "echo", json!({ "n": 1 })).await;
        assert_eq!(result.code, Some(ErrorCode::Denied));
        assert_eq!(&*result.text, "calling `echo` could not be checked, so it was not made");
        assert!(result.cause.as_deref().unwrap().ends_with(cause), "{:?}", result.cause);
    }
}

type Polled = fn() -> Poll<Decision>;

/// A future that behaves as configured, and panics when it is dropped.
struct PanickingFuture(Polled);

impl Future for PanickingFuture {
    type Output = Decision;
    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Decision> {
        (self.0)()
    }
}

impl Drop for PanickingFuture {
    fn drop(&mut self) {
        panic!("dropped");
    }
}

/// An error that panics when it is displayed.
#[derive(Debug)]
struct Unsayable;

impl std::fmt::Display for Unsayable {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        panic!("unsayable")
    }
}

impl Error for Unsayable {}

/// Returns futures that behave as configured; each panics when it is dropped.
struct PanicsOnDrop(Polled);

impl Middleware for PanicsOnDrop {
    fn name(&self) -> &str {
        "bombs"
    }

    fn call<'a>(&'a self, _: PendingCall<'a>) -> BoxFuture<'a, Decision> {
        Box::pin(PanickingFuture(self.0))
    }
}

#[tokio::test(start_paused = true)]
async fn a_middleware_that_panics_on_drop_denies_the_call() {
    let cases: [(Polled, &str); 4] = [
        (|| Poll::Ready(Ok(CallDecision::Proceed)), "it panicked: dropped"),
        (|| Poll::Ready(Err(Box::new(Unsayable))), "it panicked: unsayable"),
        (|| panic!("polled"), "it panicked: polled"),
        (|| Poll::Pending, "it gave no verdict within the call's time limit"),
    ];
    for (decide, cause) in cases {
        let (engine, ran) = setup();
        let engine = engine.middleware(PanicsOnDrop(decide)).build().unwrap();
        let result = once(&engine, "echo", json!({ "n": 1 })).await;
        assert_eq!(result.code, Some(ErrorCode::Denied));
        assert!(result.cause.as_deref().unwrap().ends_with(cause), "{:?}", result.cause);
        assert!(ran.lock().unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_panic_on_drop_breaks_neither_cancellation_nor_a_dropped_run() {
    let (engine, _) = setup();
    let engine = engine.middleware(PanicsOnDrop(|| Poll::Pending)).build().unwrap();
    let cancellation = CancellationToken::new();
    let options = TurnOptions::default().cancellation(cancellation.clone());
    let mut turn = engine.turn(options).unwrap();
    let mut iteration = turn.iteration().await.unwrap();
    {
        let mut running = Box::pin(iteration.execute(vec![call("echo", json!({ "n": 1 }))]));
        assert!((&mut running).now_or_never().is_none(), "it waits for the middleware");
    }
    let (results, ()) = in_time(async {
        tokio::join!(iteration.execute(vec![call("echo", json!({ "n": 1 }))]), async {
            cancellation.cancel();
        })
    })
    .await;
    assert_eq!(results[0].code, Some(ErrorCode::Cancelled));
}

/// A middleware whose name is available only for a while.
struct Named {
    asked: AtomicUsize,
    panics_at: usize,
}

impl Middleware for Named {
    fn name(&self) -> &str {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        assert!(asked < self.panics_at, "forgotten");
        "named"
    }

    fn call<'a>(&'a self, _: PendingCall<'a>) -> BoxFuture<'a, Decision> {
        Box::pin(async { Ok(CallDecision::Deny("no".into())) })
    }
}

#[tokio::test]
async fn the_name_of_a_middleware_is_read_once_at_the_build() {
    let named = |panics_at| Named { asked: AtomicUsize::new(0), panics_at };
    let (engine, _) = setup();
    let engine = engine.middleware(named(2)).build().unwrap();
    for _ in 0..3 {
        let result = once(&engine, "echo", json!({ "n": 1 })).await;
        assert_eq!(result.cause.as_deref(), Some("denied by middleware `named`"));
    }
    let error = setup().0.middleware(named(1)).build().unwrap_err();
    assert_eq!(error.to_string(), "a middleware panicked in `name`: forgotten");
    let plugin = Brings("p", move |registrar: &mut PluginRegistrar| {
        registrar.middleware(named(1));
        Ok(())
    });
    let error = setup().0.plugin(plugin).build().unwrap_err();
    assert!(error.to_string().starts_with("a middleware of plugin `p` panicked"), "{error}");
}

#[tokio::test]
async fn cancellation_does_not_wait_for_a_hanging_middleware() {
    let (engine, ran) = setup();
    let engine = engine.middleware(Hangs).build().unwrap();
    let cancellation = CancellationToken::new();
    let options = TurnOptions::default().cancellation(cancellation.clone());
    let mut turn = engine.turn(options).unwrap();
    let mut iteration = turn.iteration().await.unwrap();
    let (results, ()) = in_time(async {
        tokio::join!(iteration.execute(vec![call("echo", json!({ "n": 1 }))]), async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            cancellation.cancel();
        })
    })
    .await;
    assert_eq!(results[0].code, Some(ErrorCode::Cancelled));
    assert!(ran.lock().unwrap().is_empty());
}

struct Approves(Arc<Mutex<Vec<Value>>>);

impl Approver for Approves {
    fn approve<'a>(&'a self, call: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        self.0.lock().unwrap().push(call.args.clone());
        Box::pin(async { Approval::Approved })
    }
}

#[tokio::test]
async fn what_is_approved_is_what_runs_and_refused_calls_are_not_shown() {
    let asked = Arc::default();
    let shown = Arc::new(AtomicUsize::new(0));
    let counting = {
        let shown = Arc::clone(&shown);
        call_middleware("count", move |_| {
            shown.fetch_add(1, Ordering::Relaxed);
            Ok(CallDecision::Proceed)
        })
    };
    let (engine, _) = setup();
    let engine = engine
        .middleware(add("plus", 1))
        .middleware(counting)
        .approver(Approves(Arc::clone(&asked)))
        .policy(policy([rule("ask", Effect::Ask)]))
        .build()
        .unwrap();
    assert!(once(&engine, "echo", json!({ "n": 1 })).await.is_ok());
    assert_eq!(*asked.lock().unwrap(), [json!({ "n": 2 })]);
    assert_eq!(shown.load(Ordering::Relaxed), 1);
    once(&engine, "echo", json!({ "n": "x" })).await;
    once(&engine, "other", json!({})).await;
    assert_eq!(shown.load(Ordering::Relaxed), 1, "neither invalid nor unknown calls are shown");
}
