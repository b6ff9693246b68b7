//! `toolcrib mcp`: the MCP servers of a project, one by one.

mod login;

use std::{
    fs::{self, File},
    io::{self, Read as _},
    os::unix::fs::MetadataExt as _,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use toolcrib_core::{CancellationToken, Identity};
use toolcrib_engine::{Engine, TurnOptions};
use toolcrib_mcp::McpClient;
use toolcrib_project::{McpServer, Project};

use super::{
    ChosenModel, Problem, Purpose, call, catalog::identity, editor::refuse_json, mcp_entry,
    with_project,
};
use crate::{
    args::{CallArgs, GlobalArgs, IdentityArgs, McpCommand, OfflineArgs},
    exit::{self, Exit},
    output::{self, QueriedServer, ServerJson, ServerOffer, ServersJson},
};

pub(super) async fn mcp(
    global: &GlobalArgs,
    command: McpCommand,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    match command {
        McpCommand::List(look) => list(global, look, cancellation).await,
        McpCommand::Test { server, whom } => test(global, &server, &whom, cancellation).await,
        McpCommand::Add(args) => mcp_entry::add(global, args, cancellation).await,
        McpCommand::Remove { server } => mcp_entry::remove(global, &server, cancellation).await,
        McpCommand::Get { server } => mcp_entry::get(global, &server, cancellation).await,
        McpCommand::Logs { server, follow, lines, .. } => {
            logs(global, &server, lines, follow, cancellation).await
        }
        McpCommand::Call { server, call } => call_tool(global, &server, call, cancellation).await,
        McpCommand::Login { server, no_browser, scopes, whom } => {
            let args = login::LoginArgs { server, no_browser, scopes, whom };
            login::login(global, args, cancellation).await
        }
        McpCommand::Logout { server, whom } => {
            login::logout(global, &server, &whom, cancellation).await
        }
        McpCommand::Status { server, whom } => {
            login::status(global, server.as_deref(), &whom, cancellation).await
        }
    }
}

async fn list(
    global: &GlobalArgs,
    look: OfflineArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let purpose = Purpose::Look(look);
    with_project(global, purpose, ChosenModel::default(), &cancellation, async |project| {
        let asked = unless_cancelled(ask_all(project, &anonymous()), &cancellation).await?;
        let redactor = project.redactor();
        if global.json {
            output::json(&ServersJson::new(&asked, project, &redactor));
        } else {
            output::servers(&asked, &redactor);
        }
        let is_refused = global.locked && asked.iter().any(|asked| asked.listed.is_err());
        Ok(if is_refused { exit::FAILED } else { exit::FINE })
    })
    .await
}

async fn test(
    global: &GlobalArgs,
    name: &str,
    whom: &IdentityArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    with_project(global, Purpose::Ask, ChosenModel::default(), &cancellation, async |project| {
        let identity = identity(whom);
        let asked =
            unless_cancelled(ask(project, find(project, name)?, &identity), &cancellation).await?;
        let redactor = project.redactor();
        if global.json {
            output::json(&ServerJson::with_tools(&asked, project, &redactor));
        } else {
            output::server(&asked, &redactor, global.verbose);
        }
        Ok(if asked.listed.is_ok() { exit::FINE } else { exit::FAILED })
    })
    .await
}

async fn logs(
    global: &GlobalArgs,
    name: &str,
    lines: usize,
    follow: bool,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    refuse_json(global, "mcp logs")?;
    let purpose = Purpose::Look(OfflineArgs { offline: true });
    with_project(global, purpose, ChosenModel::default(), &cancellation, async |project| {
        let path = project.server_log(find(project, name)?);
        let mut log = LogFile::open(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Problem::failed(
                "no_log",
                format!(
                    "there is no log of `{name}`: {} is written while `run`, `chat`, `call` or \
                     `serve` use it, and only for a server that is a program",
                    path.display()
                ),
            ),
            _ => Problem::failed("no_log", format!("{}: {error}", path.display())),
        })?;
        let text = log.more().map_err(|error| Problem::failed("no_log", error.to_string()))?;
        let from = text.lines().count().saturating_sub(lines);
        text.lines().skip(from).for_each(output::log_line);
        while follow && !cancellation.is_cancelled() {
            tokio::select! {
                () = tokio::time::sleep(FOLLOWED_EVERY) => {}
                () = cancellation.cancelled() => break,
            }
            // The file is replaced once it is large; its last lines come first.
            log.more().unwrap_or_default().lines().for_each(output::log_line);
            if log.is_replaced(&path)
                && let Ok(next) = LogFile::open(&path)
            {
                log = next;
            }
        }
        Ok(exit::FINE)
    })
    .await
}

/// The interval between two looks at a log.
const FOLLOWED_EVERY: Duration = Duration::from_millis(300);

/// A log that another process writes.
struct LogFile(File);

impl LogFile {
    fn open(path: &Path) -> io::Result<Self> {
        File::open(path).map(Self)
    }

    /// The lines since the last read.
    fn more(&mut self) -> io::Result<String> {
        let mut bytes = Vec::new();
        self.0.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn is_replaced(&self, path: &Path) -> bool {
        let inode = |found: io::Result<fs::Metadata>| found.ok().map(|found| found.ino());
        inode(fs::metadata(path)) != inode(self.0.metadata())
    }
}

async fn call_tool(
    global: &GlobalArgs,
    server: &str,
    args: CallArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    call::through_pipe(global, args, cancellation, |project, args| {
        let tool = find(project, server)?.name().tool_name(&args.tool);
        Ok(CallArgs { tool, ..args })
    })
    .await
}

pub(super) fn find<'a>(project: &'a Project, name: &str) -> Result<&'a McpServer, Problem> {
    let servers = project.mcp_servers();
    servers.iter().find(|server| server.name().as_str() == name).ok_or_else(|| {
        let names = servers.iter().map(|server| server.name().as_str());
        Problem::unknown("MCP server", name, names)
    })
}

/// The identity for servers if none is named.
fn anonymous() -> Identity {
    Identity::conversation("servers")
}

/// Queries all servers concurrently, each in the session of this identity.
pub(super) async fn ask_all<'a>(
    project: &'a Project,
    identity: &Identity,
) -> Vec<QueriedServer<'a>> {
    join_all(project.mcp_servers().iter().map(|server| ask(project, server, identity))).await
}

async fn ask<'a>(
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
