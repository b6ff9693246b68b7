//! A server at the other end of a pipe, line by line.

use serde_json::{Value, json};
use tokio::{
    io::{
        AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf,
        WriteHalf, duplex, split,
    },
    sync::mpsc,
};
use toolcrib_core::Tool;
use toolcrib_mcp::{McpClient, McpClientBuilder, pipe_mcp_client};

/// One connection, seen by the server.
pub(super) struct Raw {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
}

/// The connections of a client, as the server accepts them.
pub(super) type Connections = mpsc::UnboundedReceiver<Raw>;

/// A client over pipes of that size.
pub(super) fn raw(buffer: usize) -> (McpClient, Connections) {
    raw_with(buffer, |client| client)
}

pub(super) fn raw_with(
    buffer: usize,
    change: impl FnOnce(McpClientBuilder) -> McpClientBuilder,
) -> (McpClient, Connections) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let client = pipe_mcp_client("raw", move || {
        let (ours, theirs) = duplex(buffer);
        sender.send(Raw::new(theirs)).map_err(std::io::Error::other)?;
        Ok(ours)
    });
    (change(client).build().unwrap(), receiver)
}

/// The tool `work` of a server with sessions, and the server.
pub(super) async fn connected(buffer: usize) -> (McpClient, Tool, Raw, Connections) {
    let (client, mut connections) = raw(buffer);
    let server = tokio::spawn(async move {
        let mut server = connections.recv().await.unwrap();
        server.greet_legacy().await;
        server.list().await;
        (server, connections)
    });
    let tool = client.tools().await.unwrap().remove(0);
    let (server, connections) = server.await.unwrap();
    (client, tool, server, connections)
}

/// The same of a server without sessions.
pub(super) async fn modern() -> (McpClient, Tool, Raw) {
    let (client, mut connections) = raw(64 * 1024);
    let server = tokio::spawn(async move {
        let mut server = connections.recv().await.unwrap();
        server.greet_modern(json!({"tools": {}})).await;
        server.list().await;
        server
    });
    let tool = client.tools().await.unwrap().remove(0);
    (client, tool, server.await.unwrap())
}

impl Raw {
    pub(super) fn new(stream: DuplexStream) -> Self {
        let (reader, writer) = split(stream);
        Self { lines: BufReader::new(reader).lines(), writer }
    }

    pub(super) async fn read(&mut self) -> Option<Value> {
        let line = self.lines.next_line().await.ok()??;
        Some(serde_json::from_str(&line).unwrap())
    }

    /// The next message, which is of that method.
    pub(super) async fn expect(&mut self, method: &str) -> Value {
        let message = self.read().await.unwrap();
        assert_eq!(message["method"], method, "{message}");
        message
    }

    pub(super) async fn text(&mut self, text: &str) {
        let _ = self.writer.write_all(text.as_bytes()).await;
    }

    /// Whether it can still be written.
    pub(super) async fn bytes(&mut self, bytes: &[u8]) -> bool {
        self.writer.write_all(bytes).await.is_ok()
    }

    pub(super) async fn write(&mut self, message: &Value) {
        self.text(&format!("{message}\n")).await;
    }

    pub(super) async fn answer(&mut self, request: &Value, result: Value) {
        self.write(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).await;
    }

    pub(super) async fn refuse(&mut self, request: &Value, code: i32, message: &str) {
        let error = json!({"code": code, "message": message});
        self.write(&json!({"jsonrpc": "2.0", "id": request["id"], "error": error})).await;
    }

    /// Greets as servers before 2026-07-28 do.
    pub(super) async fn greet_legacy(&mut self) {
        let discover = self.expect("server/discover").await;
        self.refuse(&discover, -32601, "no such method").await;
        self.initialize().await;
    }

    pub(super) async fn initialize(&mut self) {
        let initialize = self.expect("initialize").await;
        self.initialized(&initialize, "2025-11-25").await;
    }

    /// Accepts a handshake with that version.
    pub(super) async fn initialized(&mut self, initialize: &Value, version: &str) {
        let result = json!({
            "protocolVersion": version,
            "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": {"name": "raw", "version": "1"},
        });
        self.answer(initialize, result).await;
        self.expect("notifications/initialized").await;
    }

    /// Greets as servers since 2026-07-28 do.
    pub(super) async fn greet_modern(&mut self, capabilities: Value) {
        let discover = self.expect("server/discover").await;
        let result = json!({
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": capabilities,
            "serverInfo": {"name": "raw", "version": "2"},
            "ttlMs": 0,
            "cacheScope": "private",
        });
        self.answer(&discover, result).await;
    }

    /// Lists the tool `work`; returns the request.
    pub(super) async fn list(&mut self) -> Value {
        let list = self.expect("tools/list").await;
        let tool = json!({"name": "work", "inputSchema": {"type": "object"}});
        // Zero: valid until a change is announced.
        let result = json!({"tools": [tool], "ttlMs": 0, "cacheScope": "private"});
        self.answer(&list, result).await;
        list
    }

    /// Opens a requested subscription.
    pub(super) async fn acknowledge(&mut self, listen: &Value) {
        let meta = json!({"io.modelcontextprotocol/subscriptionId": listen["id"]});
        let params = json!({"_meta": meta, "notifications": {"toolsListChanged": true}});
        let method = "notifications/subscriptions/acknowledged";
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    /// Answers the next call.
    pub(super) async fn work(&mut self) -> Value {
        let call = self.expect("tools/call").await;
        self.answer(&call, json!({"content": []})).await;
        call
    }
}
