//! MCP servers as providers of tools, and with the feature `gateway`, an engine as an MCP server.

#[cfg(feature = "gateway")]
pub use toolcrib_gateway::*;
pub use toolcrib_mcp::*;
