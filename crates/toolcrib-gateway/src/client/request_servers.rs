//! The MCP servers of a request, for what they offer beside tools.

use rmcp::ErrorData;
use toolcrib_engine::TurnError;

use super::{
    request::RequestContext,
    servers::{Server, reached},
    session::Purpose,
    step::{Step, refusal},
};

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
