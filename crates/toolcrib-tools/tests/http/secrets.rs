//! A secret in a header, through an engine: the server gets it, and nothing shows any part of it.

use std::sync::{Arc, Mutex};

use serde_json::json;
use toolcrib_core::{ErrorCode, ToolCall, ToolResult};
use toolcrib_engine::{Engine, Redactor, TurnOptions};
use toolcrib_tools::http::HttpToolSpec;

use crate::support::{SECRET, Server, Vault, answer, client, get, ok};

/// One call through an engine; its result, and all events as JSON.
async fn through_an_engine(spec: HttpToolSpec) -> (ToolResult, String) {
    let name = spec.declaration.name.clone();
    let engine = Engine::builder()
        .redactor(Redactor::default())
        .secrets(Vault::default())
        .tool(spec.build(&client()).unwrap())
        .build()
        .unwrap();
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&events);
    engine.events().on("*", move |event| seen.lock().unwrap().push(json!(event))).unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let calls = vec![ToolCall::new("1", name, json!({}))];
    let result = turn.iteration().await.unwrap().execute(calls).await.remove(0);
    let events = json!(*events.lock().unwrap()).to_string();
    (result, events)
}

fn with_secret(server: &Server) -> HttpToolSpec {
    let headers = vec![("Authorization".to_owned(), "Bearer {secret:KEY}".to_owned())];
    HttpToolSpec { headers, ..get(&server.url("/"), &[]) }
}

#[tokio::test]
async fn a_secret_arrives_and_is_shown_nowhere() {
    let server =
        Server::answering(ok("application/json", &json!({ "key": SECRET }).to_string())).await;
    let (result, events) = through_an_engine(with_secret(&server)).await;
    assert_eq!(server.asked()[0].header("authorization"), Some(&*format!("Bearer {SECRET}")));
    assert_eq!(&*result.value, r#"{"key":"[redacted]"}"#);
    let all = format!("{result:?} {events}");
    assert!(!all.contains(SECRET), "{all}");
}

#[tokio::test]
async fn the_cut_body_of_a_failure_leaves_no_piece_of_a_secret() {
    for padding in 480..500 {
        let body = format!("{}{SECRET}{}", "x".repeat(padding), "y".repeat(50));
        let server =
            Server::answering(answer("500 Oops", "Content-Type: text/plain\r\n", &body)).await;
        let (result, events) = through_an_engine(with_secret(&server)).await;
        assert_eq!(result.code, Some(ErrorCode::ExecutionFailed));
        let all = format!("{result:?} {events}");
        assert!(!all.contains(&SECRET[..3]), "padding {padding}: {all}");
    }
}

#[tokio::test]
async fn a_key_and_a_header_that_are_cut_leave_no_piece_of_a_secret() {
    for padding in 50..60 {
        let long = format!("{}{SECRET}{}", "x".repeat(padding), "y".repeat(50));
        let keys = ok("application/json", &json!({ long.as_str(): 1 }).to_string());
        let head = format!("Content-Type: text/plain\r\nRetry-After: {long}\r\n");
        for bytes in [keys, answer("503 Busy", &head, "")] {
            let server = Server::answering(bytes).await;
            let spec = HttpToolSpec { pointer: Some("/data".to_owned()), ..with_secret(&server) };
            let (result, events) = through_an_engine(spec).await;
            assert_eq!(result.code, Some(ErrorCode::ExecutionFailed));
            let all = format!("{result:?} {events}");
            assert!(!all.contains(&SECRET[..3]), "padding {padding}: {all}");
        }
    }
}
