//! The MCP servers of a project, and their lists.

use std::{sync::Arc, time::Instant};

use futures_util::future::join_all;
use toolcrib_core::Identity;
use toolcrib_engine::{Engine, TurnOptions};
use toolcrib_mcp::McpClient;
use toolcrib_project::{McpServer, Project};

use crate::{
    output::{QueriedServer, ServerOffer},
    problem::Problem,
};

pub(crate) fn find<'a>(project: &'a Project, name: &str) -> Result<&'a McpServer, Problem> {
    let servers = project.mcp_servers();
    servers.iter().find(|server| server.name().as_str() == name).ok_or_else(|| {
        let names = servers.iter().map(|server| server.name().as_str());
        Problem::unknown("MCP server", name, names)
    })
}

/// The identity for servers if none is named.
pub(crate) fn anonymous() -> Identity {
    Identity::conversation("servers")
}

/// Queries all servers concurrently, each in the session of this identity.
pub(crate) async fn ask_all<'a>(
    project: &'a Project,
    identity: &Identity,
) -> Vec<QueriedServer<'a>> {
    join_all(project.mcp_servers().iter().map(|server| ask(project, server, identity))).await
}

pub(crate) async fn ask<'a>(
    project: &Project,
    server: &'a McpServer,
    identity: &Identity,
) -> QueriedServer<'a> {
    let begun = Instant::now();
    let client = server.client().map(|client| client.on_behalf_of(identity));
    let listed = match &client {
        Ok(client) => offer(project, client, identity).await,
        Err(reason) => Err((*reason).to_owned()),
    };
    let took = begun.elapsed();
    let unmatched = client.as_ref().map(McpClient::unmatched_patterns).unwrap_or_default();
    let status = client.ok().map(|client| client.status());
    QueriedServer { server, status, listed, unmatched, took }
}

/// Only an engine checks whether a schema can be enforced; the client does not.
async fn offer(
    project: &Project,
    client: &McpClient,
    identity: &Identity,
) -> Result<ServerOffer, String> {
    // The client reports the best error for a missing list; it is not queried twice.
    client.catalog().await.map_err(|error| error.to_string())?;
    let engine =
        Engine::builder().redactor(project.redactor()).provider(Arc::new(client.clone())).build();
    let mut options = TurnOptions::default();
    options.tenant.clone_from(&identity.tenant);
    options.principal.clone_from(&identity.principal);
    let mut turn = engine
        .map_err(|error| error.to_string())?
        .turn(options)
        .map_err(|error| error.to_string())?;
    let iteration = turn.iteration().await.map_err(|error| error.to_string())?;
    Ok(ServerOffer {
        offered: iteration.menu().tools().to_vec(),
        withheld: iteration.withheld().tools().collect(),
    })
}
