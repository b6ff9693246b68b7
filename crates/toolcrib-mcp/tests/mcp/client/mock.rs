//! The mock follows its script.

use std::time::Duration;

use tokio::time::Instant;
use toolcrib_core::ErrorCode;

use super::support::{built, call, echo, mock, names, tool_of};

#[tokio::test(start_paused = true)]
async fn the_mock_server_counts_its_requests() {
    let (client, server) = built(mock(&["a"]));
    let tool = tool_of(&client, "a").await;
    call(&tool).await.unwrap();
    call(&tool).await.unwrap();
    assert_eq!(
        format!("{server:?}"),
        "MockServer { connections: 1, lists: 1, calls: 2, cancelled: 0 }"
    );
}

#[tokio::test(start_paused = true)]
async fn the_mock_server_waits_for_the_set_delay() {
    let (client, server) = built(mock(&["a"]));
    let tool = tool_of(&client, "a").await;
    server.delay(Duration::from_secs(7));
    let began = Instant::now();
    call(&tool).await.unwrap();
    assert_eq!(began.elapsed().as_secs(), 7);
}

#[tokio::test(start_paused = true)]
async fn failures_of_the_mock_server_are_queued() {
    let (client, server) = built(mock(&["a"]));
    let tool = tool_of(&client, "a").await;
    server.fail_next_call(-32_603, "one");
    server.fail_next_call(-32_602, "two");
    assert_eq!(call(&tool).await.unwrap_err(), (ErrorCode::ExecutionFailed, "one".to_owned()));
    assert_eq!(call(&tool).await.unwrap_err(), (ErrorCode::InputInvalid, "two".to_owned()));
    assert!(call(&tool).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn tools_that_are_set_before_it_is_asked_are_listed() {
    let (client, server) = built(mock(&["a"]));
    server.set_tools([echo("b")]).await;
    assert_eq!(names(&client.tools().await.unwrap()), ["mcp__mock__b"]);
}
