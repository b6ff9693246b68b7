//! Servers over HTTP that do what the protocol does not want.

use axum::{Router, body::Bytes, http::StatusCode, response::IntoResponse, routing::any};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use toolcrib_core::ErrorCode;
use toolcrib_mcp::{McpClient, mcp_client, server::Http};

use super::support::{call, names, tool_of, withheld_by_provider};

/// A client of a server of that version, which lists these tools and answers no call in a session.
async fn odd(version: &'static str, tools: Value) -> McpClient {
    let answer = move |body: Bytes| {
        let tools = tools.clone();
        async move {
            let message: Value = serde_json::from_slice(&body).unwrap_or_default();
            let result = match message["method"].as_str().unwrap_or_default() {
                "initialize" => json!({
                    "protocolVersion": version, "capabilities": { "tools": {} },
                    "serverInfo": { "name": "odd", "version": "1" },
                }),
                "tools/list" => json!({ "tools": tools }),
                "notifications/initialized" => return StatusCode::ACCEPTED.into_response(),
                _ => return StatusCode::NOT_FOUND.into_response(),
            };
            let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
            let headers = [("mcp-session-id", "s"), ("content-type", "application/json")];
            (headers, answer.to_string()).into_response()
        }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let app = Router::new().route("/mcp", any(answer));
    tokio::spawn(async move { axum::serve(listener, app).await });
    mcp_client("odd", Http::new(url)).build().unwrap()
}

fn one() -> Value {
    json!([{ "name": "one", "inputSchema": { "type": "object" } }])
}

#[tokio::test]
async fn a_server_of_an_unknown_version_is_an_error_that_names_it() {
    let client = odd("1999-01-01", one()).await;
    let error = client.tools().await.unwrap_err().to_string();
    assert!(error.contains("it speaks version `1999-01-01`"), "{error}");
    assert!(error.contains("supported are 2024-11-05, "), "{error}");
    assert_eq!(names(&odd("2025-03-26", one()).await.tools().await.unwrap()), ["mcp__odd__one"]);
}

#[tokio::test]
async fn a_listed_tool_without_a_name_is_withheld() {
    let mut tools = one();
    tools.as_array_mut().unwrap().extend([json!(5), json!({ "description": "Something." })]);
    let catalog = odd("2025-11-25", tools).await.catalog().await.unwrap();
    assert_eq!(names(catalog.offered()), ["mcp__odd__one"]);
    let reason = "mcp__odd__unnamed: the server gives it no name";
    assert_eq!(withheld_by_provider(&catalog), [reason, reason]);
}

#[tokio::test]
async fn a_session_that_is_lost_at_each_call_is_opened_again_once_per_call() {
    let client = odd("2025-11-25", one()).await;
    let (code, said) = call(&tool_of(&client, "one").await).await.unwrap_err();
    assert_eq!(code, ErrorCode::NotAvailable);
    assert!(said.ends_with("it did not take the call"), "{said}");
    assert_eq!(client.status().epoch, 2);
}
