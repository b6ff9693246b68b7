//! A server in this process that fails on demand.

mod script;
mod server;

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use toolcrib_core::Tool;

use self::script::{Refusal, Script};
use crate::client::{McpClient, McpClientBuilder, McpError, pipe_mcp_client};

/// A client of a server that offers these tools, over a pipe in memory and through the same
/// protocol code as any other: code that works with it works with a real server.
///
/// The server uses the tools' own names, so a model calls them as `mcp__mock__<name>`. It runs
/// their bodies without checking arguments, like servers that leave this to their clients, and
/// reports their annotations to the client.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use toolcrib_core::{ErrorCode, Tool, ToolContext, ToolContextParts};
/// use toolcrib_mcp::mock_mcp_client;
///
/// #[derive(serde::Deserialize)]
/// struct Args { city: String }
///
/// let weather = Tool::builder("weather")
///     .description("The weather in a city, now.")
///     .handler(|args: Args, _cx: ToolContext| async move { format!("{}: sunny", args.city) })?;
/// let (client, server) = mock_mcp_client([weather]).build()?;
///
/// let tools = client.tools().await?;
/// assert_eq!(tools[0].name(), "mcp__mock__weather");
///
/// let call = || tools[0].call(
///     serde_json::json!({ "city": "Oslo" }),
///     ToolContext::from(ToolContextParts::detached()),
/// );
/// assert_eq!(call().await.unwrap().value, "Oslo: sunny");
///
/// // It dies during the next call: whether that had an effect is unknown.
/// server.crash_during_call();
/// assert_eq!(call().await.unwrap_err().code, ErrorCode::OutcomeUnknown);
/// assert_eq!(server.calls(), 2);
/// # Ok(())
/// # }
/// ```
pub fn mock_mcp_client(tools: impl IntoIterator<Item = Tool>) -> MockMcpBuilder {
    MockMcpBuilder {
        name: "mock".into(),
        script: Script::new(tools.into_iter().collect()),
        change: Box::new(|client| client),
    }
}

/// Builds a client and its server; [`mock_mcp_client`] starts it.
#[must_use = "a builder makes nothing until it is built"]
pub struct MockMcpBuilder {
    name: Arc<str>,
    script: Script,
    change: Box<dyn FnOnce(McpClientBuilder) -> McpClientBuilder + Send>,
}

impl MockMcpBuilder {
    /// The name of the server. Default: `mock`.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// Supports no version of the protocol newer than 2025-11-25, the last one with sessions.
    /// Default: the newest.
    pub fn legacy(mut self) -> Self {
        self.script.legacy = true;
        self
    }

    /// The limit of tools on a page of the list, at least one. Default: all on one.
    pub fn page_size(mut self, tools: usize) -> Self {
        self.script.page_size = tools.max(1);
        self
    }

    /// Configures the client, like `mcp_client`: `.client(|client| client.trusted())`. The last one
    /// counts.
    pub fn client(
        mut self,
        change: impl FnOnce(McpClientBuilder) -> McpClientBuilder + Send + 'static,
    ) -> Self {
        self.change = Box::new(change);
        self
    }

    /// Builds the client, and a handle for the server. Nothing is connected yet.
    ///
    /// # Errors
    /// As [`McpClientBuilder::build`].
    pub fn build(self) -> Result<(McpClient, MockServer), McpError> {
        let script = Arc::new(self.script);
        let connections = Arc::clone(&script);
        let client = pipe_mcp_client(self.name, move || server::open(&connections));
        Ok(((self.change)(client).build()?, MockServer(script)))
    }
}

toolcrib_core::__internal::debug_fields!(MockMcpBuilder { name, .. });

/// A test's handle for the server of a [`mock_mcp_client`]. Clones share it.
#[derive(Clone)]
pub struct MockServer(Arc<Script>);

impl MockServer {
    /// Offers other tools from now on, and announces the change. Done when the announcement was
    /// sent, not when the client has received it: wait for a tick of [`McpClient::changes`].
    pub async fn set_tools(&self, tools: impl IntoIterator<Item = Tool>) {
        self.0.state().tools = tools.into_iter().collect();
        self.announce_changes(1).await;
    }

    /// Announces this number of times that its tools changed, whether they did or not.
    pub async fn announce_changes(&self, times: usize) {
        for _ in 0..times {
            self.0.announce().await;
        }
    }

    /// Answers the next call with a protocol error; several are queued.
    pub fn fail_next_call(&self, code: i32, message: impl Into<String>) {
        self.0.state().fail_calls.push_back(Refusal { code, message: message.into() });
    }

    /// Answers the next request for the list with a protocol error; several are queued.
    pub fn fail_next_list(&self, code: i32, message: impl Into<String>) {
        self.0.state().fail_lists.push_back(Refusal { code, message: message.into() });
    }

    /// Delays responses to lists and calls, from now on.
    pub fn delay(&self, time: Duration) {
        self.0.state().delay = time;
    }

    /// Ends the present connections, at once, like a process that dies.
    pub fn crash(&self) {
        self.0.crash();
    }

    /// Ends the connection when the next call has been executed, before its response.
    pub fn crash_during_call(&self) {
        self.0.state().crash_during_call = true;
    }

    /// Refuses this number of connections, from now on.
    pub fn refuse_connections(&self, times: usize) {
        self.0.state().refuse = times;
    }

    /// The number of received calls.
    pub fn calls(&self) -> u64 {
        self.0.calls.load(Ordering::Relaxed)
    }

    /// The number of list requests; each page counts.
    pub fn lists(&self) -> u64 {
        self.0.lists.load(Ordering::Relaxed)
    }

    /// The number of connections, refused ones included.
    pub fn connections(&self) -> u64 {
        self.0.connections.load(Ordering::Relaxed)
    }

    /// The number of calls that the client cancelled during their execution.
    pub fn cancelled(&self) -> u64 {
        self.0.cancelled.load(Ordering::Relaxed)
    }
}

toolcrib_core::__internal::debug_fields!(
    MockServer,
    server,
    connections = server.connections(),
    lists = server.lists(),
    calls = server.calls(),
    cancelled = server.cancelled()
);
