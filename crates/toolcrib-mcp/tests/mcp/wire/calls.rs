//! One call, and its possible ends.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll},
    time::Duration,
};

use serde_json::{Map, Value, json};
use tokio::{
    io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex},
    sync::mpsc,
    task::JoinHandle,
    time::sleep,
};
use toolcrib_core::{
    BoxFuture, CancellationToken, ClientAbilities, ClientHandle, ClientPort, ClientRefusal,
    ErrorCode, Tool, ToolContextParts,
};
use toolcrib_mcp::pipe_mcp_client;

use super::{
    Outcome, call, call_seen, call_with, calling,
    raw::{Raw, connected, modern},
};

const BUFFER: usize = 64 * 1024;

/// A call on its way, and its request as the server read it.
async fn under_way(tool: &Tool, server: &mut Raw) -> (JoinHandle<Outcome>, Value) {
    let calling = calling(tool);
    (calling, server.expect("tools/call").await)
}

/// A call with these arguments, and its cancellation.
fn cancellable(tool: &Tool, args: Value) -> (JoinHandle<Outcome>, CancellationToken) {
    let (tool, cancellation) = (tool.clone(), CancellationToken::new());
    let token = cancellation.clone();
    (tokio::spawn(async move { call_with(&tool, args, token).await }), cancellation)
}

#[tokio::test]
async fn a_call_sends_its_arguments_and_returns_the_response() {
    let (_client, tool, mut server, _connections) = connected(BUFFER).await;
    let (calling, _) = cancellable(&tool, json!({"a": 1}));
    let request = server.expect("tools/call").await;
    assert_eq!(request["params"]["name"], "work");
    assert_eq!(request["params"]["arguments"], json!({"a": 1}));
    let content = json!([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]);
    server.answer(&request, json!({"content": content, "isError": true})).await;
    let failed = calling.await.unwrap().unwrap_err();
    assert_eq!((failed.code, &*failed.message), (ErrorCode::ExecutionFailed, "one\ntwo"));
}

#[tokio::test]
async fn a_server_that_dies_in_a_call_loses_it_and_later_calls_are_not_sent() {
    let (client, tool, mut server, connections) = connected(BUFFER).await;
    let (calling, _) = under_way(&tool, &mut server).await;
    // It accepts no connection any more.
    drop(connections);
    drop(server);
    let lost = calling.await.unwrap().unwrap_err();
    assert_eq!(lost.code, ErrorCode::OutcomeUnknown);
    let says = "the connection ended before an answer came: it closed the connection";
    assert_eq!(lost.reason, says);
    let not_sent = call(&tool).await.unwrap_err();
    assert_eq!(not_sent.code, ErrorCode::NotAvailable, "{not_sent:?}");
    let error = client.status().last_error.unwrap();
    assert!(error.starts_with("it accepts no connection: "), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_reads_nothing_is_left_and_a_call_that_waited_is_sent_to_the_next() {
    let (client, tool, server, mut connections) = connected(512).await;
    let (half, _) = cancellable(&tool, json!({"text": "x".repeat(4096)}));
    sleep(Duration::from_secs(1)).await;
    let waiting = calling(&tool);
    let next = tokio::spawn(async move {
        let mut next = connections.recv().await.unwrap();
        next.initialize().await;
        // It is listed again too.
        loop {
            let request = next.read().await.unwrap();
            if request["method"] == "tools/call" {
                next.answer(&request, json!({"content": []})).await;
                return (next, request);
            }
            next.answer(&request, json!({"tools": []})).await;
        }
    });
    let half = half.await.unwrap().unwrap_err();
    assert_eq!(half.code, ErrorCode::OutcomeUnknown);
    assert!(half.reason.ends_with("it has read nothing for 30s"), "{half:?}");
    waiting.await.unwrap().unwrap();
    let (_next, call) = next.await.unwrap();
    assert_eq!(call["params"]["arguments"], json!({}));
    assert_eq!(client.status().epoch, 2);
    drop(server);
}

#[tokio::test]
async fn a_call_that_is_cancelled_or_dropped_is_cancelled_at_the_server_and_forgotten() {
    let (_client, tool, mut server, _connections) = connected(4096).await;
    let (cancelled, cancellation) = cancellable(&tool, json!({}));
    let first = server.expect("tools/call").await;
    cancellation.cancel();
    let failed = cancelled.await.unwrap().unwrap_err();
    // The server may have done it.
    assert_eq!((failed.code, &*failed.reason), (ErrorCode::OutcomeUnknown, "it was cancelled"));
    let said = server.expect("notifications/cancelled").await;
    assert_eq!(said["params"]["requestId"], first["id"]);

    let (dropped, second) = under_way(&tool, &mut server).await;
    dropped.abort();
    let said = server.expect("notifications/cancelled").await;
    assert_eq!(said["params"]["requestId"], second["id"]);

    // Their responses come too late, without harm.
    for late in [&first, &second] {
        server.answer(late, json!({"content": [{"type": "text", "text": "late"}]})).await;
    }
    let (third, request) = under_way(&tool, &mut server).await;
    server.answer(&request, json!({"content": [{"type": "text", "text": "third"}]})).await;
    assert_eq!(third.await.unwrap().unwrap().value, "third");
}

#[tokio::test]
async fn a_call_that_is_cancelled_before_it_begins_is_not_sent() {
    let (_client, tool, mut server, _connections) = connected(BUFFER).await;
    let cancellation = CancellationToken::new();
    cancellation.cancel();
    let failed = call_with(&tool, json!({"never": 1}), cancellation).await.unwrap_err();
    assert_eq!(failed.code, ErrorCode::Cancelled);
    assert!(failed.message.ends_with("the call was not sent"), "{failed:?}");
    let (calling, request) = under_way(&tool, &mut server).await;
    assert_eq!(request["params"]["arguments"], json!({}));
    server.answer(&request, json!({"content": []})).await;
    calling.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_cancelled_while_it_waits_to_be_written_never_is() {
    let (_client, tool, mut server, _connections) = connected(512).await;
    let (half, _) = cancellable(&tool, json!({"text": "x".repeat(4096)}));
    sleep(Duration::from_secs(1)).await;
    let (waiting, cancellation) = cancellable(&tool, json!({"text": "waiting"}));
    sleep(Duration::from_secs(1)).await;
    cancellation.cancel();
    let failed = waiting.await.unwrap().unwrap_err();
    assert_eq!(failed.code, ErrorCode::Cancelled, "{failed:?}");

    let (later, _) = cancellable(&tool, json!({"text": "later"}));
    for expected in ["xxxx", "late"] {
        let request = loop {
            let message = server.read().await.unwrap();
            if message["method"] == "tools/call" {
                break message;
            }
        };
        let text = request["params"]["arguments"]["text"].as_str().unwrap();
        assert!(text.starts_with(expected), "{text}");
        server.answer(&request, json!({"content": []})).await;
    }
    half.await.unwrap().unwrap();
    later.await.unwrap().unwrap();
}

#[tokio::test]
async fn progress_comes_in_order_and_before_the_answer() {
    let (_client, tool, mut server, _connections) = connected(BUFFER).await;
    let calling = tokio::spawn(async move { call_seen(&tool).await });
    let request = server.expect("tools/call").await;
    let token = &request["params"]["_meta"]["progressToken"];
    for progress in [
        json!({"progressToken": token, "progress": 1, "total": 4, "message": "reading"}),
        json!({"progressToken": token, "progress": 3, "total": 4}),
        json!({"progressToken": 12345, "progress": 3, "message": "of another call"}),
        json!({"progressToken": token, "progress": 5}),
        json!({"progressToken": token, "progress": 9, "total": 4, "message": "done"}),
    ] {
        let method = "notifications/progress";
        server.write(&json!({"jsonrpc": "2.0", "method": method, "params": progress})).await;
    }
    server.answer(&request, json!({"content": []})).await;
    let (outcome, seen) = calling.await.unwrap();
    outcome.unwrap();
    let expected = [
        ("reading".to_owned(), Some(25)),
        ("3 of 4".to_owned(), Some(75)),
        ("5".to_owned(), None),
        ("done".to_owned(), Some(100)),
    ];
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn answers_with_other_ids_belong_to_no_call_and_an_id_may_be_text() {
    let (_client, tool, mut server, _connections) = connected(BUFFER).await;
    let (calling, request) = under_way(&tool, &mut server).await;
    let padded = json!(format!("0{}", request["id"]));
    for id in [json!(987_654), json!("no number"), padded, json!(null), json!({}), json!(1.5)] {
        let foreign = json!({"content": [{"type": "text", "text": "foreign"}]});
        server.write(&json!({"jsonrpc": "2.0", "id": id, "result": foreign})).await;
    }
    let ours = json!({"content": [{"type": "text", "text": "ours"}]});
    let as_text = json!({"jsonrpc": "2.0", "id": request["id"].to_string(), "result": ours});
    server.write(&as_text).await;
    assert_eq!(calling.await.unwrap().unwrap().value, "ours");
}

#[tokio::test]
async fn structured_content_beside_a_null_content_is_a_result() {
    let (_client, tool, mut server, _connections) = connected(BUFFER).await;
    let (calling, request) = under_way(&tool, &mut server).await;
    server.answer(&request, json!({"content": null, "structuredContent": {"a": 1}})).await;
    assert_eq!(calling.await.unwrap().unwrap().value, r#"{"a":1}"#);
}

#[tokio::test]
async fn a_message_may_begin_with_a_byte_order_mark() {
    let (_client, tool, mut server, _connections) = connected(BUFFER).await;
    let (calling, request) = under_way(&tool, &mut server).await;
    let id = &request["id"];
    let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}}}}"#);
    server.text(&format!("\u{feff}{answer}\n")).await;
    calling.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_result_with_a_number_that_json_does_not_have_ends_its_call_and_is_named() {
    let (_client, tool, mut server, _connections) = connected(BUFFER).await;
    for number in ["NaN", "Infinity", "-Infinity"] {
        let (calling, request) = under_way(&tool, &mut server).await;
        let result = format!(
            r#"{{"content":[{{"type":"text","text":"a \" NaN"}}],"structuredContent":{{"a":{number}}}}}"#
        );
        let id = &request["id"];
        server.text(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n")).await;
        let failed = calling.await.unwrap().unwrap_err();
        let says = format!("it contains `{number}`, which JSON does not have");
        assert!(failed.reason.contains(&says), "{failed:?}");
    }
}

#[tokio::test]
async fn a_refusal_keeps_its_code_and_its_words() {
    let (_client, tool, mut server, _connections) = connected(BUFFER).await;
    let (calling, request) = under_way(&tool, &mut server).await;
    server.refuse(&request, -32602, &"no ".repeat(3_000)).await;
    let failed = calling.await.unwrap().unwrap_err();
    assert_eq!(failed.code, ErrorCode::InputInvalid);
    // All of them: the pipe takes secrets out before it cuts.
    assert_eq!(failed.message.chars().count(), 9_000);
}

#[tokio::test]
async fn an_answer_that_cannot_be_used_ends_its_call_alone() {
    let (client, tool, mut server, _connections) = connected(BUFFER).await;
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    for (answer, says) in [
        (format!(r#""result":{{"content":[],"structuredContent":{deep}}}"#), "cannot be read"),
        (r#""answer":{}"#.to_owned(), "neither a result nor an error"),
        (r#""result":{}"#.to_owned(), "no `content`"),
        (
            r#""result":{"content":[{"type":"image","mimeType":"image/png","data":"%"}]}"#
                .to_owned(),
            "not valid base64",
        ),
    ] {
        let (calling, request) = under_way(&tool, &mut server).await;
        server.text(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{},{answer}}}\n", request["id"])).await;
        let failed = calling.await.unwrap().unwrap_err();
        assert_eq!(failed.code, ErrorCode::OutcomeUnknown);
        assert!(failed.reason.starts_with("the answer cannot be used: "), "{failed:?}");
        assert!(failed.reason.contains(says), "{failed:?}");
    }
    let (calling, request) = under_way(&tool, &mut server).await;
    server.answer(&request, json!({"content": []})).await;
    calling.await.unwrap().unwrap();
    assert_eq!(client.status().epoch, 1);
}

#[tokio::test]
async fn a_server_may_ping_and_request_nothing_else() {
    let (_client, _tool, mut server, _connections) = connected(BUFFER).await;
    for (id, method) in [
        (1, "ping"),
        (2, "sampling/createMessage"),
        (3, "roots/list"),
        (4, "elicitation/create"),
        (5, "made/up"),
    ] {
        server
            .write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {
                "messages": [], "maxTokens": 1, "message": "?",
                "requestedSchema": {"type": "object", "properties": {}},
            }}))
            .await;
        let answer = server.read().await.unwrap();
        assert_eq!(answer["id"], id);
        match method {
            "ping" => assert_eq!(answer["result"], json!({})),
            "made/up" => assert_eq!(answer["error"]["code"], -32601, "{answer}"),
            _ => {
                let message = "no client or person can be asked at the moment";
                assert_eq!(answer["error"], json!({ "code": -32601, "message": message }));
            }
        }
    }
}

#[tokio::test]
async fn a_call_that_the_server_wants_repeated_is_sent_with_its_state() {
    let (_client, tool, mut server) = modern().await;
    let (calling, first) = under_way(&tool, &mut server).await;
    assert!(first["params"].get("requestState").is_none());
    server.answer(&first, json!({"resultType": "input_required", "requestState": "half"})).await;
    let second = server.expect("tools/call").await;
    assert_eq!(second["params"]["requestState"], "half");
    assert_eq!(second["params"]["name"], "work");
    let done = json!({"resultType": "complete", "content": [{"type": "text", "text": "done"}]});
    server.answer(&second, done).await;
    assert_eq!(calling.await.unwrap().unwrap().value, "done");
}

#[tokio::test]
async fn a_call_is_not_sent_again_without_end_nor_for_input_nor_after_a_loss() {
    let (_client, tool, mut server) = modern().await;
    let (calling, mut request) = under_way(&tool, &mut server).await;
    for round in 0..10 {
        let again = json!({"resultType": "input_required", "requestState": round.to_string()});
        server.answer(&request, again).await;
        if round < 9 {
            request = server.expect("tools/call").await;
        }
    }
    let failed = calling.await.unwrap().unwrap_err();
    assert_eq!(failed.code, ErrorCode::OutcomeUnknown);
    assert!(failed.reason.contains("10 times"), "{failed:?}");

    let (calling, request) = under_way(&tool, &mut server).await;
    let asks = json!({"q": {"method": "roots/list"}});
    let asked = json!({"resultType": "input_required", "requestState": "s", "inputRequests": asks});
    server.answer(&request, asked).await;
    let failed = calling.await.unwrap().unwrap_err();
    assert_eq!(failed.code, ErrorCode::OutcomeUnknown);
    assert!(failed.reason.contains("input"), "{failed:?}");

    let (calling, request) = under_way(&tool, &mut server).await;
    server.answer(&request, json!({"resultType": "input_required", "requestState": "s"})).await;
    drop(server);
    let failed = calling.await.unwrap().unwrap_err();
    assert_eq!(failed.code, ErrorCode::OutcomeUnknown);
    assert!(failed.reason.starts_with("the connection ended before an answer came"), "{failed:?}");
}

/// A pipe that breaks instead of taking a call, as often as it is told to.
struct Breaking {
    pipe: DuplexStream,
    breaks: Arc<AtomicUsize>,
}

impl AsyncWrite for Breaking {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let is_call = bytes.windows(10).any(|text| text == b"tools/call");
        let less = |breaks: usize| breaks.checked_sub(1);
        if is_call && self.breaks.fetch_update(SeqCst, SeqCst, less).is_ok() {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        Pin::new(&mut self.pipe).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.pipe).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.pipe).poll_shutdown(cx)
    }
}

impl AsyncRead for Breaking {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.pipe).poll_read(cx, into)
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_not_sent_is_sent_once_more() {
    let (breaks, calls) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (sender, mut connections) = mpsc::unbounded_channel();
    let breaking = Arc::clone(&breaks);
    let client = pipe_mcp_client("raw", move || {
        let (pipe, theirs) = duplex(BUFFER);
        sender.send(Raw::new(theirs)).map_err(io::Error::other)?;
        Ok(Breaking { pipe, breaks: Arc::clone(&breaking) })
    });
    let client = client.build().unwrap();
    let counted = Arc::clone(&calls);
    tokio::spawn(async move {
        let mut is_first = true;
        while let Some(mut server) = connections.recv().await {
            if std::mem::replace(&mut is_first, false) {
                server.greet_legacy().await;
            } else {
                server.initialize().await;
            }
            server.list().await;
            while let Some(call) = server.read().await {
                assert_eq!(call["method"], "tools/call", "{call}");
                counted.fetch_add(1, SeqCst);
                server.answer(&call, json!({"content": []})).await;
            }
        }
    });
    let tool = client.tools().await.unwrap().remove(0);
    // A connection that lasts is stable: its loss is no reason to back off.
    let stable = || sleep(Duration::from_secs(60));
    stable().await;
    breaks.store(1, SeqCst);
    call(&tool).await.unwrap();
    assert_eq!((calls.load(SeqCst), breaks.load(SeqCst)), (1, 0));

    stable().await;
    breaks.store(2, SeqCst);
    let failed = call(&tool).await.unwrap_err();
    assert_eq!(failed.code, ErrorCode::NotAvailable);
    assert!(failed.message.ends_with("it did not take the call"), "{failed:?}");
    assert_eq!((calls.load(SeqCst), breaks.load(SeqCst)), (1, 0));
}

/// A person who opens each page.
struct Visitor(mpsc::UnboundedSender<Value>);

impl ClientPort for Visitor {
    fn abilities(&self, _: &str) -> ClientAbilities {
        ClientAbilities::default()
    }

    fn key(&self) -> usize {
        0
    }

    fn shows_required_urls(&self) -> bool {
        true
    }

    fn request(
        &self,
        server: Arc<str>,
        requests: Map<String, Value>,
    ) -> BoxFuture<'static, Result<Map<String, Value>, ClientRefusal>> {
        self.0.send(json!([&*server, requests.values().collect::<Vec<_>>()])).unwrap();
        let accept = |(key, _)| (key, json!({ "action": "accept" }));
        Box::pin(async move { Ok(requests.into_iter().map(accept).collect()) })
    }
}

/// The error lost its URL: no person could do what it requires.
#[tokio::test]
async fn a_person_is_shown_the_urls_that_an_error_requires() {
    let (_client, tool, mut server, _connections) = connected(BUFFER).await;
    let (asked, mut requests) = mpsc::unbounded_channel();
    let mut parts = ToolContextParts::detached();
    parts.handles.push(Arc::new(ClientHandle(Arc::new(Visitor(asked)))));
    let calling = tokio::spawn(async move { tool.call(json!({}), parts.into()).await });
    let request = server.expect("tools/call").await;
    let url =
        json!({ "url": "https://example.test/x", "message": "Log in.", "elicitationId": "e" });
    let error = json!({ "code": -32042, "message": "go there", "data": { "elicitations": [url] } });
    server.write(&json!({ "jsonrpc": "2.0", "id": request["id"], "error": error })).await;
    let mut params = url;
    params["mode"] = "url".into();
    let asked = json!({ "method": "elicitation/create", "params": params });
    assert_eq!(requests.recv().await.unwrap()[1], json!([asked]));
    let failed = calling.await.unwrap().unwrap_err();
    assert_eq!(failed.message, "go there (the page was opened; call again once that is done)");
}
