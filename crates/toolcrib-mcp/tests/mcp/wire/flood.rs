//! Servers that send unrequested messages.

use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, sleep};
use toolcrib_core::{CancellationToken, ErrorCode};
use toolcrib_engine::Redactor;

use super::{
    call, call_with, calling,
    raw::{connected, raw, raw_with},
};

#[tokio::test]
async fn a_line_without_end_ends_the_connection_before_it_fills_the_memory() {
    let (client, tool, mut server, _connections) = connected(1024 * 1024).await;
    let server = tokio::spawn(async move {
        server.expect("tools/call").await;
        let megabyte = vec![b'x'; 1024 * 1024];
        let mut written = 0;
        while written < 1024 && server.bytes(&megabyte).await {
            written += 1;
        }
        written
    });
    let failed = call(&tool).await.unwrap_err();
    let says = "it sent a line of more than 16777216 bytes, the limit of a message; request less at a \
                time, or have the server return less";
    assert_eq!(failed.code, ErrorCode::OutcomeUnknown);
    assert!(failed.reason.ends_with(says), "{failed:?}");
    assert_eq!(client.status().last_error.as_deref(), Some(says));
    assert!(server.await.unwrap() < 20);
}

#[tokio::test]
async fn lines_that_are_no_messages_are_skipped_up_to_a_hundred_in_a_row() {
    let (client, mut connections) = raw(64 * 1024);
    let server = tokio::spawn(async move {
        let mut server = connections.recv().await.unwrap();
        server.text("Starting the server\n\n{\"level\":\"info\"}\n[]\n").await;
        server.greet_legacy().await;
        server.list().await;
        for _ in 0..2 {
            let request = server.expect("tools/call").await;
            for line in 0..99 {
                server.text(&format!("junk {line}\n")).await;
            }
            server.answer(&request, json!({"content": []})).await;
        }
        server.expect("tools/call").await;
        for line in 0..100 {
            server.text(&format!("more junk {line}\n")).await;
        }
        server
    });
    let tool = client.tools().await.unwrap().remove(0);
    call(&tool).await.unwrap();
    call(&tool).await.unwrap();
    let failed = call(&tool).await.unwrap_err();
    let says = "100 messages in a row are not JSON-RPC; the first begins: more junk 0";
    assert_eq!(failed.code, ErrorCode::OutcomeUnknown);
    assert!(failed.reason.ends_with(says), "{failed:?}");
    drop(server.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_runs_out_quotes_the_lines_that_came_instead_of_a_message() {
    const SECRET: &str = "zq7wm2rt9kx4lp8vn3bc6yd1hs5";
    let limit = Duration::from_secs(3);
    let (client, mut connections) = raw_with(64 * 1024, |client| {
        let client = client.redactor(Redactor::new([SECRET.to_owned()]));
        client.start_timeout(limit).list_timeout(limit)
    });
    let server = tokio::spawn(async move {
        let mut silent = connections.recv().await.unwrap();
        let long = "x".repeat(10_000);
        silent.text(&format!("Key\u{1b}[31m\u{202e} {SECRET} {long}\nanother line\n")).await;
        let mut server = connections.recv().await.unwrap();
        server.greet_legacy().await;
        server.text("Traceback of a list\n").await;
        server.expect("tools/list").await;
        server.expect("notifications/cancelled").await;
        server.list().await;
        server.text("A banner before the call\n").await;
        server.answer(&json!({"id": 0}), json!({})).await;
        let _ = server.expect("tools/call").await;
        server.text("Traceback of a call\n").await;
        server
    });
    let error = client.tools().await.unwrap_err().to_string();
    let begins = "it was not connected within 3s; since then it has sent what is not JSON-RPC (a program \
                  must write its log to standard error), which begins: Key";
    assert!(error.contains(begins) && error.ends_with("xxx…"), "{error}");
    let is_clean = !error.contains(['\u{1b}', '\u{202e}']) && !error.contains("zq7w");
    assert!(is_clean && error.len() < 600, "{error}");
    sleep(Duration::from_secs(60)).await;
    let error = client.tools().await.unwrap_err().to_string();
    assert!(error.contains("did not answer within 3s"), "{error}");
    assert!(error.ends_with("which begins: Traceback of a list"), "{error}");
    sleep(Duration::from_secs(60)).await;
    let tool = client.tools().await.unwrap().remove(0);
    let cancellation = CancellationToken::new();
    let waiting = call_with(&tool, json!({}), cancellation.clone());
    let stop = async {
        let server = server.await.unwrap();
        sleep(limit).await;
        cancellation.cancel();
        server
    };
    let (failed, _server) = tokio::join!(waiting, stop);
    let failed = failed.unwrap_err();
    assert!(failed.reason.ends_with("which begins: Traceback of a call"), "{failed:?}");
    assert!(!failed.message.contains("Traceback"), "{failed:?}");
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_announcements_is_read_at_a_pace_and_its_sender_waits() {
    let (_client, tool, mut server, _connections) = connected(4096).await;
    let server = tokio::spawn(async move {
        let request = server.expect("tools/call").await;
        for _ in 0..25_000 {
            let method = "notifications/tools/list_changed";
            server.write(&json!({"jsonrpc": "2.0", "method": method})).await;
        }
        server.answer(&request, json!({"content": []})).await;
        server
    });
    let began = Instant::now();
    call(&tool).await.unwrap();
    assert!(began.elapsed() >= Duration::from_millis(4_700), "{:?}", began.elapsed());
    drop(server.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn unread_responses_to_a_server_are_limited() {
    let (_client, _tool, mut server, _connections) = connected(512).await;
    let ping = |id: serde_json::Value| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    server.write(&ping(json!("x".repeat(10_000)))).await;
    for id in 0..200 {
        server.write(&ping(json!(id))).await;
    }
    sleep(Duration::from_secs(1)).await;
    let mut answered = 0;
    let mut asked_again = false;
    loop {
        let answer = server.read().await.unwrap();
        assert_eq!(answer["result"], json!({}), "{answer}");
        if answer["id"] == "last" {
            break;
        }
        assert!(answer["id"].is_number(), "an id that long is not sent back");
        answered += 1;
        if answered > 16 && !asked_again {
            // There is room again.
            asked_again = true;
            server.write(&ping(json!("last"))).await;
        }
    }
    assert!(answered < 50, "{answered}");
}

#[tokio::test]
async fn closing_does_not_wait_for_a_flood() {
    let (client, tool, mut server, _connections) = connected(4096).await;
    let waiting = calling(&tool);
    server.expect("tools/call").await;
    let server = tokio::spawn(async move {
        while server.bytes(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n").await {}
    });
    client.close().await;
    let failed = waiting.await.unwrap().unwrap_err();
    assert!(failed.reason.ends_with("it was closed here"), "{failed:?}");
    server.await.unwrap();
}
