//! `toolcrib mcp`: the MCP servers of a project, one by one.

mod login;

use std::{
    fs::{self, File},
    io::{self, Read as _},
    os::unix::fs::MetadataExt as _,
    path::Path,
    time::Duration,
};

use toolcrib_core::CancellationToken;

use super::{call, generate::refuse_json, mcp_entry};
use crate::{
    args::{CallArgs, GlobalArgs, IdentityArgs, McpCommand, OfflineArgs},
    exit::{self, Exit},
    host::{
        catalog::identity,
        servers::{anonymous, ask, ask_all, find},
    },
    output::{self, ServerJson, ServersJson},
    problem::Problem,
    project::load::{ChosenModel, Purpose, unless_cancelled, with_project},
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
        let server = find(project, server)?;
        // The client knows which tools have another name here.
        let tool = match server.client() {
            Ok(client) => client.tool_name(&args.tool),
            Err(_) => server.name().tool_name(&args.tool),
        };
        Ok(CallArgs { tool, ..args })
    })
    .await
}
