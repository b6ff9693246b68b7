//! Sessions over HTTP with a stream of messages, and the headers of servers without sessions.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    http::{HeaderMap, Method, StatusCode},
    response::Response,
    routing::any,
};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::{sync::mpsc, time::sleep};
use toolcrib_core::CancellationToken;
use toolcrib_mcp::{McpClient, mcp_client, server::Http};

use super::{
    call, call_with,
    http_faults::{self, json_answer, of_type, status},
};
use crate::client::support::{names, tool_of, withheld_by_provider};

/// The requests that a server has seen: the method of HTTP or of the protocol, and the headers.
type Seen = Arc<Mutex<Vec<(String, HeaderMap)>>>;

fn count(seen: &Seen, method: &str) -> usize {
    seen.lock().unwrap().iter().filter(|(seen, _)| seen == method).count()
}

/// A client of a server that responds so.
async fn served(
    respond: impl Fn(&Method, &Value) -> Response + Clone + Send + Sync + 'static,
) -> (McpClient, Seen) {
    let seen = Seen::default();
    let noted = Arc::clone(&seen);
    let handle = move |method: Method, headers: HeaderMap, body: Bytes| {
        let message: Value = serde_json::from_slice(&body).unwrap_or_default();
        let name = message["method"].as_str().unwrap_or(method.as_str()).to_owned();
        noted.lock().unwrap().push((name, headers));
        let response = respond(&method, &message);
        async move { response }
    };
    let url = http_faults::served(Router::new().route("/mcp", any(handle))).await;
    (mcp_client("web", Http::new(url)).build().unwrap(), seen)
}

/// What a server with sessions responds to all but calls and streams.
fn in_session(message: &Value) -> Response {
    let tool = json!({"name": "work", "inputSchema": {"type": "object"}});
    match message["method"].as_str() {
        Some("initialize") => {
            let result = json!({
                "protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": true}},
                "serverInfo": {"name": "streams", "version": "1"},
            });
            let mut response = json_answer(message, &result);
            response.headers_mut().insert("mcp-session-id", "session-1".parse().unwrap());
            response
        }
        Some("tools/list") => json_answer(message, &json!({"tools": [tool]})),
        Some("tools/call") => json_answer(message, &json!({"content": []})),
        Some("server/discover") => status(StatusCode::BAD_REQUEST, ""),
        _ => status(StatusCode::ACCEPTED, ""),
    }
}

/// A stream of these texts, as they come.
fn streamed(texts: mpsc::UnboundedReceiver<String>) -> Response {
    let texts = stream::unfold(texts, |mut texts| async {
        let text = texts.recv().await?;
        Some((Ok::<_, Infallible>(text), texts))
    });
    of_type("text/event-stream", Body::from_stream(texts))
}

#[tokio::test]
async fn a_stream_of_a_session_that_is_opened_again_counts_as_a_change() {
    // The stream ends when its sender is dropped.
    let opened = Arc::new(Mutex::new(Vec::new()));
    let senders = Arc::clone(&opened);
    let (client, seen) = served(move |method, message| {
        if *method != Method::GET {
            return in_session(message);
        }
        let (sender, texts) = mpsc::unbounded_channel();
        senders.lock().unwrap().push(sender);
        streamed(texts)
    })
    .await;
    client.tools().await.unwrap();
    while opened.lock().unwrap().is_empty() {
        sleep(Duration::from_millis(5)).await;
    }
    client.tools().await.unwrap();
    assert_eq!((count(&seen, "tools/list"), count(&seen, "GET")), (1, 1));
    opened.lock().unwrap().clear();
    while count(&seen, "tools/list") == 1 {
        client.tools().await.unwrap();
        sleep(Duration::from_millis(20)).await;
    }
    assert!(count(&seen, "GET") > 1);
    assert_eq!(client.status().epoch, 1);
    client.close().await;
}

#[tokio::test]
async fn an_answer_may_come_on_the_stream_of_the_session() {
    let opened = Arc::new(Mutex::new(None));
    let (senders, stream) = (Arc::clone(&opened), Arc::clone(&opened));
    let (client, _) = served(move |method, message| {
        if *method == Method::GET {
            let (sender, texts) = mpsc::unbounded_channel();
            *senders.lock().unwrap() = Some(sender);
            return streamed(texts);
        }
        if message["method"] != "tools/call" {
            return in_session(message);
        }
        let result = json!({"content": [{"type": "text", "text": "elsewhere"}]});
        let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
        let sent = stream.lock().unwrap().as_ref().unwrap().send(format!("data: {answer}\n\n"));
        sent.unwrap();
        status(StatusCode::ACCEPTED, "")
    })
    .await;
    let work = tool_of(&client, "work").await;
    while opened.lock().unwrap().is_none() {
        sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(call(&work).await.unwrap().value, "elsewhere");
    client.close().await;
}

#[tokio::test]
async fn a_server_without_a_stream_keeps_its_session() {
    for refusal in [StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED] {
        let (client, seen) = served(move |method, message| match *method {
            Method::GET => status(refusal, ""),
            _ => in_session(message),
        })
        .await;
        let work = tool_of(&client, "work").await;
        while count(&seen, "GET") == 0 {
            sleep(Duration::from_millis(5)).await;
        }
        call(&work).await.unwrap();
        client.close().await;
        assert_eq!((client.status().epoch, count(&seen, "GET")), (1, 1), "{refusal}");
        assert_eq!(count(&seen, "DELETE"), 1);
    }
}

/// What a server without sessions offers.
fn discovered(message: &Value) -> Response {
    let result = json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private",
    });
    json_answer(message, &result)
}

/// They were known only after the list of the next connection.
#[tokio::test]
async fn marked_arguments_are_in_headers_after_a_lost_connection_too() {
    // A list that is requested again is not answered.
    let hanging = Arc::new(Mutex::new(Vec::new()));
    let (lists, calls) = (Arc::clone(&hanging), Arc::new(Mutex::new(0)));
    let (client, seen) = served(move |_, message| match message["method"].as_str() {
        Some("server/discover") => discovered(message),
        Some("tools/list") => {
            let (sender, texts) = mpsc::unbounded_channel();
            let mut lists = lists.lock().unwrap();
            lists.push(sender);
            if lists.len() > 1 {
                return streamed(texts);
            }
            let region = json!({"type": "string", "x-mcp-header": "Region"});
            let schema = json!({"type": "object", "properties": {"region": region}});
            json_answer(message, &json!({"tools": [{"name": "work", "inputSchema": schema}]}))
        }
        _ => {
            let mut calls = calls.lock().unwrap();
            *calls += 1;
            // So much that is no message ends the connection.
            match *calls {
                1 => of_type("text/event-stream", "data: junk\n\n".repeat(100)),
                _ => json_answer(message, &json!({"content": []})),
            }
        }
    })
    .await;
    let work = tool_of(&client, "work").await;
    let call = || call_with(&work, json!({"region": "north"}), CancellationToken::new());
    call().await.unwrap_err();
    call().await.unwrap();
    assert_eq!(client.status().epoch, 2);
    client.close().await;
    let seen = seen.lock().unwrap();
    let calls: Vec<_> = seen.iter().filter(|(method, _)| method == "tools/call").collect();
    assert_eq!(calls.len(), 2);
    for (_, headers) in calls {
        assert_eq!(headers["mcp-param-region"], "north");
    }
}

#[tokio::test]
async fn requests_without_a_session_say_in_headers_what_they_are() {
    let (client, seen) = served(|_, message| match message["method"].as_str() {
        Some("server/discover") => discovered(message),
        Some("tools/list") => {
            let tool = |name: &str, header: &str| {
                let region = json!({"type": "string", "x-mcp-header": header});
                let schema = json!({"type": "object", "properties": {"region": region}});
                json!({"name": name, "inputSchema": schema})
            };
            json_answer(message, &json!({"tools": [tool("good", "Region"), tool("odd", "a b")]}))
        }
        _ => json_answer(message, &json!({"content": []})),
    })
    .await;
    let catalog = client.catalog().await.unwrap();
    assert_eq!(names(catalog.offered()), ["mcp__web__good"]);
    assert_eq!(
        withheld_by_provider(&catalog),
        ["mcp__web__odd: `x-mcp-header` of `region` is not the name of a header"]
    );
    call(&tool_of(&client, "good").await).await.unwrap();
    client.close().await;
    let seen = seen.lock().unwrap();
    let methods: Vec<_> = seen.iter().map(|(method, _)| method.as_str()).collect();
    assert_eq!(methods, ["server/discover", "tools/list", "tools/call"]);
    for (method, headers) in seen.iter() {
        assert_eq!(headers["mcp-method"], *method);
        assert_eq!(headers["mcp-protocol-version"], "2026-07-28");
    }
    assert_eq!(seen[2].1["mcp-name"], "good");
}
