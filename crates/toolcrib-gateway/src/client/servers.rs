//! The MCP servers of a request, for what they offer beside tools: each in the session of the caller,
//! if its personality and policy reach the server at all.

use std::sync::Arc;

use rmcp::ErrorData;
use toolcrib_core::Identity;
use toolcrib_engine::{Iteration, TurnError};
use toolcrib_mcp::McpClient;

use super::{
    judged::{JudgedOnly, RESOURCES, tool},
    request::RequestContext,
    session::Purpose,
    step::{Step, refusal},
};

/// A server in the caller's session.
pub(crate) struct Server {
    /// The operator's name.
    pub(crate) name: Arc<str>,
    pub(crate) client: McpClient,
}

/// The servers that a request may reach, in configured order, and the iteration that decides on it.
pub(crate) struct Servers {
    pub(crate) step: Step,
    pub(crate) all: Vec<Server>,
}

impl Servers {
    pub(crate) fn by_name(&self, name: &str) -> Option<&Server> {
        self.all.iter().find(|server| *server.name == *name)
    }
}

impl RequestContext<'_> {
    /// The servers that the request may reach.
    pub(crate) async fn servers(&self) -> Result<Servers, ErrorData> {
        let step = tokio::select! {
            biased;
            () = self.no_longer_needed() => Err(TurnError::Cancelled),
            // No source is needed.
            step = self.step(Purpose::Call("")) => step,
        };
        let step = step.map_err(|error| refusal(&error))?;
        let all = reached(&step.iteration, &step.identity, &self.serving.gateway.config.servers);
        Ok(Servers { step, all })
    }
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
