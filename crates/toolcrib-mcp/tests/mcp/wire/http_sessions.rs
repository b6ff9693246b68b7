//! Servers over HTTP that forget their sessions, as a restarted one does.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering::SeqCst},
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, Method, StatusCode},
    response::Response,
    routing::any,
};
use futures_util::future::join_all;
use serde_json::{Value, json};
use toolcrib_core::{ErrorCode, Tool};
use toolcrib_mcp::{McpClient, mcp_client, server::Http};

use super::{
    call,
    http_faults::{begun, json_answer, of_type, served, status},
};

/// How a server refuses a request of a session that it does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    /// 404, and any of these bodies.
    NotFound(&'static str),
    /// 400, and a body without an id of a request.
    BadRequest(&'static str),
}

/// The body with which the reference servers of the protocol refuse.
const OF_SDK: &str = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}"#;

type Answer = fn(&Value) -> Response;

#[derive(Clone)]
struct Server {
    refusal: Refusal,
    /// The number of the present session; 0 after a restart.
    session: Arc<AtomicUsize>,
    sessions: Arc<AtomicUsize>,
    /// How a call is answered instead, once.
    instead: Arc<Mutex<Option<Answer>>>,
    /// The tools whose calls were executed.
    executed: Arc<Mutex<Vec<String>>>,
    pings: Arc<AtomicUsize>,
}

impl Server {
    fn restart(&self) {
        self.session.store(0, SeqCst);
    }

    fn executed(&self) -> Vec<String> {
        self.executed.lock().unwrap().clone()
    }
}

async fn handle(
    State(server): State<Server>,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if method != Method::POST {
        return status(StatusCode::METHOD_NOT_ALLOWED, "");
    }
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let name = message["method"].as_str().unwrap_or_default();
    if name == "initialize" {
        let session = server.sessions.fetch_add(1, SeqCst) + 1;
        server.session.store(session, SeqCst);
        return begun(&message, &session.to_string());
    }
    let known = server.session.load(SeqCst);
    let is_known = known != 0
        && headers
            .get("mcp-session-id")
            .is_some_and(|id| id.as_bytes() == known.to_string().as_bytes());
    server.pings.fetch_add(usize::from(name == "ping"), SeqCst);
    if !is_known {
        let (code, text) = match server.refusal {
            Refusal::NotFound(text) => (StatusCode::NOT_FOUND, text),
            Refusal::BadRequest(text) => (StatusCode::BAD_REQUEST, text),
        };
        let mut response = match text.starts_with('{') {
            true => of_type("application/json", text),
            false => of_type("text/plain", text),
        };
        *response.status_mut() = code;
        return response;
    }
    match name {
        "tools/list" => {
            let tool = |name: &str, hints: Value| json!({"name": name, "inputSchema": {"type": "object"}, "annotations": hints});
            let tools = [
                tool("put", json!({"readOnlyHint": false, "idempotentHint": true})),
                tool("read", json!({"readOnlyHint": true})),
                tool("write", json!({"readOnlyHint": false})),
            ];
            json_answer(&message, &json!({"tools": tools}))
        }
        "tools/call" => {
            if let Some(instead) = server.instead.lock().unwrap().take() {
                return instead(&message);
            }
            let tool = message["params"]["name"].as_str().unwrap_or_default();
            server.executed.lock().unwrap().push(tool.to_owned());
            json_answer(&message, &json!({"content": []}))
        }
        "ping" => json_answer(&message, &json!({})),
        _ => status(StatusCode::ACCEPTED, ""),
    }
}

async fn forgetful(refusal: Refusal) -> (McpClient, Server) {
    let server = Server {
        refusal,
        session: Arc::default(),
        sessions: Arc::default(),
        instead: Arc::default(),
        executed: Arc::default(),
        pings: Arc::default(),
    };
    let url = served(Router::new().route("/mcp", any(handle)).with_state(server.clone())).await;
    (mcp_client("web", Http::new(url)).trusted().build().unwrap(), server)
}

async fn tool(client: &McpClient, name: &str) -> Tool {
    let suffix = format!("__{name}");
    let tools = client.tools().await.unwrap();
    tools.into_iter().find(|tool| tool.name().ends_with(&suffix)).unwrap()
}

#[tokio::test]
async fn a_404_of_a_lost_session_is_repaired_in_silence_also_for_calls_that_write() {
    let foreign_id = r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Session not found"}}"#;
    for body in ["", "no such session", OF_SDK, foreign_id, "<html>not found</html>"] {
        let (client, server) = forgetful(Refusal::NotFound(body)).await;
        let write = tool(&client, "write").await;
        call(&write).await.unwrap();
        server.restart();
        call(&write).await.unwrap_or_else(|failed| panic!("{body}: {failed:?}"));
        assert_eq!(server.executed(), ["write", "write"], "{body}");
        assert_eq!(client.status().epoch, 2, "{body}");
        assert_eq!(server.pings.load(SeqCst), 0, "{body}");
    }
}

#[tokio::test]
async fn calls_at_the_same_time_in_a_lost_session_are_all_repaired() {
    let (client, server) = forgetful(Refusal::NotFound("no such session")).await;
    let write = tool(&client, "write").await;
    server.restart();
    for outcome in join_all((0..8).map(|_| call(&write))).await {
        outcome.unwrap();
    }
    assert_eq!(server.executed().len(), 8);
    assert_eq!(server.sessions.load(SeqCst), 2);
}

#[tokio::test]
async fn a_400_of_a_lost_session_repeats_only_what_does_no_harm() {
    let without_id =
        r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Server not initialized"}}"#;
    for body in ["", "Bad Request: No valid session ID provided", OF_SDK, without_id] {
        for (name, is_repeated) in [("read", true), ("put", true), ("write", false)] {
            let (client, server) = forgetful(Refusal::BadRequest(body)).await;
            let tool = tool(&client, name).await;
            server.restart();
            let outcome = call(&tool).await;
            assert_eq!(server.pings.load(SeqCst), 1, "{name} {body}");
            match is_repeated {
                true => drop(outcome.unwrap_or_else(|failed| panic!("{body}: {failed:?}"))),
                false => {
                    let failed = outcome.unwrap_err();
                    assert_eq!(failed.code, ErrorCode::OutcomeUnknown, "{body}");
                    assert!(failed.reason.contains("session has expired (HTTP 400)"), "{failed:?}");
                    call(&tool).await.unwrap();
                }
            }
            assert_eq!(server.executed(), [name], "{body}");
            assert_eq!(client.status().epoch, 2, "{body}");
        }
    }
}

#[tokio::test]
async fn a_refusal_of_a_request_in_a_living_session_ends_nothing() {
    let refusals: [(Answer, ErrorCode, usize); 4] = [
        // An answer to the request itself, whatever the status.
        (|message| refused(message, StatusCode::NOT_FOUND), ErrorCode::InputInvalid, 0),
        (|message| refused(message, StatusCode::BAD_REQUEST), ErrorCode::InputInvalid, 0),
        // A refusal by something else, and a session that answers a ping.
        (|_| status(StatusCode::BAD_REQUEST, "bad gateway"), ErrorCode::OutcomeUnknown, 1),
        (|_| status(StatusCode::INTERNAL_SERVER_ERROR, ""), ErrorCode::OutcomeUnknown, 0),
    ];
    for (refusal, code, pings) in refusals {
        let (client, server) = forgetful(Refusal::NotFound("")).await;
        let write = tool(&client, "write").await;
        *server.instead.lock().unwrap() = Some(refusal);
        let failed = call(&write).await.unwrap_err();
        assert_eq!((failed.code, server.pings.load(SeqCst)), (code, pings), "{failed:?}");
        call(&write).await.unwrap();
        assert_eq!((server.executed().len(), client.status().epoch), (1, 1));
    }
}

fn refused(message: &Value, code: StatusCode) -> Response {
    let error = json!({"code": -32602, "message": "bad arguments"});
    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
    let mut response = of_type("application/json", answer.to_string());
    *response.status_mut() = code;
    response
}
