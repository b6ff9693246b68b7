//! MCP servers in Python.

/// The fixture as in the project's file.
pub(crate) fn server() -> String {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/mcp_server.py");
    fixtures.to_owned()
}

/// A server that lists the present content of `tools.json`, and announces a change in each call.
pub(crate) const SERVER: &str = r#"
import json, sys
def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    method, params = message.get("method"), message.get("params") or {}
    if "id" not in message:
        continue
    file = json.load(open("tools.json", encoding="utf-8"))
    result = {}
    if method == "initialize":
        capabilities = {"tools": {"listChanged": True}, "prompts": {"listChanged": True}}
        result = {"protocolVersion": params.get("protocolVersion"), "capabilities": capabilities,
                  "serverInfo": {"name": "s", "version": "1"},
                  "instructions": file.get("instructions", "Be kind.")}
    elif method == "tools/list":
        result = {"tools": file["tools"]}
    elif method == "prompts/list":
        result = {"prompts": file["prompts"]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": "called " + params["name"]}]}
        send({"method": "notifications/tools/list_changed"})
        send({"method": "notifications/prompts/list_changed"})
    send({"id": message["id"], "result": result})
"#;
