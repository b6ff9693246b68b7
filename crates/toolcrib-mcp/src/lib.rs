//! ```
//! use toolcrib_core::ToolProvider;
//! use toolcrib_mcp::{mcp_client, server::{Http, Stdio}};
//!
//! let git = mcp_client("git", Stdio::new("uvx").arg("mcp-server-git")).include(["git_*"]).build()?;
//! let docs = mcp_client("docs", Http::new("https://docs.example/mcp")).build()?;
//! let providers: [&dyn ToolProvider; 2] = [&git, &docs];
//! # Ok::<(), toolcrib_mcp::McpError>(())
//! ```
//!
//! MCP servers as providers of tools. For the opposite direction, see the crate `toolcrib-gateway`.
//!
//! - [`mcp_client`] starts a [`McpClient`] of one server, by stdio or Streamable HTTP: a
//!   [`ToolProvider`](toolcrib_core::ToolProvider) that an engine lists once per iteration.
//! - [`oauth`] gets tokens for HTTP servers that require authorization.
//! - [`server`] contains the declarations of a server, in code or in an `mcpServers` file.
//! - With the feature `mock`, `mock_mcp_client` is the same client, through the real protocol, for
//!   a server in this process that fails on demand.
//!
//! # Layers
//!
//! - `mock`: a server in this process that fails on demand.
//! - `client`: one server as a tool provider.
//! - `wire`: tools, parts of results, and what servers offer beside tools, in the protocol's format.
//! - `connection`: the protocol of a client, over a program's pipes, HTTP, or a pipe in memory.
//! - `server`: declarations of a server.
//! - `reserved`: messages that `serde_json` would expand.
//! - `oauth`: OAuth as a client.
//! - `envelope`: the common fields of all messages.

mod client;
mod connection;
mod envelope;
#[cfg(feature = "mock")]
mod mock;
pub mod oauth;
mod reserved;
pub mod server;
mod wire;

#[doc(hidden)]
pub mod __internal {
    //! Pieces that the gateway and the command line share with the client.

    pub use crate::{
        client::{
            AssetKind, MOST_SKILL_BYTES, MOST_SKILL_DESCRIPTION, MOST_SKILL_FILES, McpRequest,
            Notices, ServerOffers, Subscribed, is_skill_name,
        },
        connection::{WireEvent, types::ServerNotice},
        server::file::with_digest,
        wire::{
            abilities, block, content_block, contents, harmless_json, is_permitted_name,
            protocol_error, resource_block, tool, unfitted_name,
        },
    };
}

pub use self::client::{
    Handshake, InvalidServerNameError, McpClient, McpClientBuilder, McpError, ServerName,
    ServerState, ServerStatus, SessionScope, StateChange, UnmatchedPattern, mcp_client,
};
#[cfg(feature = "mock")]
pub use self::{
    client::pipe_mcp_client,
    mock::{MockMcpBuilder, MockServer, mock_mcp_client},
};
