//! Servers that send what nobody asked for.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use tokio::time::Instant;

use super::{super::RequestError, Counted, call, raw::raw, unheard};

#[tokio::test]
async fn a_line_without_end_ends_the_connection_before_it_fills_the_memory() {
    let (connect, mut connections) = raw(1024 * 1024);
    let server = tokio::spawn(async move {
        let mut server = connections.recv().await.unwrap();
        server.greet_legacy().await;
        server.expect("tools/call").await;
        let megabyte = vec![b'x'; 1024 * 1024];
        let mut written = 0;
        while written < 1024 && server.bytes(&megabyte).await {
            written += 1;
        }
        written
    });
    let connection = connect.connect(unheard()).await.unwrap();
    let lost = connection.call_tool(call("flood")).await.unwrap_err();
    let says = "it sent a line of more than 16777216 bytes";
    assert!(matches!(&lost, RequestError::Lost(reason) if reason == says), "{lost:?}");
    assert_eq!(&*connection.closed().await, says);
    connection.close().await;
    assert!(server.await.unwrap() < 20);
}

#[tokio::test]
async fn lines_that_are_no_messages_are_skipped_up_to_a_hundred_in_a_row() {
    let (connect, mut connections) = raw(64 * 1024);
    let server = tokio::spawn(async move {
        let mut server = connections.recv().await.unwrap();
        server.text("Starting the server\n\n{\"level\":\"info\"}\n[]\n").await;
        server.greet_legacy().await;
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
    let connection = connect.connect(unheard()).await.unwrap();
    connection.call_tool(call("work")).await.unwrap();
    connection.call_tool(call("work")).await.unwrap();
    let lost = connection.call_tool(call("work")).await.unwrap_err();
    let says = "100 messages in a row are no JSON-RPC; the first begins: more junk 0";
    assert!(matches!(&lost, RequestError::Lost(reason) if reason == says), "{lost:?}");
    drop(server.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_announcements_is_read_at_a_pace_and_its_sender_waits() {
    let (connect, mut connections) = raw(4096);
    let counted = Arc::new(Counted::default());
    let server = tokio::spawn(async move {
        let mut server = connections.recv().await.unwrap();
        server.greet_legacy().await;
        let request = server.expect("tools/call").await;
        for _ in 0..25_000 {
            let method = "notifications/tools/list_changed";
            server.write(&json!({"jsonrpc": "2.0", "method": method})).await;
        }
        server.answer(&request, json!({"content": []})).await;
        server
    });
    let connection = connect.connect(counted.clone()).await.unwrap();
    let began = Instant::now();
    connection.call_tool(call("work")).await.unwrap();
    assert_eq!(counted.count(), 25_000);
    assert!(began.elapsed() >= Duration::from_millis(4_700), "{:?}", began.elapsed());
    drop(server.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn of_requests_whose_answers_are_not_taken_only_a_few_are_answered() {
    let (connect, mut connections) = raw(512);
    let server = tokio::spawn(async move {
        let mut server = connections.recv().await.unwrap();
        server.greet_legacy().await;
        server
    });
    let _connection = connect.connect(unheard()).await.unwrap();
    let mut server = server.await.unwrap();
    let ping = |id: serde_json::Value| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    server.write(&ping(json!("x".repeat(10_000)))).await;
    for id in 0..200 {
        server.write(&ping(json!(id))).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
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
    let (connect, mut connections) = raw(4096);
    let server = tokio::spawn(async move {
        let mut server = connections.recv().await.unwrap();
        server.greet_legacy().await;
        while server.bytes(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n").await {}
    });
    let connection = connect.connect(unheard()).await.unwrap();
    connection.close().await;
    assert_eq!(&*connection.closed().await, "it was closed here");
    server.await.unwrap();
}
