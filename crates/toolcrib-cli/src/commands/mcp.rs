//! `toolcrib mcp`: the MCP servers of a project, one by one.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use toolcrib_config::suggest;
use toolcrib_core::{CancellationToken, Identity, Tool};
use toolcrib_engine::{Engine, TurnOptions, WithheldTool};
use toolcrib_mcp::{McpClient, ServerStatus, UnmatchedPattern};
use toolcrib_project::{McpServer, Project};

use super::{ChosenModel, Problem, Purpose, call, call_arguments, with_project};
use crate::{
    args::{CallArgs, Global, Look, McpCommand},
    exit::{self, Exit},
    output::{self, ServerJson, ServersJson},
};

/// What came of asking a server for its tools.
pub(crate) struct Asked<'a> {
    pub(crate) server: &'a McpServer,
    /// Where its client stood then; `None` where there is no client.
    pub(crate) status: Option<ServerStatus>,
    /// What it lists, else why it does not.
    pub(crate) listed: Result<Offer, String>,
    /// What chooses none of what it lists.
    pub(crate) unmatched: Vec<UnmatchedPattern>,
    pub(crate) took: Duration,
}

/// What a server lists, as an engine takes it that nothing forbids anything.
pub(crate) struct Offer {
    pub(crate) offered: Vec<Tool>,
    pub(crate) held_back: Vec<WithheldTool>,
}

pub(super) async fn mcp(
    global: &Global,
    command: McpCommand,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    match command {
        McpCommand::List(look) => list(global, look, cancellation).await,
        McpCommand::Test { server } => test(global, &server, cancellation).await,
        McpCommand::Call { server, call } => call_tool(global, &server, call, cancellation).await,
    }
}

async fn list(
    global: &Global,
    look: Look,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let purpose = Purpose::Look(look);
    with_project(global, purpose, ChosenModel::default(), &cancellation, async |project| {
        let asked = unless_cancelled(ask_all(project, &nobody()), &cancellation).await?;
        let redactor = project.redactor();
        if global.json {
            output::json(&ServersJson::new(&asked, &redactor));
        } else {
            output::servers(&asked, &redactor);
        }
        Ok(exit::FINE)
    })
    .await
}

async fn test(
    global: &Global,
    name: &str,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    with_project(global, Purpose::Ask, ChosenModel::default(), &cancellation, async |project| {
        let asked = unless_cancelled(ask(find(project, name)?, &nobody()), &cancellation).await?;
        let redactor = project.redactor();
        if global.json {
            output::json(&ServerJson::with_tools(&asked, &redactor));
        } else {
            output::server(&asked, &redactor);
        }
        Ok(if asked.listed.is_ok() { exit::FINE } else { exit::FAILED })
    })
    .await
}

async fn call_tool(
    global: &Global,
    server: &str,
    args: CallArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let given = call_arguments::read(&args.arguments, &cancellation).await?;
    let purpose = Purpose::Run(args.fresh);
    let token = cancellation.clone();
    with_project(global, purpose, ChosenModel::default(), &token, async |project| {
        let server = find(project, server)?;
        let tool = server.name().tool_name(&args.tool);
        call::make(global, CallArgs { tool, ..args }, given, project, cancellation).await
    })
    .await
}

fn find<'a>(project: &'a Project, name: &str) -> Result<&'a McpServer, Problem> {
    let servers = project.mcp_servers();
    servers.iter().find(|server| server.name().as_str() == name).ok_or_else(|| {
        let names = servers.iter().map(|server| server.name().as_str());
        let help = suggest::help(name, "MCP servers", names);
        Problem::usage(format!("there is no MCP server {}; {help}", suggest::quoted([name])))
    })
}

/// Whom servers are asked for where nobody is named.
fn nobody() -> Identity {
    Identity::conversation("servers")
}

/// Asks all servers at the same time, each in the session of this identity.
pub(super) async fn ask_all<'a>(project: &'a Project, identity: &Identity) -> Vec<Asked<'a>> {
    join_all(project.mcp_servers().iter().map(|server| ask(server, identity))).await
}

async fn ask<'a>(server: &'a McpServer, identity: &Identity) -> Asked<'a> {
    let begun = Instant::now();
    let client = server.client().map(|client| client.on_behalf_of(identity));
    let listed = match &client {
        Ok(client) => offer(client, identity).await,
        Err(reason) => Err((*reason).to_owned()),
    };
    let took = begun.elapsed();
    let unmatched = client.as_ref().map(McpClient::unmatched_patterns).unwrap_or_default();
    let status = client.ok().map(|client| client.status());
    Asked { server, status, listed, unmatched, took }
}

/// The client alone does not look whether a schema can be enforced; an engine does.
async fn offer(client: &McpClient, identity: &Identity) -> Result<Offer, String> {
    // It says best itself why there is no list, and is not asked twice for one.
    client.catalog().await.map_err(|error| error.to_string())?;
    let engine = Engine::builder().provider(Arc::new(client.clone())).build();
    let mut options = TurnOptions::default();
    options.tenant.clone_from(&identity.tenant);
    options.principal.clone_from(&identity.principal);
    let mut turn = engine
        .map_err(|error| error.to_string())?
        .turn(options)
        .map_err(|error| error.to_string())?;
    let iteration = turn.iteration().await.map_err(|error| error.to_string())?;
    Ok(Offer {
        offered: iteration.menu().tools().to_vec(),
        held_back: iteration.withheld().explain().collect(),
    })
}

pub(super) async fn unless_cancelled<T>(
    work: impl Future<Output = T>,
    cancellation: &CancellationToken,
) -> Result<T, Problem> {
    tokio::select! {
        biased;
        () = cancellation.cancelled() => Err(Problem::cancelled()),
        done = work => Ok(done),
    }
}
