//! A server of both eras that asks its client inside of calls, as those on current SDKs do.

use std::sync::{Arc, Mutex};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, Method, StatusCode},
    response::Response,
    routing::any,
};
use serde_json::{Map, Value, json};
use toolcrib_core::{
    BoxFuture, ClientAbilities, ClientHandle, ClientPort, ClientRefusal, Tool, ToolContextParts,
};
use toolcrib_mcp::{McpClient, mcp_client, server::Http};

use super::{
    Outcome,
    http_faults::{begun, json_answer, served, status},
};

#[derive(Clone)]
struct Server {
    has_sessions: bool,
    /// The text of a call without a session.
    refusal: &'static str,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// The handshakes and calls since the last look.
    fn seen(&self) -> Vec<String> {
        std::mem::take(&mut *self.seen.lock().unwrap())
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
    let is_session = headers.contains_key("mcp-session-id");
    if matches!(name, "server/discover" | "initialize" | "tools/call") {
        let tool = message["params"]["name"].as_str().unwrap_or_default();
        server.seen.lock().unwrap().push(format!("{name} {tool}").trim().to_owned());
    }
    let info = json!({"name": "both", "version": "1"});
    match name {
        "server/discover" => {
            let result = json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28", "2025-11-25"],
                "capabilities": {"tools": {}}, "serverInfo": info, "ttlMs": 0, "cacheScope": "private",
            });
            json_answer(&message, &result)
        }
        "initialize" if !server.has_sessions => status(StatusCode::BAD_REQUEST, "no sessions"),
        "initialize" => begun(&message, "s"),
        "tools/list" => {
            let tool = |name: &str, reads: bool| {
                let hints = json!({"readOnlyHint": reads});
                json!({"name": name, "inputSchema": {"type": "object"}, "annotations": hints})
            };
            let tools = [tool("read", true), tool("write", false)];
            json_answer(&message, &json!({"tools": tools, "ttlMs": 0, "cacheScope": "private"}))
        }
        "tools/call" => {
            let text = match is_session {
                true => "asked",
                false => server.refusal,
            };
            let content = [json!({"type": "text", "text": text})];
            json_answer(
                &message,
                &json!({"resultType": "complete", "content": content, "isError": !is_session}),
            )
        }
        _ => status(StatusCode::ACCEPTED, ""),
    }
}

/// What servers on the SDKs answer to a call in which they cannot ask: Python's, and FastMCP.
const REFUSALS: [&str; 2] = [
    "Error executing tool ask: Cannot send 'elicitation/create': this transport context has no back-channel for server-initiated requests.",
    "Error calling tool 'ask': elicitation via server-initiated requests is unavailable on 2026-07-28 connections.",
];

async fn serve(has_sessions: bool) -> (McpClient, Server) {
    serve_with(has_sessions, REFUSALS[0]).await
}

async fn serve_with(has_sessions: bool, refusal: &'static str) -> (McpClient, Server) {
    let server = Server { has_sessions, refusal, seen: Arc::default() };
    let url = served(Router::new().route("/mcp", any(handle)).with_state(server.clone())).await;
    (mcp_client("both", Http::new(url)).trusted().build().unwrap(), server)
}

/// A client that fills in forms, at any time or between requests.
struct Person {
    can_be_asked: bool,
    in_session: bool,
}

impl ClientPort for Person {
    fn abilities(&self, _: &str) -> ClientAbilities {
        let mut can = ClientAbilities::default();
        (can.elicitation_form, can.in_session) = (self.can_be_asked, self.in_session);
        can
    }

    fn key(&self) -> usize {
        0
    }

    fn request(
        &self,
        _: Arc<str>,
        _: Map<String, Value>,
    ) -> BoxFuture<'static, Result<Map<String, Value>, ClientRefusal>> {
        Box::pin(async { Err(ClientRefusal::failed("not here")) })
    }
}

async fn call_for(tool: &Tool, can_be_asked: bool, in_session: bool) -> Outcome {
    let mut parts = ToolContextParts::detached();
    let person = Person { can_be_asked, in_session };
    parts.handles.push(Arc::new(ClientHandle(Arc::new(person))));
    Ok(tool.call(json!({}), parts.into()).await?)
}

#[tokio::test]
async fn a_person_who_can_be_asked_in_a_call_is_served_in_a_session() {
    let (client, server) = serve(true).await;
    let tools = client.tools().await.unwrap();
    // Only listed, for no client.
    assert_eq!(server.seen(), ["server/discover"]);
    assert_eq!(call_for(&tools[1], true, true).await.unwrap().value, "asked");
    assert_eq!(server.seen(), ["initialize", "tools/call write"]);
    // Without somebody to ask, the newer version stays.
    call_for(&tools[1], false, true).await.unwrap_err();
    assert_eq!(server.seen(), ["tools/call write"]);
}

#[tokio::test]
async fn a_call_that_shows_the_need_of_a_session_is_repeated_only_if_it_reads() {
    for refusal in REFUSALS {
        let (client, server) = serve_with(true, refusal).await;
        let tools = client.tools().await.unwrap();
        server.seen();
        let failed = call_for(&tools[1], true, false).await.unwrap_err();
        assert!(failed.message.contains(refusal), "{failed:?}");
        assert_eq!(server.seen(), ["server/discover", "tools/call write"]);
        assert_eq!(call_for(&tools[1], true, false).await.unwrap().value, "asked");
        assert_eq!(server.seen(), ["initialize", "tools/call write"]);

        let (client, server) = serve_with(true, refusal).await;
        let tools = client.tools().await.unwrap();
        server.seen();
        assert_eq!(call_for(&tools[0], true, false).await.unwrap().value, "asked");
        let seen = ["server/discover", "tools/call read", "initialize", "tools/call read"];
        assert_eq!(server.seen(), seen);
    }
}

#[tokio::test]
async fn a_server_without_sessions_is_asked_for_one_once() {
    let (client, server) = serve(false).await;
    let tools = client.tools().await.unwrap();
    server.seen();
    for _ in 0..2 {
        call_for(&tools[0], true, true).await.unwrap_err();
    }
    let seen = ["initialize", "server/discover", "tools/call read", "tools/call read"];
    assert_eq!(server.seen(), seen);
}
