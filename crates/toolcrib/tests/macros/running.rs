//! How the body of a function runs.

use std::{
    sync::{Mutex, mpsc},
    thread::{self, ThreadId},
    time::Duration,
};

use serde_json::json;
use toolcrib::{CancellationToken, prelude::*};

use crate::support::{call, made, text};

/// Which thread it runs on.
#[tool]
fn plain(State(seen): State<mpsc::Sender<ThreadId>>) {
    seen.send(thread::current().id()).unwrap();
}

/// Which thread it runs on.
#[tool]
async fn awaiting(State(seen): State<mpsc::Sender<ThreadId>>) {
    seen.send(thread::current().id()).unwrap();
}

#[tokio::test]
async fn a_plain_function_runs_on_the_blocking_pool_and_an_async_one_does_not() {
    let (sender, seen) = mpsc::channel();
    text(plain_tool(sender.clone()), json!({})).await;
    assert_ne!(seen.recv().unwrap(), thread::current().id());
    text(awaiting_tool(sender), json!({})).await;
    assert_eq!(seen.recv().unwrap(), thread::current().id());
}

/// Panics.
#[tool]
async fn panics() {
    panic!("secret words");
}

/// Panics where it blocks.
#[tool]
fn panics_blocking() {
    panic!("secret words");
}

#[tokio::test]
async fn a_panic_is_the_calls_failure_and_its_words_are_the_operators() {
    for tool in [panics_tool(), panics_blocking_tool()] {
        let result = call(tool, json!({})).await;
        assert_eq!(result.code, Some(ErrorCode::ExecutionFailed));
        assert!(!result.text.contains("secret words"), "{}", result.text);
        assert!(result.cause.unwrap().contains("secret words"));
    }
}

/// Blocks past its deadline, and does not know its context.
#[tool(read_only, timeout = "10ms")]
fn stubborn(State(until): State<std::sync::Arc<Mutex<mpsc::Receiver<()>>>>) {
    let _ = until.lock().unwrap().recv_timeout(Duration::from_mins(5));
}

#[tokio::test]
async fn a_function_that_outlives_its_timeout_is_abandoned() {
    let (release, until) = mpsc::channel();
    let tool = made(stubborn_tool(std::sync::Arc::new(Mutex::new(until))));
    let result = call(tool, json!({})).await;
    assert_eq!(result.code, Some(ErrorCode::Timeout));
    assert!(result.abandoned);
    release.send(()).unwrap();
}

/// Waits until it is told to stop.
#[tool(read_only, timeout = "10ms")]
async fn obedient(State(stopped): State<CancellationToken>, cx: ToolContext) -> &'static str {
    cx.cancellation().cancelled().await;
    stopped.cancel();
    "stopped"
}

#[tokio::test]
async fn the_context_is_that_of_the_call() {
    let stopped = CancellationToken::new();
    let result = call(obedient_tool(stopped.clone()), json!({})).await;
    assert!(stopped.is_cancelled());
    assert!(!result.abandoned);
}
