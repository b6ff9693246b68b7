//! Bodies that run on the task of their call are held to the same as spawned ones.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::Duration,
};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use toolcrib_core::{ErrorCode, Tool, ToolBody, ToolBuilder, ToolContext, ToolError, ToolOutput};
use toolcrib_engine::TurnOptions;

use crate::{
    pipe_run::{Flag, cancelled, quick},
    support::{batch, builder, call, engine, in_time, once, says, tool},
};

/// A body that runs on the task of its call, and reports when it is dropped.
struct OnlyWaits(Arc<AtomicBool>);

/// Returns, panics or hangs, as the arguments say. The test has no task, but a spawned body has one.
async fn does(args: Value) -> Result<ToolOutput, ToolError> {
    assert_eq!(tokio::task::try_id(), None, "the body was spawned");
    match args["does"].as_str() {
        Some("answers") => Ok(ToolOutput::text("ran")),
        Some("panics") => panic!("hunter2 in a panic"),
        _ => std::future::pending().await,
    }
}

impl ToolBody for OnlyWaits {
    fn call(
        self: Arc<Self>,
        args: Value,
        _: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let flag = Flag(Arc::clone(&self.0));
        Box::pin(async move {
            let _flag = flag;
            does(args).await
        })
    }

    fn runs_inline(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn a_body_that_only_waits_is_held_to_the_same() {
    held_to_the_same(|builder, dropped| builder.body(OnlyWaits(dropped)).unwrap()).await;
}

#[tokio::test]
async fn a_body_that_is_declared_inline_is_held_to_the_same() {
    held_to_the_same(|builder, dropped| {
        let body = move |args: Value, _: ToolContext| {
            let flag = Flag(Arc::clone(&dropped));
            async move {
                let _flag = flag;
                does(args).await
            }
        };
        builder.inline().handler(body).unwrap()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_blocks_undeclared_meets_its_deadline_and_delays_no_other_call() {
    let (release, wait) = mpsc::channel::<()>();
    let (wait, longest) = (Mutex::new(wait), Duration::from_secs(60));
    let blocks = builder("blocks")
        .read_only()
        .handler(move |_: Value, _: ToolContext| {
            let _ = wait.lock().unwrap().recv_timeout(longest);
            async { "too late" }
        })
        .unwrap();
    let inline = says(builder("inline").inline(), "ran");
    let engine = quick().tools([blocks, inline, tool("spawned")]).build().unwrap();
    let calls = ["blocks", "inline", "spawned"].map(|name| call(name, json!({})));
    let results = in_time(batch(&engine, calls.into())).await;
    release.send(()).unwrap();
    assert_eq!(results[0].code, Some(ErrorCode::Timeout));
    assert!(results[0].abandoned);
    assert!(results[1].is_ok() && results[2].is_ok());
}

async fn held_to_the_same(tool: impl Fn(ToolBuilder, Arc<AtomicBool>) -> Tool) {
    let dropped = Arc::new(AtomicBool::new(false));
    let runs_inline = || {
        dropped.store(false, Ordering::SeqCst);
        let builder = builder("t").read_only().input_schema(json!({ "type": "object" }));
        tool(builder, Arc::clone(&dropped))
    };
    let engine_of = || quick().tool(runs_inline()).build().unwrap();
    for (does, code) in [
        ("answers", None),
        ("panics", Some(ErrorCode::ExecutionFailed)),
        ("hangs", Some(ErrorCode::Timeout)),
    ] {
        let result = once(&engine_of(), "t", json!({ "does": does })).await;
        assert_eq!(result.code, code, "{does}");
        assert!(!result.abandoned && dropped.load(Ordering::SeqCst), "{does}");
        assert!(!result.text.contains("hunter2"), "{}", result.text);
    }
    let patient = engine().tool(runs_inline()).build().unwrap();
    let result = cancelled(&patient, "t").await;
    assert_eq!(result.code, Some(ErrorCode::Cancelled));
    assert!(!result.abandoned && dropped.load(Ordering::SeqCst));
    // Dropping a run leaves nothing running.
    let mut turn = engine_of().turn(TurnOptions::default()).unwrap();
    let mut iteration = turn.iteration().await.unwrap();
    let hangs = iteration.execute(vec![call("t", json!({}))]);
    assert!(futures_util::poll!(std::pin::pin!(hangs)).is_pending());
    assert!(dropped.load(Ordering::SeqCst));
}
