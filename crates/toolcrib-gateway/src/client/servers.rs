//! The MCP servers that an iteration reaches: each in the session of the caller, if its personality and
//! policy reach the server at all.

use std::sync::Arc;

use toolcrib_core::Identity;
use toolcrib_engine::Iteration;
use toolcrib_mcp::McpClient;

use super::judged::{JudgedOnly, RESOURCES, tool};

/// A server in the caller's session.
pub(crate) struct Server {
    /// The operator's name.
    pub(crate) name: Arc<str>,
    pub(crate) client: McpClient,
}

/// The servers that an iteration reaches.
pub(crate) fn reached(
    iteration: &Iteration,
    identity: &Identity,
    servers: &[McpClient],
) -> Vec<Server> {
    let server = |client: &McpClient| {
        let name = client.name().as_str();
        let asks = tool(name, "resources", RESOURCES, JudgedOnly)?;
        // Rules may permit some resources, or prompts: only the personality decides here.
        iteration.reaches(&asks).then(|| Server {
            name: name.into(),
            client: client.for_client(identity, iteration.client_abilities(name)),
        })
    };
    servers.iter().filter_map(server).collect()
}
