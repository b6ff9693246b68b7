//! Servers over HTTP that misbehave.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, Method, StatusCode, header},
    response::Response,
    routing::any,
};
use futures_util::FutureExt as _;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{
    super::{Connect, Connection, RequestError, http},
    call, unheard,
};
use crate::server::{Http, InvalidServer};

type Script = Arc<dyn Fn(&Value) -> Response + Send + Sync>;

#[derive(Clone)]
struct Scripted {
    /// How a call is answered.
    script: Script,
    seen: Arc<Mutex<Vec<(Method, HeaderMap, Value)>>>,
}

impl Scripted {
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
        // A stream that broke off is asked for again by its last event.
        return match headers.get("last-event-id") {
            Some(_) => (server.script)(&Value::Null),
            None => status(StatusCode::METHOD_NOT_ALLOWED, ""),
        };
    }
    match message["method"].as_str() {
        Some("initialize") => {
            let result = json!({
                "protocolVersion": "2025-11-25", "capabilities": {},
                "serverInfo": {"name": "scripted", "version": "1"},
            });
            let mut response = json_answer(&message, &result);
            response.headers_mut().insert("mcp-session-id", "session-1".parse().unwrap());
            response
        }
        // As servers do that know sessions only.
        Some("server/discover") => status(StatusCode::BAD_REQUEST, "Missing session ID"),
        Some("tools/call" | "ping") => (server.script)(&message),
        _ => status(StatusCode::ACCEPTED, ""),
    }
}

fn status(status: StatusCode, text: &str) -> Response {
    Response::builder().status(status).body(Body::from(text.to_owned())).unwrap()
}

fn of_type(media_type: &str, body: impl Into<Body>) -> Response {
    Response::builder().header(header::CONTENT_TYPE, media_type).body(body.into()).unwrap()
}

fn json_answer(request: &Value, result: &Value) -> Response {
    let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
    of_type("application/json; charset=utf-8", answer.to_string())
}

async fn scripted(
    script: impl Fn(&Value) -> Response + Send + Sync + 'static,
) -> (Arc<dyn Connect>, Scripted) {
    let server = Scripted { script: Arc::new(script), seen: Arc::default() };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp?key=hidden", listener.local_addr().unwrap());
    let app = axum::Router::new().route("/mcp", any(handle)).with_state(server.clone());
    tokio::spawn(async move { axum::serve(listener, app).await });
    let http_server = Http::new(url).header("Authorization", "Bearer t");
    (http("web", &http_server).unwrap(), server)
}

async fn error_of(script: impl Fn(&Value) -> Response + Send + Sync + 'static) -> RequestError {
    let (connect, _) = scripted(script).await;
    let connection = connect.connect(unheard()).await.unwrap();
    connection.call_tool(call("work")).await.unwrap_err()
}

#[tokio::test]
async fn headers_go_with_every_request_and_the_session_is_ended() {
    let (connect, server) = scripted(|request| json_answer(request, &json!({"content": []}))).await;
    assert!(!connect.target().contains("hidden"), "{}", connect.target());
    let connection = connect.connect(unheard()).await.unwrap();
    connection.call_tool(call("work")).await.unwrap();
    connection.close().await;
    let second = connect.connect(unheard()).await.unwrap();
    second.close().await;
    let mut methods = server.methods();
    methods.retain(|method| method != "GET");
    assert_eq!(
        methods,
        [
            "server/discover",
            "initialize",
            "notifications/initialized",
            "tools/call",
            "DELETE",
            // What it wants is known by now.
            "initialize",
            "notifications/initialized",
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
async fn a_session_that_has_expired_ends_the_connection_and_what_met_it_counts_as_made() {
    let (connection, server, expired) = in_session().await;
    expired.store(true, Ordering::SeqCst);
    let error = connection.call_tool(call("work")).await.unwrap_err();
    let says = "its session has expired (HTTP 404)";
    assert!(matches!(&error, RequestError::Lost(reason) if reason == says), "{error:?}");
    assert_eq!(&*connection.closed().await, says);
    connection.close().await;
    let calls = server.methods().iter().filter(|method| *method == "tools/call").count();
    assert_eq!(calls, 2, "one of them was sent again");
}

#[tokio::test]
async fn a_session_that_was_silent_is_probed_so_that_no_call_meets_an_expired_one() {
    let (connection, server, expired) = in_session().await;
    let later = async |seconds| {
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(seconds)).await;
        tokio::time::resume();
    };
    later(60).await;
    connection.call_tool(call("work")).await.unwrap();
    connection.call_tool(call("work")).await.unwrap();
    let methods = server.methods();
    assert!(methods.ends_with(&["ping", "tools/call", "tools/call"].map(str::to_owned)));
    later(60).await;
    expired.store(true, Ordering::SeqCst);
    let error = connection.call_tool(call("work")).await.unwrap_err();
    assert!(matches!(&error, RequestError::NotSent(_)), "{error:?}");
    connection.close().await;
    let calls = server.methods().iter().filter(|method| *method == "tools/call").count();
    assert_eq!(calls, 3);
}

/// A connection with a session that was called once, and how to have the server forget it.
async fn in_session() -> (Arc<dyn Connection>, Scripted, Arc<AtomicBool>) {
    let expired = Arc::new(AtomicBool::new(false));
    let is_expired = Arc::clone(&expired);
    let (connect, server) = scripted(move |request| match is_expired.load(Ordering::SeqCst) {
        true => status(StatusCode::NOT_FOUND, "no such session"),
        false => json_answer(request, &json!({"content": []})),
    })
    .await;
    let connection = connect.connect(unheard()).await.unwrap();
    connection.call_tool(call("work")).await.unwrap();
    (connection, server, expired)
}

#[tokio::test]
async fn a_refusal_with_words_of_the_protocol_is_one_whatever_its_id() {
    let error = error_of(|_| {
        let error = json!({"code": -32602, "message": "bad arguments"});
        let body = json!({"jsonrpc": "2.0", "id": "server-error", "error": error}).to_string();
        let mut response = of_type("application/json", body);
        *response.status_mut() = StatusCode::BAD_REQUEST;
        response
    })
    .await;
    assert!(
        matches!(&error, RequestError::Refused { code: -32602, message } if message == "bad arguments"),
        "{error:?}"
    );
}

#[tokio::test]
async fn an_answer_with_another_calls_id_is_nobodys() {
    let first = Arc::new(Mutex::new(None));
    let release = Arc::new(tokio::sync::Notify::new());
    let (id, released) = (Arc::clone(&first), Arc::clone(&release));
    let answer = |id: &Value, text: &str| {
        let result = json!({"content": [{"type": "text", "text": text}]});
        json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string()
    };
    let (connect, _) = scripted(move |request| {
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
    let connection = connect.connect(unheard()).await.unwrap();
    let waiting = tokio::spawn(connection.call_tool(call("first")));
    while first.lock().unwrap().is_none() {
        tokio::task::yield_now().await;
    }
    let swapped = connection.call_tool(call("second")).await.unwrap_err();
    assert!(matches!(swapped, RequestError::Malformed(_)), "{swapped:?}");
    release.notify_one();
    assert_eq!(waiting.await.unwrap().unwrap().output.value, "its own");
}

#[tokio::test]
async fn what_is_no_answer_is_told_apart_from_what_may_have_been_done() {
    type Case = (fn(&Value) -> Response, bool, &'static str);
    let cases: [Case; 8] = [
        (|_| status(StatusCode::UNAUTHORIZED, "who are you"), true, "HTTP 401: who are you"),
        (|_| status(StatusCode::TOO_MANY_REQUESTS, "slowly"), true, "HTTP 429: slowly"),
        (|_| status(StatusCode::BAD_GATEWAY, "upstream"), false, "HTTP 502: upstream"),
        (|_| of_type("text/html", "<html>"), true, "its answer is of type text/html"),
        (|_| of_type("application/json", "{}"), true, "its answer is of no request: {}"),
        (
            |_| of_type("application/json", r#"{"jsonrpc":"2.0","id":999,"result":{}}"#),
            true,
            "its answer is of no request",
        ),
        (|_| of_type("text/event-stream", ": nothing\n\n"), false, "the answer broke off"),
        (
            |_| {
                let moved = Response::builder().status(307).header("location", "/elsewhere");
                moved.body(Body::empty()).unwrap()
            },
            true,
            "redirects",
        ),
    ];
    for (script, is_answer, says) in cases {
        let error = error_of(script).await;
        let told = match &error {
            RequestError::Malformed(problem) if is_answer => problem,
            RequestError::Lost(problem) if !is_answer => problem,
            other => panic!("{says}: {other:?}"),
        };
        assert!(told.contains(says), "{told}");
    }
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_resumed_behind_its_last_event() {
    let asked = Arc::new(Mutex::new(Value::Null));
    let (connect, server) = scripted(move |request| {
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
    let connection = connect.connect(unheard()).await.unwrap();
    let answer = connection.call_tool(call("work")).await.unwrap();
    assert_eq!(answer.output.value, "after all");
    let seen = server.seen.lock().unwrap();
    let resumed: Vec<_> =
        seen.iter().filter_map(|(_, headers, _)| headers.get("last-event-id")).collect();
    assert_eq!(resumed, ["seven"]);
    let calls = seen.iter().filter(|(_, _, message)| message["method"] == "tools/call").count();
    assert_eq!(calls, 1, "it was sent again");
}

/// Calls a server that breaks off its answer, and answers who asks for the rest with these in turn,
/// the last of them again and again. What the call came to, how often the rest was asked for, and
/// why the connection ended if it did.
async fn resumed_with(
    rest: Vec<fn(&Value) -> Response>,
) -> (Result<String, RequestError>, usize, Option<Arc<str>>) {
    let asked = Mutex::new((Value::Null, 0));
    let (connect, server) = scripted(move |request| {
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
    let connection = connect.connect(unheard()).await.unwrap();
    let came_to = connection.call_tool(call("work")).await;
    let came_to = came_to.map(|answer| answer.output.value.as_str().to_owned());
    let seen = server.seen.lock().unwrap();
    let resumes =
        seen.iter().filter(|(_, headers, _)| headers.contains_key("last-event-id")).count();
    (came_to, resumes, connection.closed().now_or_never())
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
        let (came_to, resumes, closed) = resumed_with(vec![answer]).await;
        // It may have been carried out.
        let Err(RequestError::Lost(problem)) = came_to else { panic!("{says}: {came_to:?}") };
        assert!(problem.contains("broke off") && problem.contains(says), "{problem}");
        assert_eq!((resumes, closed), (1, None), "{says}");
    }
    let (came_to, resumes, closed) =
        resumed_with(vec![|_| status(StatusCode::NOT_FOUND, "no such session")]).await;
    assert!(matches!(came_to, Err(RequestError::Lost(_))), "{came_to:?}");
    assert_eq!(resumes, 1);
    assert_eq!(closed.as_deref(), Some("its session has expired (HTTP 404)"));
}

#[tokio::test]
async fn a_server_that_cannot_resume_just_now_is_asked_again() {
    let (came_to, resumes, closed) = resumed_with(vec![
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
    assert_eq!((resumes, closed), (4, None));
}

#[tokio::test]
async fn what_a_server_asks_amid_an_answer_is_answered() {
    let heard = Arc::new(tokio::sync::Notify::new());
    let answered = Arc::clone(&heard);
    let (connect, server) = scripted(move |request| {
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
    let connection = connect.connect(unheard()).await.unwrap();
    let calling = tokio::spawn(connection.call_tool(call("work")));
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
        let error = error_of(move |_| of_type(media_type, endless(begin))).await;
        assert!(
            matches!(&error, RequestError::Malformed(text) if text.contains("more than 16777216 bytes")),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_was_sent_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    drop(listener);
    let connect = http("web", &Http::new(url)).unwrap();
    let Err(error) = connect.connect(unheard()).await else { panic!("connected") };
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
    let connection = http("web", &Http::new(url)).unwrap().connect(unheard()).await.unwrap();
    connection.call_tool(call("work")).await.unwrap();
    stop.send(()).unwrap();
    serving.await.unwrap();
    let first = connection.call_tool(call("work")).await.unwrap_err();
    assert!(matches!(first, RequestError::NotSent(_) | RequestError::Lost(_)), "{first:?}");
    let second = connection.call_tool(call("work")).await.unwrap_err();
    assert!(matches!(second, RequestError::NotSent(_)), "{second:?}");
    assert!(connection.closed().await.contains("no connection to"));
}

#[test]
fn what_cannot_be_sent_is_refused_before_it_is_tried() {
    let refused = |server: Http| match http("web", &server) {
        Ok(_) => panic!("it is taken"),
        Err(refused) => refused,
    };
    let local = "http://localhost:1/mcp";
    let secret = ("Authorization", "Bearer t");
    assert!(http("web", &Http::new(local).header(secret.0, secret.1)).is_ok());
    assert!(http("web", &Http::new("https://docs.example/mcp").header(secret.0, secret.1)).is_ok());
    assert!(http("web", &Http::new("http://docs.example/mcp")).is_ok());
    assert_eq!(
        refused(Http::new("http://docs.example/mcp").header(secret.0, secret.1)),
        InvalidServer::HeadersInTheClear {
            server: "web".to_owned(),
            host: "docs.example".to_owned()
        }
    );
    for header in ["Host", "Accept", "MCP-Session-Id", "Mcp-Param-Region", "a b"] {
        let error = refused(Http::new(local).header(header, "x"));
        assert!(matches!(error, InvalidServer::Header { .. }), "{error:?}");
    }
    let error = refused(Http::new(local).header("X-Key", "a\nb"));
    assert!(error.to_string().contains("has a value that cannot be sent"), "{error}");
    for url in ["ftp://docs.example", "https://user@docs.example/", "docs.example/mcp"] {
        let error = refused(Http::new(url));
        assert!(matches!(error, InvalidServer::Url { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn an_address_of_another_network_is_not_dialled() {
    let connect = http("web", &Http::new("http://10.1.2.3/mcp")).unwrap();
    let Err(error) = connect.connect(unheard()).await else { panic!("connected") };
    assert!(error.to_string().contains("10.1.2.3"), "{error}");
}
