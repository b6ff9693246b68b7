//! MCP servers and their tools.

use std::time::Duration;

use serde::Serialize;
use toolcrib_capabilities::process::SandboxTier;
use toolcrib_core::{__internal::millis, Tool, WithheldTool};
use toolcrib_engine::{OnFailure, Redactor};
use toolcrib_mcp::{ServerStatus, UnmatchedPattern};
use toolcrib_project::{Diagnostic, McpServer, Project};

use super::{
    print::{note, say},
    text::{BAD, DIM, GOOD, STRONG, WARN, count, duration, safe},
};

/// Prints a line of a server's log.
pub(crate) fn log_line(line: &str) {
    say!("{}", safe(line));
}

/// The result of querying a server for its tools.
pub(crate) struct QueriedServer<'a> {
    pub(crate) server: &'a McpServer,
    /// The client's state at that time; `None` without a client.
    pub(crate) status: Option<ServerStatus>,
    /// The tools that it lists, else the error.
    pub(crate) listed: Result<ServerOffer, String>,
    /// Patterns of the project that match none of its tools.
    pub(crate) unmatched: Vec<UnmatchedPattern>,
    pub(crate) took: Duration,
}

/// The tools of a server as an engine without restrictions offers them.
pub(crate) struct ServerOffer {
    pub(crate) offered: Vec<Tool>,
    pub(crate) withheld: Vec<WithheldTool>,
}

/// Names the servers that have not responded yet.
pub(crate) fn waiting_for<'a>(servers: impl Iterator<Item = &'a str>) {
    let names: Vec<_> = servers.map(safe).collect();
    note!(
        "{DIM}waiting for MCP {}: {}{DIM:#}",
        if names.len() == 1 { "server" } else { "servers" },
        names.join(", ")
    );
}

/// Prints all servers.
pub(crate) fn servers(asked: &[QueriedServer<'_>], redactor: &Redactor) {
    if asked.is_empty() {
        say!("there are no MCP servers; declare one as [mcp.NAME], or name a file with `--import`");
    }
    for one in asked {
        head(one, redactor);
    }
}

/// Prints one server with its tools.
pub(crate) fn server(asked: &QueriedServer<'_>, redactor: &Redactor, verbose: bool) {
    head(asked, redactor);
    let Ok(offer) = &asked.listed else { return };
    for tool in &offer.offered {
        let description = super::tools::description(tool, verbose);
        say!("  {GOOD}{}{GOOD:#}  {DIM}{description}{DIM:#}", tool.name());
    }
    for held in &offer.withheld {
        let (name, reason) = (safe(&held.name), safe(&held.reason));
        say!("  {WARN}{name}{WARN:#}  {DIM}withheld:{DIM:#} {reason}");
    }
}

fn head(asked: &QueriedServer<'_>, redactor: &Redactor) {
    let shown = |text: &str| safe(&redactor.text(text));
    let server = asked.server;
    let (mark, style) = if asked.listed.is_ok() { ("✓", GOOD) } else { ("✗", BAD) };
    let target = asked.status.as_ref().map(|status| format!(" {}", shown(&status.target)));
    say!(
        "{style}{mark}{style:#} {STRONG}{}{STRONG:#}{} {DIM}({}{}{}){DIM:#}",
        server.name(),
        target.unwrap_or_default(),
        safe(server.origin()),
        if server.is_trusted() { ", trusted" } else { "" },
        server.sandbox().map(|tier| format!(", sandbox {tier}")).unwrap_or_default()
    );
    match &asked.listed {
        Ok(offer) => {
            let status = asked.status.as_ref();
            let is = status.and_then(|status| {
                let named = [
                    status.server.as_deref()?,
                    status.server_version.as_deref().unwrap_or_default(),
                ];
                let protocol = status.protocol.as_deref().unwrap_or_default();
                Some(format!("{}, MCP {protocol}, ", named.join(" ").trim_end()))
            });
            say!(
                "  {}{}, {} withheld, {} characters for the model, {}",
                safe(&is.unwrap_or_default()),
                count(offer.offered.len(), "tool"),
                offer.withheld.len(),
                chars(offer),
                duration(asked.took)
            );
        }
        Err(reason) => say!("  {}", shown(reason)),
    }
    slips(server, &asked.unmatched);
    deviation(server, asked.status.as_ref());
}

/// Says how the list of a queried server deviates from the protocol.
pub(super) fn deviation(server: &McpServer, status: Option<&ServerStatus>) {
    if let Some(warning) = status.and_then(|status| status.list_warning) {
        note!("{WARN}warning{WARN:#}: MCP server {}: {warning}", server.name());
    }
}

/// Names the patterns that match no tool of a queried server.
pub(super) fn slips(server: &McpServer, unmatched: &[UnmatchedPattern]) {
    for pattern in unmatched {
        let pattern = safe(&pattern.to_string());
        note!("{WARN}warning{WARN:#}: MCP server {}: {pattern}", server.name());
    }
}

/// The same for all servers of a project.
pub(crate) fn unmatched(project: &Project) {
    for server in project.mcp_servers() {
        if let Ok(client) = server.client() {
            slips(server, &client.unmatched_patterns());
        }
    }
}

fn chars(offer: &ServerOffer) -> usize {
    offer.offered.iter().map(of_model).sum()
}

fn of_model(tool: &Tool) -> usize {
    tool.rendering().chars().count()
}

/// All servers.
#[derive(Serialize)]
pub(crate) struct ServersJson<'a> {
    servers: Vec<ServerJson<'a>>,
    /// Probable mistakes in the project's files and in imported ones.
    warnings: Vec<&'a Diagnostic>,
}

impl<'a> ServersJson<'a> {
    pub(crate) fn new(
        asked: &'a [QueriedServer<'a>],
        project: &'a Project,
        redactor: &Redactor,
    ) -> Self {
        let servers = asked.iter().map(|one| ServerJson::new(one, redactor)).collect();
        Self { servers, warnings: project.warnings().warnings().collect() }
    }
}

/// A server and its tools.
#[derive(Serialize)]
pub(crate) struct ServerJson<'a> {
    name: &'a str,
    origin: &'a str,
    target: Option<String>,
    trusted: bool,
    /// The sandbox of its program; null for a server at a URL.
    sandbox: Option<&'static str>,
    on_failure: OnFailure,
    ok: bool,
    error: Option<String>,
    state: Option<&'a str>,
    server: Option<&'a str>,
    server_version: Option<&'a str>,
    protocol: Option<&'a str>,
    tool_count: Option<usize>,
    withheld_count: Option<usize>,
    chars: Option<usize>,
    unmatched: &'a [UnmatchedPattern],
    #[serde(skip_serializing_if = "Option::is_none")]
    list_warning: Option<&'a str>,
    duration_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<OfferedJson<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    withheld: Option<&'a [WithheldTool]>,
    /// The warnings; only if one server is queried.
    #[serde(skip_serializing_if = "Option::is_none")]
    warnings: Option<Vec<&'a Diagnostic>>,
}

#[derive(Serialize)]
struct OfferedJson<'a> {
    name: &'a str,
    description: &'a str,
    chars: usize,
}

impl<'a> ServerJson<'a> {
    fn new(asked: &'a QueriedServer<'a>, redactor: &Redactor) -> Self {
        let server = asked.server;
        let status = asked.status.as_ref();
        let offer = asked.listed.as_ref().ok();
        let hidden = |text: &str| redactor.text(text).into_owned();
        Self {
            name: server.name().as_str(),
            origin: server.origin(),
            target: status.map(|status| hidden(&status.target)),
            trusted: server.is_trusted(),
            sandbox: server.sandbox().map(SandboxTier::as_str),
            on_failure: server.on_failure(),
            ok: offer.is_some(),
            error: asked.listed.as_ref().err().map(|error| hidden(error)),
            state: status.map(|status| status.state.as_str()),
            server: status.and_then(|status| status.server.as_deref()),
            server_version: status.and_then(|status| status.server_version.as_deref()),
            protocol: status.and_then(|status| status.protocol.as_deref()),
            tool_count: offer.map(|offer| offer.offered.len()),
            withheld_count: offer.map(|offer| offer.withheld.len()),
            chars: offer.map(chars),
            unmatched: &asked.unmatched,
            list_warning: status.and_then(|status| status.list_warning),
            duration_ms: millis(asked.took),
            tools: None,
            withheld: None,
            warnings: None,
        }
    }

    /// With each tool that is offered or withheld.
    pub(crate) fn with_tools(
        asked: &'a QueriedServer<'a>,
        project: &'a Project,
        redactor: &Redactor,
    ) -> Self {
        let offer = asked.listed.as_ref().ok();
        let offered = |tool: &'a Tool| OfferedJson {
            name: tool.name().as_str(),
            description: tool.description(),
            chars: of_model(tool),
        };
        Self {
            tools: offer.map(|offer| offer.offered.iter().map(offered).collect()),
            withheld: offer.map(|offer| &*offer.withheld),
            warnings: Some(project.warnings().warnings().collect()),
            ..Self::new(asked, redactor)
        }
    }
}
