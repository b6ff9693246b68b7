//! How an answer leaves, and what is kept of a request.

use std::time::{Duration, Instant};

use serde_json::json;
use toolcrib_testbed::{Method, Protocol};

use crate::{
    answers::{ask, body, user},
    support::{builder, in_time, send, server},
};

#[tokio::test]
async fn events_leave_one_by_one_and_bytes_are_cut_anywhere_when_asked() {
    let hello = body(Protocol::Ollama, &json!([user(Protocol::Ollama, "hello")]));
    let plain = ask(&server().await, Protocol::Ollama, &hello).await;
    assert!(plain.pieces.iter().all(|piece| piece.ends_with(b"\n")));
    assert_eq!(plain.pieces.len(), 3);

    let cut = builder().chunk_bytes(1).start().await.unwrap();
    let cut = ask(&cut, Protocol::Ollama, &hello).await;
    assert_eq!(cut.text(), plain.text());
    assert!(cut.pieces.iter().all(|piece| piece.len() == 1));
    assert!(cut.pieces.iter().any(|piece| std::str::from_utf8(piece).is_err()));
}

#[tokio::test]
async fn pieces_wait_for_each_other_when_asked() {
    let slow = builder().delay(Duration::from_millis(30)).start().await.unwrap();
    let begun = Instant::now();
    ask(
        &slow,
        Protocol::Ollama,
        &body(Protocol::Ollama, &json!([user(Protocol::Ollama, "hello")])),
    )
    .await;
    assert!(begun.elapsed() >= Duration::from_millis(60));
}

#[tokio::test]
async fn parallel_calls_come_in_turn_when_asked() {
    let request = body(Protocol::OpenAi, &json!([user(Protocol::OpenAi, "order 7")]));
    let mut orders = Vec::new();
    for server in [builder(), builder().interleave_calls(true)] {
        let came = ask(&server.start().await.unwrap(), Protocol::OpenAi, &request).await;
        let data = came.data();
        let pieces = data
            .iter()
            .filter_map(|event| event.pointer("/choices/0/delta/tool_calls/0/index")?.as_u64());
        orders.push(pieces.map(|index| index.to_string()).collect::<String>());
    }
    let (one_by_one, in_turn) = (&orders[0], &orders[1]);
    assert!(one_by_one.contains("01") && !one_by_one.contains("10"), "{one_by_one}");
    assert!(in_turn.starts_with("010101"), "{in_turn}");
    let of_first = |order: &str| order.matches('0').count();
    assert_eq!((one_by_one.len(), of_first(one_by_one)), (in_turn.len(), of_first(in_turn)));
}

#[tokio::test]
async fn the_same_requests_get_the_same_bytes() {
    let request = body(Protocol::Anthropic, &json!([user(Protocol::Anthropic, "order 7")]));
    let mut answers = Vec::new();
    for _ in 0..2 {
        answers.push(ask(&server().await, Protocol::Anthropic, &request).await.text());
    }
    assert_eq!(answers[0], answers[1]);
}

#[tokio::test]
async fn a_stream_of_gemini_without_events_is_one_array() {
    let server = server().await;
    let path = "/v1/models/test-model:streamGenerateContent?key=test-key";
    let contents = r#"{"contents":[{"parts":[{"text":"hello"}]}]}"#;
    let came = send(&server.url(), "POST", path, &[], contents).await;
    assert_eq!(came.json().as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn every_request_is_kept_also_one_that_is_refused() {
    let server = server().await;
    assert!(server.recorder().is_empty());
    let waiting = tokio::spawn({
        let recorder = server.recorder().clone();
        async move { recorder.wait_for(2).await.len() }
    });
    send(&server.url(), "GET", "/v1/models?limit=1", &[("x-mine", "1")], "").await;
    send(&server.url(), "POST", "/api/chat", &[], "no JSON").await;
    assert_eq!(in_time(waiting).await.unwrap(), 2);

    let kept = server.recorder().requests();
    assert_eq!((&kept[0].method, &*kept[0].path_and_query), (&Method::GET, "/v1/models?limit=1"));
    assert_eq!(kept[0].header("X-Mine"), Some("1"));
    assert_eq!(kept[1].body, "no JSON");
    assert!(kept[1].json().is_err());
    server.recorder().clear();
    assert!(server.recorder().last().is_none());
}
