//! Servers over HTTP that redirect.

use std::sync::{Arc, Mutex};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, Method, StatusCode, Uri, header},
    response::Response,
};
use serde_json::{Value, json};
use toolcrib_mcp::{McpClient, mcp_client, server::Http};

use super::{
    call,
    http_faults::{begun, json_answer, served, status},
};
use crate::client::support::tool_of;

/// A request: method, path and query, authorization, session, and method of the message.
type Seen = (Method, String, Option<String>, bool, String);

#[derive(Clone)]
struct Redirecting {
    /// The target of a request to this path, with its status.
    target: fn(&str) -> Option<(u16, String)>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Redirecting {
    /// The paths of the requests with this message.
    fn paths(&self, of: &str) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        seen.iter().filter(|seen| seen.4 == of).map(|seen| seen.1.clone()).collect()
    }
}

async fn handle(
    State(server): State<Redirecting>,
    uri: Uri,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let of = message["method"].as_str().unwrap_or_default();
    let authorization = headers.get(header::AUTHORIZATION).map(|it| it.to_str().unwrap().into());
    let in_session = headers.contains_key("mcp-session-id");
    let place = uri.path_and_query().unwrap().to_string();
    let seen = (method.clone(), place.clone(), authorization, in_session, of.to_owned());
    server.seen.lock().unwrap().push(seen);
    if let Some((code, location)) = (server.target)(&place) {
        let moved = Response::builder().status(code).header(header::LOCATION, location);
        return moved.body(Body::empty()).unwrap();
    }
    match of {
        "initialize" => begun(&message, "session-1"),
        "server/discover" => status(StatusCode::BAD_REQUEST, "Missing session ID"),
        "tools/list" => {
            let tool = json!({"name": "work", "inputSchema": {"type": "object"}});
            json_answer(&message, &json!({"tools": [tool]}))
        }
        "tools/call" => json_answer(&message, &json!({"content": [], "isError": false})),
        _ if method == Method::GET => status(StatusCode::METHOD_NOT_ALLOWED, ""),
        _ => status(StatusCode::ACCEPTED, ""),
    }
}

async fn redirecting(target: fn(&str) -> Option<(u16, String)>) -> (McpClient, Redirecting) {
    let server = Redirecting { target, seen: Arc::default() };
    let url = served(Router::new().fallback(handle).with_state(server.clone())).await;
    let http = Http::new(url).header("Authorization", "Bearer t");
    (mcp_client("web", http).build().unwrap(), server)
}

#[tokio::test]
async fn each_request_follows_three_redirects_of_its_origin_with_its_headers_and_body() {
    let (client, server) = redirecting(|path| match path {
        "/mcp" => Some((307, "/mcp/".to_owned())),
        "/mcp/" => Some((308, "/v2/mcp".to_owned())),
        "/v2/mcp" => Some((307, "?tenant=a".to_owned())),
        _ => None,
    })
    .await;
    call(&tool_of(&client, "work").await).await.unwrap();
    client.close().await;
    let way = ["/mcp", "/mcp/", "/v2/mcp", "/v2/mcp?tenant=a"];
    assert_eq!(server.paths("tools/call"), way);
    assert_eq!(server.paths("initialize"), way);
    let seen = server.seen.lock().unwrap();
    for (method, path, authorization, in_session, of) in seen.iter() {
        assert_eq!(authorization.as_deref(), Some("Bearer t"), "{method} {path}");
        let is_greeting = matches!(&**of, "server/discover" | "initialize");
        assert_eq!(*in_session, !is_greeting, "{method} {path} {of}");
    }
    assert!(seen.iter().any(|seen| seen.0 == Method::DELETE && seen.1.ends_with("tenant=a")));
}

#[tokio::test]
async fn another_redirect_is_an_error_that_names_its_target_and_not_its_secrets() {
    type Target = fn(&str) -> Option<(u16, String)>;
    let cases: [(Target, &str); 6] = [
        (
            |_| Some((307, "https://u:s3cret@elsewhere.example/mcp?key=s3cret".to_owned())),
            "(HTTP 307) to `https://elsewhere.example/mcp`, which is not followed",
        ),
        (
            |path| (path == "/mcp").then(|| (302, "/login?next=s3cret".to_owned())),
            "/login`, which is not followed: only 307 and 308",
        ),
        (
            |path| (path == "/mcp").then(|| (301, "/mcp/".to_owned())),
            "/mcp/`, which is not followed: only 307 and 308",
        ),
        (|path| Some((308, format!("{path}x"))), "/mcpxxxx`, which is not followed: it is one"),
        (|_| Some((307, "/mcp".to_owned())), "/mcp`, which is not followed: it is a circle"),
        (|_| Some((307, "http://[".to_owned())), "(HTTP 307), and names no valid URL"),
    ];
    for (target, says) in cases {
        let (client, server) = redirecting(target).await;
        let error = client.tools().await.unwrap_err().to_string();
        assert!(error.contains(says) && !error.contains("s3cret"), "{says}: {error}");
        let longest = server.seen.lock().unwrap().iter().map(|seen| seen.1.len()).max();
        assert!(longest <= Some("/mcpxxx".len()), "{says}");
    }
}
