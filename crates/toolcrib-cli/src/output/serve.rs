//! What `serve` says, all of it on standard error: standard output is the protocol's.

use std::{net::SocketAddr, path::Path};

use serde_json::json;
use toolcrib_engine::{Engine, Iteration, Redactor};
use toolcrib_mcp::{AccessEntry, ServerState, ServerStatus};
use toolcrib_project::Project;

use super::{
    note,
    text::{BAD, DIM, GOOD, STRONG, WARN, count, safe, shell_word, shown},
};
use crate::commands::Asked;

/// Where it is served over HTTP.
pub(crate) struct Served<'a> {
    pub(crate) address: SocketAddr,
    /// The file of the token, unless the project declares its own.
    pub(crate) token: Option<&'a Path>,
    /// Whether others than this machine can reach it.
    pub(crate) is_exposed: bool,
}

/// Says how an MCP client is told to start it, to whoever started it on a terminal.
pub(crate) fn how_to_start(project: &Project) {
    let args = ["serve".to_owned(), "-p".to_owned(), project.root().to_string_lossy().into_owned()];
    let entry = json!({ "mcpServers": { "toolcrib": { "command": "toolcrib", "args": args } } });
    note!("{DIM}serving on standard input and output; an MCP client starts it itself, by{DIM:#}");
    note!("  {}", safe(&entry.to_string()));
}

/// Says where it is served, and how it is reached.
pub(crate) fn at(served: &Served<'_>) {
    let Served { address, token, is_exposed } = served;
    note!("{GOOD}serving{GOOD:#} http://{address}/mcp {DIM}(with a skill: /mcp/skill/NAME){DIM:#}");
    match token {
        Some(path) => {
            let word = safe(&shell_word(path));
            note!("  {DIM}token{DIM:#} in {}, which only you can read", shown(path));
            note!(
                "  claude mcp add --transport http toolcrib http://{address}/mcp --header \
                 \"Authorization: Bearer $(cat {word})\""
            );
        }
        None => note!("  {DIM}tokens{DIM:#} are those of the project's [[serve.token]]"),
    }
    if *is_exposed {
        note!(
            "{WARN}warning{WARN:#}: others can reach {address}, and without TLS whoever is on the way \
             reads tokens and results; put a proxy with TLS before it, and name its host with \
             `--allow-host`"
        );
    }
}

/// Prints a token, because somebody asked for it.
pub(crate) fn token(token: &str) {
    note!("  token {}", safe(token));
}

/// Says what is offered to whom it is served for, and where the servers stand.
pub(crate) fn served(
    project: &Project,
    servers: &[Asked<'_>],
    iteration: Result<&Iteration, String>,
    engine: &Engine,
) {
    let hidden = |text: &str| safe(&engine.redactor().text(text));
    match iteration {
        Ok(iteration) => note!(
            "{STRONG}{}{STRONG:#}: {} offered, {} withheld {DIM}(`toolcrib menu --why` says why){DIM:#}",
            safe(project.name()),
            count(iteration.menu().len(), "tool"),
            iteration.withheld().len()
        ),
        Err(error) => note!("{BAD}nothing can be offered now{BAD:#}: {}", hidden(&error)),
    }
    for Asked { server, listed, .. } in servers {
        match listed {
            Ok(catalog) => {
                let tools = count(catalog.offered().len(), "tool");
                note!("  {GOOD}✓{GOOD:#} {} {DIM}{tools}{DIM:#}", server.name());
            }
            Err(reason) => note!("  {BAD}✗{BAD:#} {} {}", server.name(), hidden(reason)),
        }
    }
}

/// Says where a client stands with its server now.
pub(crate) fn server_state(status: &ServerStatus, redactor: &Redactor) {
    let error = status.last_error.as_deref().filter(|_| status.state != ServerState::Ready);
    let error = error.map(|error| format!(": {error}")).unwrap_or_default();
    note!("MCP server {}: {}{}", status.name, status.state, safe(&redactor.text(&error)));
}

/// One request, on a line of the access log that people read.
pub(crate) fn request(entry: &AccessEntry) {
    let code = entry.code.map_or("ok", |code| code.as_str());
    let who = entry.principal.as_deref().unwrap_or("-");
    let tool = entry.tool.as_deref().unwrap_or_default();
    let origin = entry.origin.as_deref().map(|origin| format!(" ({origin})"));
    let listed = entry.offered.map(|offered| {
        format!(" {offered} offered, {} withheld", entry.withheld.unwrap_or_default())
    });
    let status = entry.status.map(|status| format!(" {status}"));
    let error = entry.error.as_deref().map(|error| format!(": {error}"));
    note!(
        "{DIM}{who}{DIM:#} {}{} {}{}{} {code} {} ms{}",
        entry.method,
        status.unwrap_or_default(),
        safe(tool),
        safe(&origin.unwrap_or_default()),
        listed.unwrap_or_default(),
        entry.duration_ms,
        safe(&error.unwrap_or_default())
    );
}
