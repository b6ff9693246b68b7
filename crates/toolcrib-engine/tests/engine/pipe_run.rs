//! Running bodies: in parallel, with panics, deadlines, cancellation, and bodies that never return.

use std::{
    sync::{
        Arc, Barrier, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use toolcrib_core::{
    Audience, CancellationToken, ErrorCode, Progress, Tool, ToolBody, ToolBuilder, ToolCall,
    ToolContext, ToolError, ToolOutput, ToolResult,
};
use toolcrib_engine::{Engine, EngineBuilder, Limits, TurnOptions};

use crate::support::{Log, batch, builder, call, engine, in_time, once, says, tool};

pub(crate) fn quick() -> EngineBuilder {
    engine().limits(Limits {
        tool_timeout: Duration::from_millis(20),
        cancel_grace: Duration::from_millis(20),
        ..Limits::default()
    })
}

/// Sets a flag when its owner is dropped.
pub(crate) struct Flag(pub(crate) Arc<AtomicBool>);

impl Drop for Flag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A tool that never returns, and reports when it is dropped.
fn endless(builder: toolcrib_core::ToolBuilder) -> (Tool, Arc<AtomicBool>) {
    let dropped = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&dropped);
    let tool = builder
        .handler(move |_: Value, _: ToolContext| {
            let flag = Flag(Arc::clone(&flag));
            async move {
                let _flag = flag;
                std::future::pending::<&str>().await
            }
        })
        .unwrap();
    (tool, dropped)
}

/// One call that is cancelled once it runs.
pub(crate) async fn cancelled(engine: &Engine, name: &str) -> ToolResult {
    let cancel = CancellationToken::new();
    let options = TurnOptions::default().cancellation(cancel.clone());
    let mut turn = engine.turn(options).unwrap();
    let mut iteration = turn.iteration().await.unwrap();
    let cancelling = async {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    };
    let calls = vec![call(name, json!({}))];
    let (mut results, ()) =
        in_time(async { tokio::join!(iteration.execute(calls), cancelling) }).await;
    results.remove(0)
}

struct PanicsBeforeItBegins;

impl ToolBody for PanicsBeforeItBegins {
    fn call(
        self: Arc<Self>,
        _: Value,
        _: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        panic!("hunter2 in a panic")
    }
}

#[tokio::test]
async fn a_panic_is_that_calls_failure_and_its_words_are_the_operators() {
    let engine = engine()
        .tools([
            builder("sync").body(PanicsBeforeItBegins).unwrap(),
            builder("async")
                .handler(|_: Value, _: ToolContext| async {
                    tokio::task::yield_now().await;
                    if true {
                        panic!("hunter2 in a panic")
                    }
                    ""
                })
                .unwrap(),
            builder("blocking")
                .blocking(|_: Value, _: ToolContext| -> &str { panic!("hunter2 in a panic") })
                .unwrap(),
            tool("good"),
        ])
        .build()
        .unwrap();
    let calls = ["sync", "async", "blocking", "good"].map(|name| call(name, json!({})));
    let results = batch(&engine, calls.into()).await;
    for (result, name) in results.iter().zip(["sync", "async", "blocking"]) {
        assert_eq!(result.code, Some(ErrorCode::ExecutionFailed));
        assert_eq!(&*result.text, format!("`{name}` failed because of an internal error"));
        assert_eq!(result.cause.as_deref(), Some("it panicked: hunter2 in a panic"));
        assert!(!result.abandoned);
    }
    assert!(results[3].is_ok());
}

#[tokio::test]
async fn a_tools_error_is_its_message_for_the_model_and_its_causes_for_the_operator() {
    let failing = |code| {
        move |_: Value, _: ToolContext| async move {
            let cause = std::io::Error::other("10.0.0.7 refused");
            Err::<String, _>(ToolError::new(code, "the bank does not answer").caused_by(cause))
        }
    };
    let engine = engine()
        .tool(builder("a").handler(failing(ErrorCode::ExecutionFailed)).unwrap())
        .tool(builder("b").handler(failing(ErrorCode::StaleWrite)).unwrap())
        .tool(
            builder("c")
                .handler(|_: Value, _: ToolContext| async {
                    Err::<String, _>(std::io::Error::other("any error will do"))
                })
                .unwrap(),
        )
        .build()
        .unwrap();
    let calls = ["a", "b", "c"].map(|name| call(name, json!({})));
    let results = batch(&engine, calls.into()).await;
    assert_eq!(&*results[0].text, "the bank does not answer");
    assert_eq!(results[0].cause.as_deref(), Some("10.0.0.7 refused"));
    assert_eq!(results[1].code, Some(ErrorCode::StaleWrite));
    assert_eq!(results[2].code, Some(ErrorCode::ExecutionFailed));
    assert_eq!((&*results[2].text, results[2].cause.as_deref()), ("any error will do", None));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_never_returns_is_stopped_at_its_deadline_and_dropped() {
    let (reads, reads_dropped) = endless(builder("reads").read_only());
    let (writes, writes_dropped) = endless(builder("writes").timeout(Duration::from_secs(3)));
    let engine = engine().tools([reads, writes, tool("good")]).build().unwrap();
    let calls = ["reads", "writes", "good"].map(|name| call(name, json!({})));
    let results = batch(&engine, calls.into()).await;
    assert_eq!(results[0].code, Some(ErrorCode::Timeout));
    assert_eq!(&*results[0].text, "`reads` did not finish within 60s and was stopped");
    assert_eq!(results[1].code, Some(ErrorCode::OutcomeUnknown));
    assert_eq!(
        &*results[1].text,
        "`writes` did not finish within 3s and was stopped; \
         it may have had its effect, so check before trying again"
    );
    assert_eq!(results[1].cause.as_deref(), Some("timeout"));
    assert!(!results[0].abandoned && !results[1].abandoned);
    assert!(results[2].is_ok());
    assert!(reads_dropped.load(Ordering::SeqCst) && writes_dropped.load(Ordering::SeqCst));
}

#[tokio::test(start_paused = true)]
async fn a_timeout_may_be_the_longest_duration_or_zero() {
    let far = |timeout| says(builder("t").timeout(timeout), "ran");
    for timeout in [Duration::MAX, Duration::from_secs(u64::MAX / 2)] {
        let engine = engine().tool(far(timeout)).build().unwrap();
        assert!(once(&engine, "t", json!({})).await.is_ok());
    }
    let (never, _) = endless(builder("t").timeout(Duration::ZERO).read_only());
    let limits = Limits { cancel_grace: Duration::ZERO, ..Limits::default() };
    let engine = engine().tool(never).limits(limits).build().unwrap();
    assert_eq!(once(&engine, "t", json!({})).await.code, Some(ErrorCode::Timeout));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_ends_within_the_grace_is_believed() {
    let ends = |name: &str, with: fn() -> Result<&'static str, ToolError>| {
        builder(name)
            .handler(move |_: Value, cx: ToolContext| async move {
                cx.cancellation().cancelled().await;
                with()
            })
            .unwrap()
    };
    let engine = engine()
        .tools([
            ends("done", || Ok("paid")),
            ends("undone", || Err(ToolError::failed("nothing was paid"))),
            ends("unsure", || Err(ToolError::new(ErrorCode::OutcomeUnknown, "perhaps paid"))),
        ])
        .build()
        .unwrap();
    let timed_out =
        batch(&engine, ["done", "undone", "unsure"].map(|n| call(n, json!({}))).into()).await;
    let mut stopped = vec![];
    for name in ["done", "undone", "unsure"] {
        stopped.push(cancelled(&engine, name).await);
    }
    for (results, code) in [(timed_out, ErrorCode::Timeout), (stopped, ErrorCode::Cancelled)] {
        assert_eq!((results[0].code, &*results[0].value), (None, "paid"));
        assert_eq!(results[1].code, Some(code));
        assert_eq!(results[1].cause.as_deref(), Some("nothing was paid"));
        assert!(results[1].text.ends_with("It said: nothing was paid"), "{}", results[1].text);
        assert_eq!(
            results[2].code,
            Some(ErrorCode::OutcomeUnknown),
            "its word is better than ours"
        );
        assert!(results[2].value.contains("check before"), "{}", results[2].value);
        assert!(results.iter().all(|result| !result.abandoned));
    }
}

#[tokio::test]
async fn a_blocking_body_that_never_returns_is_left_behind_and_never_heard_again() {
    let (release, wait) = mpsc::channel::<()>();
    let (gone, is_gone) = mpsc::channel::<()>();
    let (wait, gone) = (Mutex::new(wait), Mutex::new(gone));
    let stubborn = builder("stubborn")
        .blocking(move |_: Value, cx: ToolContext| {
            cx.progress(Progress::user("began"));
            let _ = wait.lock().unwrap().recv();
            cx.progress(Progress::user("still here"));
            gone.lock().unwrap().send(()).unwrap();
            "too late"
        })
        .unwrap();
    let engine = quick().tool(stubborn).build().unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let log = Log::of(turn.events().run());
    let mut iteration = turn.iteration().await.unwrap();
    let result = in_time(iteration.execute(vec![call("stubborn", json!({}))])).await.remove(0);
    assert!(result.abandoned);
    assert_eq!(result.code, Some(ErrorCode::OutcomeUnknown));
    let before = log.events().len();
    assert_eq!(log.of_name("tool.end")[0]["abandoned"], true);

    release.send(()).unwrap();
    is_gone.recv().unwrap();
    tokio::task::yield_now().await;
    assert_eq!(log.events().len(), before);
    drop(iteration);
    drop(turn);
    let progress = log.of_name("tool.progress");
    assert!(progress.iter().all(|event| event["message"] == "began"), "{progress:?}");
}

#[tokio::test]
async fn a_blocking_body_that_watches_its_token_ends_by_itself() {
    let watching = builder("watching")
        .blocking(|_: Value, cx: ToolContext| {
            while !cx.cancellation().is_cancelled() {
                std::thread::yield_now();
            }
            "stopped in time"
        })
        .unwrap();
    // The grace is long: what is tested is that it is not used up.
    let limits = Limits {
        tool_timeout: Duration::from_millis(20),
        cancel_grace: Duration::from_secs(60),
        ..Limits::default()
    };
    let engine = engine().tool(watching).limits(limits).build().unwrap();
    let result = in_time(once(&engine, "watching", json!({}))).await;
    assert_eq!((result.code, &*result.value), (None, "stopped in time"));
    assert!(!result.abandoned);
}

#[tokio::test]
async fn after_cancellation_no_body_begins() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let tool = builder("t")
        .handler(move |_: Value, _: ToolContext| {
            counted.fetch_add(1, Ordering::SeqCst);
            async { "ran" }
        })
        .unwrap();
    let engine = engine().tool(tool).build().unwrap();
    let cancel = CancellationToken::new();
    let options = TurnOptions::default().cancellation(cancel.clone());
    let mut turn = engine.turn(options).unwrap();
    let mut iteration = turn.iteration().await.unwrap();
    cancel.cancel();
    let calls = vec![call("t", json!({})), call("t", json!({}))];
    let results = iteration.execute(calls).await;
    let codes: Vec<_> = results.iter().map(|result| result.code).collect();
    assert_eq!(codes, [Some(ErrorCode::Cancelled); 2]);
    assert_eq!(runs.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn cancellation_stops_a_running_body_and_says_whether_it_may_have_had_its_effect() {
    let (reads, reads_dropped) = endless(builder("reads").read_only());
    let (writes, writes_dropped) = endless(builder("writes"));
    let engine = engine().tools([reads, writes]).build().unwrap();
    let result = cancelled(&engine, "reads").await;
    assert_eq!(result.code, Some(ErrorCode::Cancelled));
    assert_eq!(&*result.value, "`reads` was cancelled");
    let result = cancelled(&engine, "writes").await;
    assert_eq!(result.code, Some(ErrorCode::OutcomeUnknown));
    assert_eq!(result.cause.as_deref(), Some("cancelled"));
    assert!(reads_dropped.load(Ordering::SeqCst) && writes_dropped.load(Ordering::SeqCst));
}

#[tokio::test]
async fn a_batch_that_is_dropped_takes_its_bodies_along() {
    let (never, dropped) = endless(builder("never"));
    let (saw, seen) = mpsc::channel();
    let saw = Mutex::new(saw);
    let begun = CancellationToken::new();
    let begins = begun.clone();
    let watching = builder("watching")
        .blocking(move |_: Value, cx: ToolContext| {
            begins.cancel();
            while !cx.cancellation().is_cancelled() {
                std::thread::yield_now();
            }
            let _ = saw.lock().unwrap().send(());
            ""
        })
        .unwrap();
    let engine = engine().tools([never, watching]).build().unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let mut iteration = turn.iteration().await.unwrap();
    let calls = vec![call("never", json!({})), call("watching", json!({}))];
    tokio::select! {
        _ = iteration.execute(calls) => panic!("neither ends by itself"),
        () = begun.cancelled() => {}
    }
    let noticed = tokio::task::spawn_blocking(move || seen.recv_timeout(Duration::from_secs(300)));
    assert!(noticed.await.unwrap().is_ok(), "a blocking body is cancelled");
    in_time(async {
        while !dropped.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
    })
    .await;
    drop(iteration);
    // The turn itself goes on.
    assert!(turn.iteration().await.is_ok());
}

/// Case 43 of the providers' reference adds a note to the second of equal calls. There is none
/// here, by our decision: a model reads only a call's own result. To act on repetition, count with
/// `IterationContext::call_count`.
#[tokio::test]
async fn calls_that_are_alike_have_results_that_are_alike_and_no_note() {
    let takes_anything = builder("t").input_schema(json!({ "type": "object" }));
    let engine = engine().tool(says(takes_anything, "ran")).build().unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let mut values = Vec::new();
    for args in [json!({"a": 1, "b": 2}), json!({"b": 2, "a": 1}), json!({"a": 1, "b": 2})] {
        let mut iteration = turn.iteration().await.unwrap();
        let result = iteration.execute(vec![call("t", args)]).await.remove(0);
        values.push((result.value.clone(), result.text.clone()));
    }
    assert_eq!(&*values[0].0, "ran");
    assert_eq!(values[0], values[1]);
    assert_eq!(values[1], values[2]);
}

/// Case 48 of the providers' reference, its first half: each waits for all others to be there.
#[tokio::test]
async fn calls_of_a_batch_run_at_the_same_time() {
    const CALLS: usize = 8;
    let meet = Arc::new(tokio::sync::Barrier::new(CALLS));
    let meet_blocking = Arc::new(Barrier::new(CALLS));
    let engine = engine()
        .tool(
            builder("meet")
                .handler(move |_: Value, _: ToolContext| {
                    let meet = Arc::clone(&meet);
                    async move {
                        meet.wait().await;
                        "met"
                    }
                })
                .unwrap(),
        )
        .tool(
            builder("meet_blocking")
                .blocking(move |_: Value, _: ToolContext| {
                    meet_blocking.wait();
                    "met"
                })
                .unwrap(),
        )
        .build()
        .unwrap();
    let calls = (0..2 * CALLS)
        .map(|n| call(if n % 2 == 0 { "meet" } else { "meet_blocking" }, json!({})))
        .collect();
    let results = in_time(batch(&engine, calls)).await;
    assert!(results.iter().all(ToolResult::is_ok));
}

/// Case 48 of the providers' reference, its second half.
#[tokio::test(start_paused = true)]
async fn results_are_in_the_order_of_the_calls() {
    let sleepy = builder("sleepy")
        .input_schema(json!({"type": "object"}))
        .handler(|args: Value, _: ToolContext| async move {
            tokio::time::sleep(Duration::from_millis(args["ms"].as_u64().unwrap())).await;
            args["ms"].to_string()
        })
        .unwrap();
    let engine = engine().tool(sleepy).build().unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let log = Log::of(turn.events().run());
    let calls = [500, 5, 50].map(|ms| call("sleepy", json!({ "ms": ms })));
    let results = turn.iteration().await.unwrap().execute(calls.into()).await;
    let values: Vec<_> = results.iter().map(|result| &*result.value).collect();
    assert_eq!(values, ["500", "5", "50"]);
    // Events tell what happened when it did.
    let ended: Vec<_> = log.of_name("tool.end").iter().map(|end| end["value"].clone()).collect();
    assert_eq!(ended, [json!("5"), json!("50"), json!("500")]);
    assert!(
        engine
            .turn(TurnOptions::default())
            .unwrap()
            .iteration()
            .await
            .unwrap()
            .execute(vec![])
            .await
            .is_empty()
    );
}

#[tokio::test]
async fn progress_comes_in_order_for_every_audience_before_the_end() {
    let busy = builder("busy")
        .handler(|_: Value, cx: ToolContext| async move {
            cx.progress(Progress::internal("one"));
            tokio::task::yield_now().await;
            cx.progress(Progress { audience: Audience::Dashboard, ..Progress::internal("two") });
            cx.progress(Progress::user("three").percent(250));
            "done"
        })
        .unwrap();
    let engine = engine().tool(busy).build().unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let log = Log::of(turn.events().run());
    turn.iteration().await.unwrap().execute(vec![call("busy", json!({}))]).await;
    let progress: Vec<_> = log
        .of_name("tool.progress")
        .iter()
        .map(|p| (p["message"].clone(), p["audience"].clone(), p["percent"].clone()))
        .collect();
    assert_eq!(
        progress,
        [
            (json!("one"), json!("internal"), Value::Null),
            (json!("two"), json!("dashboard"), Value::Null),
            (json!("three"), json!("user"), json!(100)),
        ]
    );
    assert_eq!(log.names().last(), Some(&"tool.end"));
}

#[tokio::test]
async fn progress_that_nobody_could_have_read_is_dropped_and_never_waited_for() {
    let chatty = builder("chatty")
        .handler(|_: Value, cx: ToolContext| async move {
            for n in 0..10_000 {
                cx.progress(Progress::internal(n.to_string()));
            }
            "done"
        })
        .unwrap();
    let engine = engine().tool(chatty).build().unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let log = Log::of(turn.events().run());
    let results = turn.iteration().await.unwrap().execute(vec![call("chatty", json!({}))]).await;
    assert!(results[0].is_ok());
    let progress = log.of_name("tool.progress");
    assert_eq!(progress.len(), 64);
    assert_eq!(progress[63]["message"], "63");
}

#[tokio::test]
async fn a_flood_of_progress_cannot_outrun_the_deadline() {
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let flood = builder("flood")
        .blocking(move |_: Value, cx: ToolContext| {
            while !stopped.load(Ordering::SeqCst) {
                cx.progress(Progress::internal("more"));
            }
            ""
        })
        .unwrap();
    let engine = quick().tool(flood).build().unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    // A listener that takes its time keeps the queue full.
    turn.events()
        .run()
        .on("tool.progress", |_| std::thread::sleep(Duration::from_micros(200)))
        .unwrap();
    let mut iteration = turn.iteration().await.unwrap();
    let calls = vec![call("flood", json!({}))];
    let patience = tokio::time::timeout(Duration::from_secs(300), iteration.execute(calls));
    let results = patience.await;
    stop.store(true, Ordering::SeqCst);
    assert!(results.expect("it outran its deadline")[0].abandoned);
}

#[tokio::test]
async fn a_body_reads_its_call_its_run_and_its_identity() {
    let seen = Arc::new(Mutex::new(None));
    let spy = {
        let seen = Arc::clone(&seen);
        builder("spy")
            .handler(move |_: Value, cx: ToolContext| {
                *seen.lock().unwrap() = Some(cx);
                async { "" }
            })
            .unwrap()
    };
    let engine = engine().tool(spy).build().unwrap();
    let mut options = TurnOptions::default().tenant("acme").principal("ann").conversation("c-9");
    options.turn_id = Some("run-1".into());
    options.working_dir = Some("/somewhere".into());
    let mut turn = engine.turn(options).unwrap();
    turn.iteration().await.unwrap();
    let mut iteration = turn.iteration().await.unwrap();
    iteration.execute(vec![call("spy", json!({}))]).await;
    let cx = seen.lock().unwrap().take().unwrap();
    assert_eq!((&**cx.turn_id(), &**cx.call_id(), cx.iteration()), ("run-1", "id-spy", 2));
    assert_eq!(cx.identity().tenant.as_deref(), Some("acme"));
    assert_eq!(cx.identity().principal.as_deref(), Some("ann"));
    assert_eq!(&*cx.identity().conversation, "c-9");
    assert_eq!(cx.working_dir(), std::path::Path::new("/somewhere"));
    let nobody = engine.turn(TurnOptions::default()).unwrap();
    assert_eq!(nobody.identity().conversation, *nobody.turn_id());
    assert_eq!(nobody.identity().principal, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_turns_on_one_engine_do_not_mix() {
    let echo = builder("echo")
        .handler(|_: Value, cx: ToolContext| async move {
            tokio::task::yield_now().await;
            format!("{} {}", cx.identity().principal.as_deref().unwrap(), cx.turn_id())
        })
        .unwrap();
    let engine = engine().tool(echo).build().unwrap();
    let turns = (0..100).map(|n| {
        let engine = engine.clone();
        tokio::spawn(async move {
            let mut options = TurnOptions::default().principal(format!("p{n}"));
            options.turn_id = Some(format!("run-{n}").into());
            let mut turn = engine.turn(options).unwrap();
            let log = Log::of(turn.events().run());
            turn.registry().register(tool(&format!("own_{n}"))).unwrap();
            let mut iteration = turn.iteration().await.unwrap();
            assert_eq!(crate::support::menu(&iteration), ["echo".to_owned(), format!("own_{n}")]);
            let results = iteration.execute(vec![call("echo", json!({})); 3]).await;
            for result in results {
                assert_eq!(&*result.value, format!("p{n} run-{n}"));
            }
            assert!(log.events().iter().all(|event| *event.turn_id == *format!("run-{n}")));
        })
    });
    for turn in Vec::from_iter(turns) {
        in_time(turn).await.unwrap();
    }
}

#[tokio::test]
async fn a_sequential_tool_runs_alone_and_in_its_place() {
    let running = Arc::new(AtomicUsize::new(0));
    let order = Arc::new(Mutex::new(Vec::new()));
    let worker = |name: &'static str, builder: ToolBuilder| {
        let (running, order) = (Arc::clone(&running), Arc::clone(&order));
        builder
            .handler(move |_: Value, _: ToolContext| {
                let (running, order) = (Arc::clone(&running), Arc::clone(&order));
                async move {
                    let beside = running.fetch_add(1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    running.fetch_sub(1, Ordering::SeqCst);
                    order.lock().unwrap().push(name);
                    json!({ "beside": beside })
                }
            })
            .unwrap()
    };
    let engine = engine()
        .tool(worker("shared", builder("shared")))
        .tool(worker("alone", builder("alone").sequential()))
        .build()
        .unwrap();
    let calls = ["shared", "shared", "alone", "alone", "shared", "shared"];
    let calls = calls.iter().enumerate();
    let calls = calls.map(|(n, name)| ToolCall::new(format!("c{n}"), *name, json!({}))).collect();
    let results = in_time(batch(&engine, calls)).await;
    let beside: Vec<_> = results.iter().map(|result| result.structured.clone().unwrap()).collect();
    let beside: Vec<_> = beside.iter().map(|data| data["beside"].as_u64().unwrap()).collect();
    assert_eq!((beside[0] + beside[1], beside[4] + beside[5]), (1, 1), "{beside:?}");
    assert_eq!((beside[2], beside[3]), (0, 0));
    assert_eq!(*order.lock().unwrap(), ["shared", "shared", "alone", "alone", "shared", "shared"]);
}
