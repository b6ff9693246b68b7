//! Servers that fail, and what it costs others.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::future::join_all;
use serde_json::json;
use tokio::time::{Instant, sleep};
use toolcrib_core::ErrorCode;
use toolcrib_engine::{OnFailure, TurnOptions};
use toolcrib_mcp::{McpClient, McpError, ServerState};

use super::support::{
    built, call, engine, engine_of, iteration, menu, mock, names, offered, once, tool_of,
};

async fn until(client: &McpClient, state: ServerState) {
    while client.status().state != state {
        sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn many_first_listings_start_one_connection_and_ask_once() {
    let (client, server) = built(mock(&["a"]));
    let engine = engine_of(&client, OnFailure::Fail);
    let asked = (0..50).map(|_| offered(&engine));
    for names in join_all(asked).await {
        assert_eq!(names, ["mcp__mock__a"]);
    }
    assert_eq!((server.connections(), server.lists()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_waiter_does_not_end_the_wait_of_others() {
    let (client, server) = built(mock(&["a"]));
    server.delay(Duration::from_secs(1));
    let (gone, stays) = (client.clone(), client.clone());
    let gone = tokio::spawn(async move { gone.tools().await });
    let stays = tokio::spawn(async move { stays.tools().await });
    sleep(Duration::from_millis(500)).await;
    gone.abort();
    assert_eq!(names(&stays.await.unwrap().unwrap()), ["mcp__mock__a"]);
    assert_eq!((server.connections(), server.lists()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_reconnect_changes_nothing_in_the_menu() {
    let (client, server) = built(mock(&["b", "a"]));
    let engine = engine_of(&client, OnFailure::Fail);
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let before = Arc::clone(turn.iteration().await.unwrap().menu());
    sleep(Duration::from_secs(60)).await;

    // It is queried again in the background, without waiters.
    server.delay(Duration::from_secs(1));
    server.crash();
    while server.lists() < 2 {
        sleep(Duration::from_millis(1)).await;
    }
    let began = Instant::now();
    let during = Arc::clone(turn.iteration().await.unwrap().menu());
    assert_eq!(began.elapsed(), Duration::ZERO);
    sleep(Duration::from_secs(2)).await;
    let after = Arc::clone(turn.iteration().await.unwrap().menu());
    assert_eq!(during.fingerprint(), before.fingerprint());
    assert_eq!(after.rendering(), before.rendering());
    assert!(after.tools()[0].same(&before.tools()[0]));
    assert_eq!((client.status().epoch, server.connections()), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_be_reached_is_left_alone_between_tries() {
    let (client, server) = built(mock(&["a"]));
    server.refuse_connections(usize::MAX);
    let error = client.tools().await.unwrap_err();
    let McpError::Unreachable { failures, problem, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(*failures, 1);
    assert!(problem.contains("refuses connections"), "{problem}");

    // The breaker opens after five failures; until then each wait is over before the next try.
    let mut tries = 1;
    while client.status().state != ServerState::Open {
        assert_eq!(client.status().state, ServerState::BackingOff);
        sleep(client.status().next_try_in.unwrap()).await;
        client.tools().await.unwrap_err();
        tries += 1;
    }
    assert_eq!(tries, 5);

    // While it is open, requests fail at once and no attempt is made.
    let (began, connections) = (Instant::now(), server.connections());
    for _ in 0..100 {
        client.tools().await.unwrap_err();
    }
    assert_eq!((began.elapsed(), server.connections()), (Duration::ZERO, connections));
    let wait = client.status().next_try_in.unwrap();
    assert!(wait > Duration::from_secs(29) && wait <= Duration::from_secs(30), "{wait:?}");

    // One try is let through, and closes it.
    server.refuse_connections(0);
    sleep(wait).await;
    assert_eq!(names(&client.tools().await.unwrap()), ["mcp__mock__a"]);
    assert_eq!(client.status().state, ServerState::Ready);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_keeps_dying_is_retried_with_backoff_and_recovers() {
    let (client, server) = built(mock(&["a"]));
    client.tools().await.unwrap();
    // The first time it is brought back at once, then more and more slowly, then not for a while.
    let mut deaths = 0;
    while client.status().state != ServerState::Open {
        if client.status().state == ServerState::Ready {
            deaths += 1;
            server.crash();
        }
        sleep(Duration::from_millis(5)).await;
        let _ = client.tools().await;
        assert!(deaths < 20, "it is brought back for ever");
    }
    assert_eq!(deaths, 6);

    sleep(client.status().next_try_in.unwrap()).await;
    assert_eq!(names(&client.tools().await.unwrap()), ["mcp__mock__a"]);
    // It lives, and what was before is forgotten.
    sleep(Duration::from_secs(11)).await;
    server.crash();
    until(&client, ServerState::Ready).await;
    assert_eq!(names(&client.tools().await.unwrap()), ["mcp__mock__a"]);
    assert_eq!(client.status().next_try_in, None);
}

#[tokio::test(start_paused = true)]
async fn a_failing_server_does_not_delay_another() {
    let (bad, bad_server) = built(mock(&["a"]).name("bad"));
    let (good, good_server) = built(mock(&["a"]).name("good"));
    let engine = engine()
        .provider_with(Arc::new(bad.clone()), OnFailure::Omit)
        .provider_with(Arc::new(good.clone()), OnFailure::Fail)
        .build()
        .unwrap();
    assert_eq!(offered(&engine).await, ["mcp__bad__a", "mcp__good__a"]);

    bad_server.refuse_connections(usize::MAX);
    bad_server.crash();
    until(&bad, ServerState::BackingOff).await;
    for _ in 0..50 {
        let began = Instant::now();
        assert_eq!(offered(&engine).await, ["mcp__good__a"]);
        let result = once(&engine, "mcp__good__a", json!({})).await;
        assert!(result.is_ok());
        assert_eq!(began.elapsed(), Duration::ZERO, "it waits for the one that fails");
        sleep(Duration::from_millis(100)).await;
    }
    assert_eq!((good_server.connections(), good_server.lists()), (1, 1));

    let iteration = iteration(&engine).await;
    let withheld = iteration.withheld().tool("mcp__bad__*").unwrap();
    assert!(withheld.reason.contains("bad"), "{withheld:?}");

    // It comes back without anybody waiting for it: one iteration begins the try, a later one sees it.
    bad_server.refuse_connections(0);
    sleep(Duration::from_secs(31)).await;
    while menu(&super::support::iteration(&engine).await).len() < 2 {
        sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_of_a_server_that_is_gone_is_told_so_at_once() {
    let (client, server) = built(mock(&["a"]));
    let tool = tool_of(&client, "a").await;
    server.refuse_connections(usize::MAX);
    server.crash();
    until(&client, ServerState::BackingOff).await;
    let (code, message) = call(&tool).await.unwrap_err();
    assert_eq!(code, ErrorCode::NotAvailable);
    assert!(message.starts_with("MCP server `mock` cannot be used at the moment; "), "{message}");
    assert!(!message.contains("refuse"), "what the operator reads: {message}");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_fails_is_asked_for_again_later_and_calls_go_on() {
    let (client, server) = built(mock(&["a"]));
    let tool = tool_of(&client, "a").await;
    let mut changes = client.changes();
    server.announce_changes(1).await;
    changes.changed().await.unwrap();
    server.fail_next_list(-32_603, "the disk is full");
    let error = client.tools().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "MCP server `mock` does not list its tools: page 1 of its tools: the server answered with \
         error -32603: the disk is full"
    );
    assert!(call(&tool).await.is_ok());
    sleep(Duration::from_millis(200)).await;
    assert_eq!(names(&client.tools().await.unwrap()), ["mcp__mock__a"]);
    assert_eq!(server.connections(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_lists_too_slowly_is_waited_for_once() {
    let slow = mock(&["a"]).client(|client| client.list_timeout(Duration::from_secs(2)));
    let (client, server) = built(slow);
    let engine = engine_of(&client, OnFailure::Omit);
    server.delay(Duration::from_secs(3_600));
    let began = Instant::now();
    assert!(offered(&engine).await.is_empty());
    assert_eq!(began.elapsed().as_secs(), 2);
    for _ in 0..20 {
        let began = Instant::now();
        assert!(offered(&engine).await.is_empty());
        assert_eq!(began.elapsed(), Duration::ZERO);
        sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_unresponsive_server_is_reconnected() {
    let slow = mock(&["a"]).client(|client| client.list_timeout(Duration::from_secs(2)));
    let (client, server) = built(slow);
    client.tools().await.unwrap();
    sleep(Duration::from_secs(60)).await;
    server.delay(Duration::from_secs(3_600));
    for _ in 0..5 {
        assert_eq!(server.connections(), 1);
        client.refresh().await.unwrap_err();
    }
    server.delay(Duration::ZERO);
    while server.connections() < 2 {
        sleep(Duration::from_millis(1)).await;
    }
    until(&client, ServerState::Ready).await;
    assert_eq!(names(&client.refresh().await.unwrap()), ["mcp__mock__a"]);
}

#[tokio::test(start_paused = true)]
async fn the_text_of_a_lasting_failure_does_not_change() {
    let (client, server) = built(mock(&["a"]));
    server.refuse_connections(usize::MAX);
    let first = client.tools().await.unwrap_err().to_string();
    for _ in 0..50 {
        sleep(Duration::from_millis(100)).await;
        assert_eq!(client.tools().await.unwrap_err().to_string(), first);
    }
}

#[tokio::test(start_paused = true)]
async fn changes_of_state_are_reported_in_order() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&told);
    let listening = mock(&["a"]).client(move |client| {
        client
            .on_state_change(|_| panic!("a listener that panics takes nobody along"))
            .on_state_change(move |change| log.lock().unwrap().push(change.to_string()))
    });
    let (client, server) = built(listening);
    client.tools().await.unwrap();
    sleep(Duration::from_secs(60)).await;
    server.refuse_connections(1);
    server.crash();
    until(&client, ServerState::BackingOff).await;
    client.close().await;
    let told = told.lock().unwrap();
    let states: Vec<_> =
        told.iter().map(|line| line.split(": ").nth(1).unwrap_or_default()).collect();
    assert_eq!(
        states,
        ["connecting", "ready", "idle", "connecting", "backing_off", "closed"],
        "{told:?}"
    );
    assert!(told[4].contains("refuses connections"), "{}", told[4]);
}
