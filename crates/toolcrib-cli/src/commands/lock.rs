//! `toolcrib lock`: the pinned definitions of servers and hubs.

use toolcrib_config::suggest;
use toolcrib_core::{CancellationToken, Identity};
use toolcrib_mcp::{__internal::AssetKind, McpClient};
use toolcrib_project::{DeclaredHub, LockError, PinChange, Project};

use crate::{
    args::{AcceptArgs, GlobalArgs, LockCommand, LockScope},
    exit::{self, Exit},
    output::{self, LockJson},
    problem::Problem,
    project::{
        consent::{can_ask, confirmed},
        load::{ChosenModel, Purpose, unless_cancelled, with_project},
        turn::{engine, project_flags},
    },
};

pub(super) async fn lock(
    global: &GlobalArgs,
    command: LockCommand,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let (scope, accepts, yes) = match command {
        LockCommand::Diff(scope) => (scope, false, false),
        LockCommand::Accept(AcceptArgs { scope, yes }) => (scope, true, yes),
    };
    let model = ChosenModel::default();
    with_project(global, Purpose::Review, model, &cancellation, async |project| {
        check_scope(project, &scope)?;
        let unreachable = unless_cancelled(list(project, &scope), &cancellation).await??;
        let lock = project.lock();
        let changes: Vec<_> =
            lock.changes().into_iter().filter(|change| scope.contains(change)).collect();
        if let (true, Some(tool)) = (changes.is_empty() && unreachable.is_empty(), &scope.tool)
            && accepts
        {
            let message = format!(
                "{} is pinned as it is listed now, or is not listed",
                suggest::quoted([tool.as_str()])
            );
            return Err(Problem::usage(message));
        }
        let asks = accepts && !changes.is_empty() && !yes && !global.json && can_ask();
        if asks {
            output::lock_changes(&changes, false, None);
            if !confirmed("Accept as listed?", &cancellation).await? {
                let message = "not accepted; a changed definition stays withheld";
                return Err(Problem::failed("not_accepted", message));
            }
        }
        if accepts && !changes.is_empty() {
            lock.accept(&changes)?;
        }
        if global.json {
            output::json(&LockJson {
                changes: &changes,
                accepted: accepts,
                unreachable: &unreachable,
            });
        } else {
            match asks {
                true => output::accepted(changes.len()),
                false => {
                    let flags = (!global.quiet).then(|| project_flags(global));
                    output::lock_changes(&changes, accepts, flags.as_deref());
                }
            }
            unreachable.iter().for_each(|problem| output::complain(problem));
            if accepts && !global.quiet && !changes.is_empty() {
                output::advisory(project.approvals().advisory());
            }
        }
        let is_fine = unreachable.is_empty() && (accepts || changes.is_empty());
        Ok(if is_fine { exit::FINE } else { exit::FAILED })
    })
    .await
}

impl LockScope {
    fn contains(&self, change: &PinChange) -> bool {
        let source = change.place.source.split_once(':').map(|(_, name)| name);
        self.server.as_deref().is_none_or(|server| source == Some(server))
            && self.tool.as_deref().is_none_or(|tool| *change.place.name == *tool)
    }

    fn has(&self, server: &str) -> bool {
        self.server.as_deref().is_none_or(|wanted| wanted == server)
    }
}

fn check_scope(project: &Project, scope: &LockScope) -> Result<(), Problem> {
    let servers = project.mcp_servers().iter().map(|server| server.name().as_str());
    // The definitions of documents were compared when the project was loaded.
    let compared = project.lock().sources();
    let documents = compared.iter().filter_map(|source| source.strip_prefix("openapi:"));
    let names: Vec<_> =
        servers.chain(project.hubs().iter().map(DeclaredHub::name)).chain(documents).collect();
    match &scope.server {
        Some(server) if !names.contains(&&**server) => {
            let help = suggest::help(server, "servers, hubs and documents", names);
            let message = format!("unknown server {}; {help}", suggest::quoted([server.as_str()]));
            Err(Problem::usage(message))
        }
        _ => Ok(()),
    }
}

/// Lists everything that is pinned; returns the errors of sources that cannot be listed.
async fn list(project: &Project, scope: &LockScope) -> Result<Vec<String>, Problem> {
    let mut problems = Vec::new();
    for server in project.mcp_servers().iter().filter(|server| scope.has(server.name().as_str())) {
        match server.client() {
            Ok(client) => problems.extend(list_server(client).await.err()),
            Err(reason) => {
                problems.push(format!("MCP server `{}` cannot be used: {reason}", server.name()));
            }
        }
    }
    if project.hubs().iter().any(|hub| scope.has(hub.name())) {
        let mut turn = engine(project)?
            .turn(toolcrib_engine::TurnOptions::default())
            .map_err(|error| Problem::failed("hub_unavailable", error.to_string()))?;
        let iteration = turn.iteration().await;
        problems.extend(iteration.err().map(|error| error.to_string()));
    }
    Ok(problems)
}

async fn list_server(client: &McpClient) -> Result<(), String> {
    let client = client.on_behalf_of(&Identity::conversation("lock"));
    client.refresh().await.map_err(|error| error.to_string())?;
    let offers = client.offers().await.map_err(|error| error.to_string())?;
    if offers.capabilities.prompts.is_some() {
        client.assets(AssetKind::Prompts).await.map_err(|error| error.message)?;
    }
    Ok(())
}

impl From<LockError> for Problem {
    fn from(error: LockError) -> Self {
        Self::failed("lock_unavailable", error.to_string())
    }
}
