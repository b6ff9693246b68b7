//! The agent of a project, with the model that a command uses.

use std::sync::Arc;

use toolcrib_agent::Agent;
use toolcrib_core::{Model, Tool};
use toolcrib_engine::DEFAULT_PERSONALITY;
use toolcrib_mcp::ServerState;
use toolcrib_project::Project;

use super::{
    candidate::{first_configured, of_server},
    catalog::identity,
};
use crate::{args::Situation, output, problem::Problem};

/// The tools of the connected MCP servers.
pub(crate) async fn remote_tools(project: &Project, situation: &Situation) -> Vec<Tool> {
    let mut tools = Vec::new();
    let identity = identity(&situation.whom);
    for client in project.mcp_servers().iter().filter_map(|server| server.client().ok()) {
        let client = client.on_behalf_of(&identity);
        // A stopped server is not started again for a summary.
        if client.status().state == ServerState::Ready {
            tools.extend(client.tools().await.unwrap_or_default());
        }
    }
    tools
}

/// The own model of the current personality, if any.
pub(crate) fn own_model<'a>(
    project: &'a Project,
    situation: &Situation,
) -> Option<&'a Arc<dyn Model>> {
    project.personality_model(situation.personality.as_deref().unwrap_or(DEFAULT_PERSONALITY))
}

/// The project's agent; if no model is named, on the first configured one.
pub(crate) async fn agent(
    project: &Project,
    situation: &Situation,
    tells: bool,
) -> Result<Agent, Problem> {
    let mut builder = project.agent_builder();
    if let Some(own) = own_model(project, situation) {
        if project.model().is_none() {
            builder = builder.model(Arc::clone(own));
        }
    } else if let Some(served) = of_server(project).await? {
        builder = builder.model(project.prices().of(served.model));
    } else if project.model().is_none() {
        let first = first_configured(project).await?;
        if tells && !first.is_users {
            output::chosen_model(first.model.name(), &first.origin);
        }
        builder = builder.model(project.prices().of(first.model));
    }
    builder.build().map_err(|error| Problem::usage(error.to_string()))
}
