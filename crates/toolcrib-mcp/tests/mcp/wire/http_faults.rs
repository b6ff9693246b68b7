//! Servers over HTTP that misbehave.

use std::{
    io::Write as _,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, Method, StatusCode, header},
    response::Response,
    routing::any,
};
use flate2::{Compression, write::GzEncoder};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use toolcrib_core::{ErrorCode, Tool};
use toolcrib_mcp::{
    McpClient, McpError, mcp_client,
    server::{Http, InvalidServerError},
};

use super::{Failed, call, calling, of};

/// How the reason of a call begins whose answer is useless, and of one without an answer.
const MALFORMED: &str = "the answer cannot be used: ";
const LOST: &str = "the connection ended before an answer came: ";
const FAILED: &str = "the server failed: ";

type Script = Arc<dyn Fn(&Value) -> Response + Send + Sync>;

#[derive(Clone)]
struct Scripted {
    /// How a call is answered.
    script: Script,
    seen: Arc<Mutex<Vec<(Method, HeaderMap, Value)>>>,
}

impl Scripted {
    fn calls(&self) -> usize {
        self.methods().iter().filter(|method| *method == "tools/call").count()
    }

    fn methods(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        seen.iter()
            .map(|(method, _, message)| match message["method"].as_str() {
                Some(name) => name.to_owned(),
                None => method.to_string(),
            })
            .collect()
    }
}

async fn handle(
    State(server): State<Scripted>,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    server.seen.lock().unwrap().push((method.clone(), headers.clone(), message.clone()));
    if method == Method::GET {
        // A broken stream is resumed by its last event.
        return match headers.get("last-event-id") {
            Some(_) => (server.script)(&Value::Null),
            None => status(StatusCode::METHOD_NOT_ALLOWED, ""),
        };
    }
    match message["method"].as_str() {
        Some("initialize") => begun(&message, "session-1"),
        // As servers do that know sessions only.
        Some("server/discover") => status(StatusCode::BAD_REQUEST, "Missing session ID"),
        Some("tools/list") => {
            let tool = json!({"name": "work", "inputSchema": {"type": "object"}});
            json_answer(&message, &json!({"tools": [tool]}))
        }
        Some("tools/call" | "ping") => (server.script)(&message),
        _ => status(StatusCode::ACCEPTED, ""),
    }
}

pub(super) fn status(status: StatusCode, text: &str) -> Response {
    Response::builder().status(status).body(Body::from(text.to_owned())).unwrap()
}

pub(super) fn of_type(media_type: &str, body: impl Into<Body>) -> Response {
    Response::builder().header(header::CONTENT_TYPE, media_type).body(body.into()).unwrap()
}

pub(super) fn json_answer(request: &Value, result: &Value) -> Response {
    let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
    of_type("application/json; charset=utf-8", answer.to_string())
}

/// The answer to `initialize` of a server with tools, which begins a session.
pub(super) fn begun(request: &Value, session: &str) -> Response {
    let result = json!({
        "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
        "serverInfo": {"name": "web", "version": "1"},
    });
    let mut response = json_answer(request, &result);
    response.headers_mut().insert("mcp-session-id", session.parse().unwrap());
    response
}

/// Serves an app as long as the test's runtime; returns the URL of its endpoint.
pub(super) async fn served(app: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    url
}

/// A server, and the client of it.
async fn scripted(
    script: impl Fn(&Value) -> Response + Send + Sync + 'static,
) -> (McpClient, Scripted) {
    let server = Scripted { script: Arc::new(script), seen: Arc::default() };
    let url = served(Router::new().route("/mcp", any(handle)).with_state(server.clone())).await;
    let http = Http::new(format!("{url}?key=hidden")).header("Authorization", "Bearer t");
    (mcp_client("web", http).build().unwrap(), server)
}

/// The server's only tool.
async fn work(client: &McpClient) -> Tool {
    client.tools().await.unwrap().remove(0)
}

/// How a call of such a server fails: its outcome is not known.
async fn error_of(script: impl Fn(&Value) -> Response + Send + Sync + 'static) -> String {
    let (client, _) = scripted(script).await;
    let failed = call(&work(&client).await).await.unwrap_err();
    assert_eq!(failed.code, ErrorCode::OutcomeUnknown, "{failed:?}");
    failed.reason
}

#[tokio::test]
async fn headers_go_with_every_request_and_the_session_is_ended() {
    let (client, server) = scripted(|request| json_answer(request, &json!({"content": []}))).await;
    assert!(!client.status().target.contains("hidden"), "{client:?}");
    call(&work(&client).await).await.unwrap();
    of(&client, "other").tools().await.unwrap();
    client.close().await;
    let mut methods = server.methods();
    methods.retain(|method| method != "GET");
    assert_eq!(
        methods,
        [
            "server/discover",
            "initialize",
            "notifications/initialized",
            "tools/list",
            "tools/call",
            // The kind of handshake is known by now.
            "initialize",
            "notifications/initialized",
            "tools/list",
            "DELETE",
            "DELETE",
        ]
    );
    let seen = server.seen.lock().unwrap();
    for (method, headers, message) in seen.iter() {
        assert_eq!(headers["authorization"], "Bearer t", "{method} {message}");
        let in_session =
            !matches!(message["method"].as_str(), Some("server/discover" | "initialize"));
        assert_eq!(headers.contains_key("mcp-session-id"), in_session, "{method} {message}");
    }
}

#[tokio::test]
async fn a_session_that_was_silent_is_probed_so_that_no_call_meets_an_expired_one() {
    let (client, tool, server, expired) = in_session().await;
    let later = async |seconds| {
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(seconds)).await;
        tokio::time::resume();
    };
    later(60).await;
    call(&tool).await.unwrap();
    call(&tool).await.unwrap();
    let methods = server.methods();
    assert!(methods.ends_with(&["ping", "tools/call", "tools/call"].map(str::to_owned)));
    later(60).await;
    expired.store(true, Ordering::SeqCst);
    // It was not sent within that session, so it is within the next.
    call(&tool).await.unwrap();
    assert_eq!(client.status().epoch, 2);
    client.close().await;
    assert_eq!(server.calls(), 4);
}

/// A client that has made a call in a session, and how to have the server forget the session.
async fn in_session() -> (McpClient, Tool, Scripted, Arc<AtomicBool>) {
    let expired = Arc::new(AtomicBool::new(false));
    let is_expired = Arc::clone(&expired);
    let (client, server) =
        scripted(move |request| match is_expired.swap(false, Ordering::SeqCst) {
            true => status(StatusCode::NOT_FOUND, "no such session"),
            false => json_answer(request, &json!({"content": []})),
        })
        .await;
    let tool = work(&client).await;
    call(&tool).await.unwrap();
    (client, tool, server, expired)
}

#[tokio::test]
async fn a_refusal_with_words_of_the_protocol_is_one_whatever_its_id() {
    let (client, _) = scripted(|_| {
        let error = json!({"code": -32602, "message": "bad arguments"});
        let body = json!({"jsonrpc": "2.0", "id": "server-error", "error": error}).to_string();
        let mut response = of_type("application/json", body);
        *response.status_mut() = StatusCode::BAD_REQUEST;
        response
    })
    .await;
    let failed = call(&work(&client).await).await.unwrap_err();
    assert_eq!((failed.code, &*failed.message), (ErrorCode::InputInvalid, "bad arguments"));
}

#[tokio::test]
async fn an_answer_with_another_calls_id_belongs_to_no_call() {
    let first = Arc::new(Mutex::new(None));
    let release = Arc::new(tokio::sync::Notify::new());
    let (id, released) = (Arc::clone(&first), Arc::clone(&release));
    let answer = |id: &Value, text: &str| {
        let result = json!({"content": [{"type": "text", "text": text}]});
        json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string()
    };
    let (client, _) = scripted(move |request| {
        let mut first = id.lock().unwrap();
        if let Some(first) = &*first {
            return of_type("application/json", answer(first, "another's"));
        }
        *first = Some(request["id"].clone());
        let (body, released) = (answer(&request["id"], "its own"), Arc::clone(&released));
        let body = futures_util::stream::once(async move {
            released.notified().await;
            Ok::<_, std::io::Error>(body)
        });
        of_type("application/json", Body::from_stream(body))
    })
    .await;
    let tool = work(&client).await;
    let waiting = calling(&tool);
    while first.lock().unwrap().is_none() {
        tokio::task::yield_now().await;
    }
    let swapped = call(&tool).await.unwrap_err();
    assert!(swapped.reason.starts_with(MALFORMED), "{swapped:?}");
    release.notify_one();
    assert_eq!(waiting.await.unwrap().unwrap().value, "its own");
}

#[tokio::test]
async fn an_answer_without_a_type_is_read_as_a_message() {
    let (client, _) = scripted(|request| {
        let mut answer = json_answer(request, &json!({"content": [{"type": "text", "text": "a"}]}));
        answer.headers_mut().remove(header::CONTENT_TYPE);
        answer
    })
    .await;
    assert_eq!(call(&work(&client).await).await.unwrap().value, "a");
}

/// The answer, compressed.
fn gzipped(media_type: &str, parts: &[&[u8]]) -> Response {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    parts.iter().for_each(|part| encoder.write_all(part).unwrap());
    let mut response = of_type(media_type, encoder.finish().unwrap());
    response.headers_mut().insert(header::CONTENT_ENCODING, "gzip".parse().unwrap());
    response
}

#[tokio::test]
async fn a_compressed_answer_is_read_with_the_limit_of_its_decoded_size() {
    type Framed = (&'static str, &'static [u8], &'static [u8], &'static str);
    let framed: [Framed; 2] = [
        ("application/json", b"", b"", "it sent a response of more than 16777216 bytes"),
        ("text/event-stream", b"data: ", b"\n\n", "it sent an event of more than 16777216 bytes"),
    ];
    for (media_type, start, end, says) in framed {
        let answered = move |request: &Value, spaces: usize| {
            let result = json!({"content": [{"type": "text", "text": "unpacked"}]});
            let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
            let padding = vec![b' '; spaces];
            gzipped(media_type, &[start, &padding, answer.to_string().as_bytes(), end])
        };
        let (client, server) = scripted(move |request| answered(request, 10_000)).await;
        assert_eq!(call(&work(&client).await).await.unwrap().value, "unpacked");
        assert_eq!(server.calls(), 1);
        let reason = error_of(move |request| answered(request, 17 * 1024 * 1024)).await;
        assert!(reason.contains(says), "{reason}");
    }
}

#[tokio::test]
async fn a_useless_answer_is_told_apart_from_a_lost_one() {
    type Case = (fn(&Value) -> Response, &'static str, &'static str);
    let cases: [Case; 7] = [
        (
            |_| {
                // An error of a proxy looks like one of the protocol.
                let error = json!({"error": {"code": 502, "message": "proxy"}});
                let mut response = of_type("application/json", error.to_string());
                *response.status_mut() = StatusCode::BAD_GATEWAY;
                response
            },
            FAILED,
            "HTTP 502: ",
        ),
        (|_| status(StatusCode::SERVICE_UNAVAILABLE, "upstream"), FAILED, "HTTP 503: upstream"),
        (|_| of_type("text/html", "<html>"), MALFORMED, "its answer is of type text/html"),
        (
            |_| of_type("application/json", "{}"),
            MALFORMED,
            "its response belongs to no request: {}",
        ),
        (
            |_| of_type("application/json", r#"{"jsonrpc":"2.0","id":999,"result":{}}"#),
            MALFORMED,
            "its response belongs to no request",
        ),
        (|_| of_type("text/event-stream", ": nothing\n\n"), LOST, "the answer broke off"),
        (
            |_| {
                let moved = Response::builder().status(307);
                let moved = moved.header("location", "http://127.0.0.1:1/mcp?key=secret");
                moved.body(Body::empty()).unwrap()
            },
            MALFORMED,
            "redirects (HTTP 307) to `http://127.0.0.1:1/mcp`, which is not followed: its scheme",
        ),
    ];
    for (script, begin, says) in cases {
        let reason = error_of(script).await;
        assert!(reason.starts_with(begin) && reason.contains(says), "{says}: {reason}");
    }
}

#[tokio::test]
async fn a_denial_or_a_limit_of_the_rate_is_no_unknown_outcome_and_says_when_to_try_again() {
    type Case = (fn(&Value) -> Response, &'static str, &'static str);
    let cases: [Case; 3] = [
        (
            |_| status(StatusCode::UNAUTHORIZED, "who are you"),
            "denied access to this call",
            "HTTP 401: who are you",
        ),
        (
            |_| {
                let mut limited = status(StatusCode::TOO_MANY_REQUESTS, "slowly");
                limited.headers_mut().insert(header::RETRY_AFTER, "7".parse().unwrap());
                limited
            },
            "limits the rate of requests; try again in 7 seconds",
            "HTTP 429: slowly (it permits the next request in 7 s)",
        ),
        (
            |_| status(StatusCode::TOO_MANY_REQUESTS, "slowly"),
            "limits the rate of requests; try again later",
            "HTTP 429: slowly",
        ),
    ];
    for (script, message, reason) in cases {
        let (client, _) = scripted(script).await;
        let failed = call(&work(&client).await).await.unwrap_err();
        assert_eq!(failed.code, ErrorCode::ExecutionFailed, "{failed:?}");
        assert!(failed.message.ends_with(message) && failed.reason.contains(reason), "{failed:?}");
    }
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_resumed_after_its_last_event() {
    let asked = Arc::new(Mutex::new(Value::Null));
    let (client, server) = scripted(move |request| {
        let mut asked = asked.lock().unwrap();
        if !request.is_null() {
            *asked = request["id"].clone();
            return of_type("text/event-stream", "id: seven\nretry: 500\ndata:\n\n");
        }
        let result = json!({"content": [{"type": "text", "text": "after all"}]});
        let answer = json!({"jsonrpc": "2.0", "id": *asked, "result": result});
        of_type("text/event-stream", format!("id: eight\ndata: {answer}\n\n"))
    })
    .await;
    let answer = call(&work(&client).await).await.unwrap();
    assert_eq!(answer.value, "after all");
    let seen = server.seen.lock().unwrap();
    let resumed: Vec<_> =
        seen.iter().filter_map(|(_, headers, _)| headers.get("last-event-id")).collect();
    assert_eq!(resumed, ["seven"]);
    drop(seen);
    assert_eq!(server.calls(), 1, "it was sent again");
}

/// Calls a server that breaks off its response, and answers requests to resume with these in turn,
/// the last of them repeatedly. Returns the call's result, the number of resumes, and the number of
/// connections until the next list.
async fn resumed_with(rest: Vec<fn(&Value) -> Response>) -> (Result<String, Failed>, usize, u64) {
    let asked = Mutex::new((Value::Null, 0));
    let (client, server) = scripted(move |request| {
        let mut asked = asked.lock().unwrap();
        if !request.is_null() {
            asked.0 = request.clone();
            return of_type("text/event-stream", "id: seven\nretry: 500\ndata:\n\n");
        }
        let answer = rest[asked.1.min(rest.len() - 1)];
        asked.1 += 1;
        answer(&asked.0)
    })
    .await;
    let came_to = call(&work(&client).await).await;
    let came_to = came_to.map(|answer| answer.value.as_str().to_owned());
    client.refresh().await.unwrap();
    let seen = server.seen.lock().unwrap();
    let resumes =
        seen.iter().filter(|(_, headers, _)| headers.contains_key("last-event-id")).count();
    (came_to, resumes, client.status().epoch)
}

#[tokio::test]
async fn a_server_that_refuses_to_resume_is_not_asked_again() {
    type Answered = fn(&Value) -> Response;
    let cases: [(Answered, &str); 5] = [
        (|_| status(StatusCode::UNAUTHORIZED, "who?"), "HTTP 401"),
        (|_| status(StatusCode::FORBIDDEN, "not you"), "HTTP 403"),
        (|_| status(StatusCode::METHOD_NOT_ALLOWED, ""), "HTTP 405"),
        (|_| status(StatusCode::BAD_REQUEST, "no such event"), "no such event"),
        (|_| of_type("text/html", "<p>hello</p>"), "text/html"),
    ];
    for (answer, says) in cases {
        let (came_to, resumes, connections) = resumed_with(vec![answer]).await;
        // It may have been carried out.
        let failed = came_to.unwrap_err();
        assert_eq!(failed.code, ErrorCode::OutcomeUnknown);
        assert!(failed.reason.starts_with(LOST), "{failed:?}");
        assert!(failed.reason.contains("broke off") && failed.reason.contains(says), "{failed:?}");
        assert_eq!((resumes, connections), (1, 1), "{says}");
    }
    let (came_to, resumes, connections) =
        resumed_with(vec![|_| status(StatusCode::NOT_FOUND, "no such session")]).await;
    assert!(came_to.unwrap_err().reason.starts_with(LOST));
    // Its session is over.
    assert_eq!((resumes, connections), (1, 2));
}

#[tokio::test]
async fn a_server_that_cannot_resume_just_now_is_asked_again() {
    let (came_to, resumes, connections) = resumed_with(vec![
        |_| status(StatusCode::SERVICE_UNAVAILABLE, ""),
        |_| status(StatusCode::TOO_MANY_REQUESTS, ""),
        |_| status(StatusCode::CONFLICT, ""),
        |request| {
            let result = json!({"content": [{"type": "text", "text": "after all"}]});
            let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
            of_type("text/event-stream", format!("id: eight\ndata: {answer}\n\n"))
        },
    ])
    .await;
    assert_eq!(came_to.unwrap(), "after all");
    assert_eq!((resumes, connections), (4, 1));
}

#[tokio::test]
async fn a_request_amid_an_answer_is_answered() {
    let heard = Arc::new(tokio::sync::Notify::new());
    let answered = Arc::clone(&heard);
    let (client, server) = scripted(move |request| {
        use futures_util::{StreamExt as _, stream};
        let event = |message: Value| Ok::<_, std::io::Error>(format!("data: {message}\n\n"));
        let ping = event(json!({"jsonrpc": "2.0", "id": "there?", "method": "ping"}));
        let answer =
            event(json!({"jsonrpc": "2.0", "id": request["id"], "result": {"content": []}}));
        let answered = Arc::clone(&answered);
        let rest = stream::once(async move {
            answered.notified().await;
            answer
        });
        of_type("text/event-stream", Body::from_stream(stream::iter([ping]).chain(rest)))
    })
    .await;
    let calling = calling(&work(&client).await);
    let expected = json!({"jsonrpc": "2.0", "id": "there?", "result": {}});
    while !server.seen.lock().unwrap().iter().any(|(_, _, message)| *message == expected) {
        tokio::task::yield_now().await;
    }
    heard.notify_one();
    calling.await.unwrap().unwrap();
}

#[tokio::test]
async fn an_answer_without_end_is_not_kept() {
    fn endless(begin: &'static str) -> Body {
        use futures_util::{StreamExt as _, stream};
        let begin = stream::once(async move { Ok::<_, std::io::Error>(Bytes::from(begin)) });
        let piece = Bytes::from(vec![b'x'; 64 * 1024]);
        Body::from_stream(begin.chain(stream::repeat_with(move || Ok(piece.clone()))))
    }
    for (media_type, begin) in [("text/event-stream", "data: "), ("application/json", "\"")] {
        let (client, _) = scripted(move |_| of_type(media_type, endless(begin))).await;
        let failed = call(&work(&client).await).await.unwrap_err();
        assert_eq!(failed.code, ErrorCode::OutcomeUnknown, "{failed:?}");
        let says = "more than 16777216 bytes, the limit of a message; request less at a time";
        assert!(failed.reason.starts_with(MALFORMED) && failed.reason.contains(says), "{failed:?}");
        let advice = "an answer that is too large; the call may have had its effect, so check before \
                      trying again, and request less at a time";
        assert!(failed.message.ends_with(advice), "{failed:?}");
    }
}

#[tokio::test]
async fn a_url_without_an_endpoint_is_named_by_its_path() {
    let app = Router::new().fallback(async || status(StatusCode::NOT_FOUND, "No page."));
    let url = served(app).await.replace("/mcp", "/wrong/mcp?key=hidden");
    let error = mcp_client("web", Http::new(url)).build().unwrap().tools().await.unwrap_err();
    let says = "there is no MCP endpoint at `/wrong/mcp` (HTTP 404); correct the path of its URL, or \
                ask who runs the server; it responded: No page.";
    assert!(error.to_string().ends_with(says), "{error}");
    // After the handshake, the path is right.
    let (client, _) = scripted(|_| status(StatusCode::NOT_FOUND, "no such thing")).await;
    let failed = call(&work(&client).await).await.unwrap_err();
    assert!(!failed.reason.contains("no MCP endpoint"), "{failed:?}");
}

#[tokio::test]
async fn a_server_that_is_not_there_was_sent_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    drop(listener);
    let error = mcp_client("web", Http::new(url)).build().unwrap().tools().await.unwrap_err();
    assert!(error.to_string().contains("no connection to `127.0.0.1`"), "{error}");
}

#[tokio::test]
async fn a_server_that_goes_away_between_calls_ends_the_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let server = Scripted {
        script: Arc::new(|request| {
            let mut answer = json_answer(request, &json!({"content": []}));
            answer.headers_mut().insert(header::CONNECTION, "close".parse().unwrap());
            answer
        }),
        seen: Arc::default(),
    };
    let app = axum::Router::new().route("/mcp", any(handle)).with_state(server);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(async move {
        tokio::select! {
            _ = axum::serve(listener, app).into_future() => {}
            _ = stopped => {}
        }
    });
    let client = mcp_client("web", Http::new(url)).build().unwrap();
    let tool = work(&client).await;
    call(&tool).await.unwrap();
    stop.send(()).unwrap();
    serving.await.unwrap();
    let first = call(&tool).await.unwrap_err().code;
    assert!(matches!(first, ErrorCode::NotAvailable | ErrorCode::OutcomeUnknown), "{first:?}");
    assert_eq!(call(&tool).await.unwrap_err().code, ErrorCode::NotAvailable);
    assert!(client.status().last_error.unwrap().contains("no connection to"));
}

#[test]
fn an_invalid_declaration_is_refused_before_it_is_tried() {
    let refused = |server: Http| match mcp_client("web", server).build() {
        Err(McpError::Server(refused)) => refused,
        other => panic!("{other:?}"),
    };
    let is_taken = |server: Http| mcp_client("web", server).build().is_ok();
    let local = "http://localhost:1/mcp";
    let secret = ("Authorization", "Bearer t");
    assert!(is_taken(Http::new(local).header(secret.0, secret.1)));
    assert!(is_taken(Http::new("https://docs.example/mcp").header(secret.0, secret.1)));
    assert!(is_taken(Http::new("http://docs.example/mcp")));
    assert_eq!(
        refused(Http::new("http://docs.example/mcp").header(secret.0, secret.1)),
        InvalidServerError::HeadersInTheClear {
            server: "web".to_owned(),
            host: "docs.example".to_owned()
        }
    );
    for header in ["Host", "Accept", "MCP-Session-Id", "Mcp-Param-Region", "a b"] {
        let error = refused(Http::new(local).header(header, "x"));
        assert!(matches!(error, InvalidServerError::Header { .. }), "{error:?}");
    }
    let error = refused(Http::new(local).header("X-Key", "a\nb"));
    assert!(error.to_string().contains("has a value that cannot be sent"), "{error}");
    for url in ["ftp://docs.example", "https://user@docs.example/", "docs.example/mcp"] {
        let error = refused(Http::new(url));
        assert!(matches!(error, InvalidServerError::Url { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn an_address_of_another_network_is_not_dialed() {
    let client = mcp_client("web", Http::new("http://10.1.2.3/mcp")).build().unwrap();
    let error = client.tools().await.unwrap_err().to_string();
    assert!(error.contains("10.1.2.3"), "{error}");
}
