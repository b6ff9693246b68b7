//! MCP servers as providers of tools, and an engine as an MCP server.
//!
//! - [`mcp_client`] makes a [`McpClient`] of one server, by stdio or Streamable HTTP: a
//!   [`ToolProvider`](toolcrib_core::ToolProvider) that an engine lists once per iteration.
//! - [`server`] is what is declared of a server, in code or in an `mcpServers` file.
//! - With the feature `mock`, `mock_mcp_client` is the same client, through the real protocol, in
//!   front of tools in this process that fail when told to.
//! - With the feature `gateway`, `Gateway` offers what an engine offers to any MCP client.

mod client;
mod connection;
mod envelope;
#[cfg(feature = "gateway")]
mod gateway;
mod line_buffer;
#[cfg(feature = "mock")]
mod mock;
mod reserved;
pub mod server;
#[cfg(any(feature = "gateway", feature = "mock"))]
mod wire;

#[cfg(feature = "gateway")]
pub use self::gateway::{
    Access, AccessEntry, Gateway, GatewayBuilder, GatewayError, HttpAccess, ListedTool,
    MAX_SESSIONS,
};

pub use self::client::{
    InvalidServerName, McpClient, McpClientBuilder, McpError, ServerName, ServerState,
    ServerStatus, StateChange, UnmatchedPattern, mcp_client,
};
#[cfg(feature = "mock")]
pub use self::mock::{MockMcpBuilder, MockServer, mock_mcp_client};
