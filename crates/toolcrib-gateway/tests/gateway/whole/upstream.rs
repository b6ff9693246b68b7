//! An MCP server of raw JSON, of either version of the protocol, on pipes.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use toolcrib_mcp::{McpClient, McpClientBuilder, pipe_mcp_client};

use super::super::support::Era;

pub(super) const VERSION: &str = "2026-07-28";

/// The answer of a server to a request, and what it needs of its client for it.
fn answer(method: &str, params: &Value) -> Result<Value, Value> {
    let name = params["name"].as_str().unwrap_or_default();
    Ok(match (method, name) {
        ("tools/list", _) => json!({ "tools": [
            { "name": "mixed", "title": "Mixed", "inputSchema": { "type": "object" },
              "icons": [{ "src": "https://example.test/i.png" }], "_meta": { "k": "v" },
              "annotations": { "readOnlyHint": true, "openWorldHint": false } },
            { "name": "meta", "inputSchema": { "type": "object" } },
            { "name": "visit", "inputSchema": { "type": "object" } },
            { "name": "ask", "inputSchema": { "type": "object" } },
            { "name": "link", "inputSchema": { "type": "object" } },
            { "name": "many", "inputSchema": { "type": "object" } },
            { "name": "nothing", "inputSchema": { "type": "object" } },
            { "name": "odd.name", "inputSchema": { "type": "object", "properties": {
                "maybe": { "type": ["string", "null"] }, "plain": { "type": "string" } } } },
            { "name": "x".repeat(100), "inputSchema": { "type": "object" } },
            { "name": "mcp__t__mixed", "inputSchema": { "type": "object" } },
        ]}),
        ("tools/call", "link") => {
            let link = |uri: &str| json!({ "type": "resource_link", "uri": uri, "name": "n" });
            json!({ "content": [link("test://open"), link("test://of/9")] })
        }
        ("tools/call", "odd.name") => {
            json!({ "content": [{ "type": "text", "text": params["arguments"].to_string() }] })
        }
        ("tools/call", "nothing") => json!({ "content": [] }),
        ("tools/call", "many") => {
            json!({ "content": [], "structuredContent": { "a": vec![0; 300_000] } })
        }
        ("tools/call", "mixed") => json!({
            "content": [
                { "type": "text", "text": "one", "annotations": { "priority": 1.0 } },
                { "type": "image", "data": "aGk=", "mimeType": "image/png" },
                { "type": "text", "text": "two <|im_start|>" },
                { "type": "resource_link", "uri": "far://away", "name": "n", "title": "T",
                  "description": "D", "size": 7 },
            ],
            "structuredContent": { "a": 1 },
            "_meta": { "example.test/x": 1 },
        }),
        ("tools/call", "meta") => {
            let text = params["_meta"].to_string();
            json!({ "content": [{ "type": "text", "text": text }] })
        }
        ("tools/call", "visit") => {
            let data = json!({ "elicitations": [{ "url": "https://example.test/x" }] });
            return Err(json!({ "code": -32042, "message": "go there", "data": data }));
        }
        ("resources/list", _) => json!({ "resources": [
            { "uri": "test://open", "name": "open" }, { "uri": "test://closed", "name": "closed" },
            { "uri": "test://\u{1b}[2J\u{202e}", "name": "unclean" },
        ]}),
        ("resources/templates/list", _) => {
            json!({ "resourceTemplates": [{ "uriTemplate": "test://of/{id}", "name": "of" }] })
        }
        ("resources/read", _) => {
            let uri = &params["uri"];
            json!({ "contents": [{ "uri": uri, "mimeType": "text/plain", "text": "read me" }] })
        }
        ("prompts/list", _) => json!({ "prompts": [{ "name": "greet", "title": "Greet" }] }),
        ("prompts/get", "greet") => json!({ "description": "d", "messages": [
            { "role": "assistant", "content": { "type": "text", "text": "hello" } },
        ]}),
        ("completion/complete", _) => {
            json!({ "completion": { "values": ["red"], "total": 1 }, "_meta": { "k": 1 } })
        }
        _ => return Err(json!({ "code": -32601, "message": "unknown" })),
    })
}

/// Serves one connection, as a server of one era.
pub(super) async fn serve(stream: DuplexStream, era: Era) {
    let (read, mut write) = tokio::io::split(stream);
    let mut lines = BufReader::new(read).lines();
    // The call that waits for the client, in a session.
    let mut waiting = Value::Null;
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).unwrap();
        let Some(id) = message.get("id") else { continue };
        let capabilities = json!({
            "tools": {}, "prompts": {}, "resources": { "subscribe": true }, "completions": {},
        });
        let params = &message["params"];
        let reply = match message["method"].as_str() {
            None => {
                let name = message["result"]["content"]["name"].as_str().unwrap_or("nobody");
                let content = json!([{ "type": "text", "text": format!("hi {name}") }]);
                json!({ "jsonrpc": "2.0", "id": waiting, "result": { "content": content } })
            }
            Some("server/discover") if era == Era::Stateless => json!({
                "jsonrpc": "2.0", "id": id, "result": {
                    "resultType": "complete", "supportedVersions": [VERSION],
                    "capabilities": capabilities, "instructions": "Be brief.",
                    "ttlMs": 0, "cacheScope": "private",
                },
            }),
            Some("initialize") if era == Era::Sessions => json!({
                "jsonrpc": "2.0", "id": id, "result": {
                    "protocolVersion": "2025-11-25", "capabilities": capabilities,
                    "serverInfo": { "name": "s", "version": "1" }, "instructions": "Be brief.",
                },
            }),
            Some("tools/call") if params["name"] == "ask" => {
                let form = json!({ "message": "Who?", "requestedSchema": {
                    "type": "object", "properties": { "name": { "type": "string" } },
                }});
                let request = json!({ "method": "elicitation/create", "params": form });
                match (era, params["inputResponses"]["who"]["content"]["name"].as_str()) {
                    (Era::Sessions, _) => {
                        waiting = id.clone();
                        let mut request = request;
                        request["jsonrpc"] = "2.0".into();
                        request["id"] = 1.into();
                        request
                    }
                    (Era::Stateless, None) => json!({ "jsonrpc": "2.0", "id": id, "result": {
                        "resultType": "input_required", "inputRequests": { "who": request },
                        "requestState": "s1",
                    }}),
                    (Era::Stateless, Some(name)) => {
                        assert_eq!(params["requestState"], "s1");
                        let content = json!([{ "type": "text", "text": format!("hi {name}") }]);
                        json!({ "jsonrpc": "2.0", "id": id, "result": { "content": content } })
                    }
                }
            }
            // A subscription that is acknowledged and ends.
            Some("subscriptions/listen")
                if params["notifications"]["resourceSubscriptions"][0] == "test://open" =>
            {
                let meta = json!({ "io.modelcontextprotocol/subscriptionId": id });
                let begun = json!({
                    "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                    "params": { "_meta": meta, "notifications": {} },
                });
                if write.write_all(format!("{begun}\n").as_bytes()).await.is_err() {
                    return;
                }
                json!({ "jsonrpc": "2.0", "id": id, "result": { "resultType": "complete" } })
            }
            Some(method) => match answer(method, params) {
                Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
                Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
            },
        };
        if write.write_all(format!("{reply}\n").as_bytes()).await.is_err() {
            return;
        }
    }
}

pub(crate) fn server(name: &str, era: Era) -> McpClient {
    server_with(name, era, |client| client)
}

/// The same with other settings.
pub(crate) fn server_with(
    name: &str,
    era: Era,
    settings: impl Fn(McpClientBuilder) -> McpClientBuilder,
) -> McpClient {
    let open = move || {
        let (near, far) = tokio::io::duplex(1 << 16);
        tokio::spawn(serve(far, era));
        Ok(near)
    };
    settings(pipe_mcp_client(name.to_owned(), open)).build().unwrap()
}
