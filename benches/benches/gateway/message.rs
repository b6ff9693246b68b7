//! The messages to every server, and the check of a response.

use serde_json::json;

/// The first message of a session.
pub(crate) const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;

/// The second one.
pub(crate) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// The text to return.
const TEXT: &str = "The quick brown fox jumps over the lazy dog.";

/// A call, as the parts before and after its id.
pub(crate) fn call(tool: &str, stands_alone: bool) -> (String, String) {
    let mut params = json!({ "name": tool, "arguments": { "text": TEXT } });
    if let Some(params) = params.as_object_mut().filter(|_| stands_alone) {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "bench", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        params.insert("_meta".into(), meta);
    }
    let after = format!(r#","method":"tools/call","params":{params}}}"#);
    (r#"{"jsonrpc":"2.0","id":"#.into(), after)
}

/// Whether this is the successful response to the call. A gateway may add text around the returned
/// one.
pub(crate) fn is_answer(said: &str, call: u64) -> bool {
    id(said) == Some(call)
        && said.contains(TEXT)
        && !said.contains(r#""isError":true"#)
        && !said.contains(r#""error":{"#)
}

/// The id of a response; `None` for other messages.
pub(crate) fn id(said: &str) -> Option<u64> {
    let (_, after) = said.split_once(r#""id":"#)?;
    let end = after.find(|next: char| !next.is_ascii_digit())?;
    after.get(..end)?.parse().ok()
}
