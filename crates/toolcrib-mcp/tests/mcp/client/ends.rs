//! Nothing is left of a client that is closed or dropped.

use std::time::Duration;

use serde_json::json;
use tokio::{runtime::Handle, time::sleep};
use toolcrib_core::{CancellationToken, ErrorCode, ToolContextParts};
use toolcrib_engine::{OnFailure, TurnOptions};
use toolcrib_mcp::ServerState;

use super::support::{built, call, engine_of, mock, tool_of};

/// Waits until no task of this runtime is left.
async fn nothing_is_left() {
    while Handle::current().metrics().num_alive_tasks() > 0 {
        sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn after_close_everything_says_so_and_no_task_is_left() {
    for legacy in [false, true] {
        let builder = mock(&["a"]);
        let (client, _server) = built(if legacy { builder.legacy() } else { builder });
        let tool = tool_of(&client, "a").await;
        client.close().await;
        nothing_is_left().await;
        assert_eq!(client.status().state, ServerState::Closed);
        let closed = "the client of MCP server `mock` is closed";
        assert_eq!(client.tools().await.unwrap_err().to_string(), closed);
        assert_eq!(client.refresh().await.unwrap_err().to_string(), closed);
        assert_eq!(call(&tool).await.unwrap_err(), (ErrorCode::NotAvailable, closed.to_owned()));
        let engine = engine_of(&client, OnFailure::Fail);
        let error = engine.turn(TurnOptions::default()).unwrap().iteration().await.unwrap_err();
        assert!(error.to_string().contains(closed), "{error}");
        client.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_under_way_at_close_is_answered() {
    let (client, server) = built(mock(&["a"]));
    let tool = tool_of(&client, "a").await;
    server.delay(Duration::from_secs(3_600));
    let calling = tokio::spawn(async move { call(&tool).await });
    while server.calls() == 0 {
        sleep(Duration::from_millis(1)).await;
    }
    client.close().await;
    assert_eq!(calling.await.unwrap().unwrap_err().0, ErrorCode::OutcomeUnknown);
    nothing_is_left().await;
}

#[tokio::test(start_paused = true)]
async fn the_last_client_ends_its_connection_and_tasks() {
    let (client, server) = built(mock(&["a"]));
    let tool = tool_of(&client, "a").await;
    let other = client.clone();
    drop(client);
    assert!(call(&tool).await.is_ok(), "one is left");
    drop(other);
    nothing_is_left().await;
    assert_eq!(call(&tool).await.unwrap_err().0, ErrorCode::NotAvailable);
    assert_eq!(server.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_last_waiter_cancels_the_listing_and_the_connection_stays() {
    let (client, server) = built(mock(&["a"]));
    server.delay(Duration::from_secs(3_600));
    let engine = engine_of(&client, OnFailure::Fail);
    let cancellation = CancellationToken::new();
    let options = TurnOptions::default().cancellation(cancellation.clone());
    let waiting = tokio::spawn(async move {
        engine.turn(options).unwrap().iteration().await.map(|_| ()).map_err(|e| e.to_string())
    });
    while server.lists() == 0 {
        sleep(Duration::from_millis(1)).await;
    }
    cancellation.cancel();
    assert!(waiting.await.unwrap().unwrap_err().contains("cancelled"));
    // The connection stays for the next request; this request does not.
    server.delay(Duration::ZERO);
    client.tools().await.unwrap();
    assert_eq!((server.connections(), server.lists()), (1, 2));
    client.close().await;
    nothing_is_left().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_cancelled_while_it_waits_for_the_server_was_never_sent() {
    let (client, server) = built(mock(&["a"]));
    let tool = tool_of(&client, "a").await;
    let mut parts = ToolContextParts::detached();
    parts.cancellation = CancellationToken::new();
    parts.cancellation.cancel();
    let error = tool.call(json!({}), parts.into()).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::Cancelled);
    assert_eq!(server.calls(), 0);
}
