//! MCP servers, and what they list.

use serde::Serialize;
use toolcrib_core::Tool;
use toolcrib_engine::{OnFailure, Redactor, WithheldBy};

use toolcrib_mcp::UnmatchedPattern;
use toolcrib_project::{McpServer, Project};

use super::{
    json::whole_ms,
    note, say,
    text::{BAD, DIM, GOOD, STRONG, WARN, count, duration, one_line, safe},
};
use crate::commands::{Asked, Offer};

/// Says which servers have not answered yet.
pub(crate) fn waiting_for<'a>(servers: impl Iterator<Item = &'a str>) {
    let names: Vec<_> = servers.map(safe).collect();
    note!(
        "{DIM}waiting for MCP {}: {}{DIM:#}",
        if names.len() == 1 { "server" } else { "servers" },
        names.join(", ")
    );
}

/// Prints all servers.
pub(crate) fn servers(asked: &[Asked<'_>], redactor: &Redactor) {
    if asked.is_empty() {
        say!("there are no MCP servers; write a [mcp.NAME], or name a file with `--import`");
    }
    for one in asked {
        head(one, redactor);
    }
}

/// Prints one server with its tools.
pub(crate) fn server(asked: &Asked<'_>, redactor: &Redactor) {
    head(asked, redactor);
    let Ok(offer) = &asked.listed else { return };
    for tool in &offer.offered {
        let description = one_line(tool.description(), 72);
        say!("  {GOOD}{}{GOOD:#}  {DIM}{description}{DIM:#}", tool.name());
    }
    for held in &offer.held_back {
        let reason = safe(&redactor.text(&held.reason));
        say!("  {WARN}{}{WARN:#}  {DIM}held back:{DIM:#} {reason}", safe(&held.name));
    }
}

fn head(asked: &Asked<'_>, redactor: &Redactor) {
    let shown = |text: &str| safe(&redactor.text(text));
    let server = asked.server;
    let (mark, style) = if asked.listed.is_ok() { ("✓", GOOD) } else { ("✗", BAD) };
    let target = asked.status.as_ref().map(|status| format!(" {}", shown(&status.target)));
    say!(
        "{style}{mark}{style:#} {STRONG}{}{STRONG:#}{} {DIM}({}{}){DIM:#}",
        server.name(),
        target.unwrap_or_default(),
        safe(server.origin()),
        if server.is_trusted() { ", trusted" } else { "" }
    );
    match &asked.listed {
        Ok(offer) => {
            let status = asked.status.as_ref();
            let is = status.and_then(|status| {
                let version = status.server_version.as_deref().unwrap_or_default();
                let protocol = status.protocol.as_deref().unwrap_or_default();
                Some(format!("{} {version}, MCP {protocol}, ", status.server.as_deref()?))
            });
            say!(
                "  {}{}, {} held back, {} characters for the model, {}",
                safe(&is.unwrap_or_default()),
                count(offer.offered.len(), "tool"),
                offer.held_back.len(),
                chars(offer),
                duration(asked.took)
            );
        }
        Err(reason) => say!("  {}", shown(reason)),
    }
    slips(server, &asked.unmatched);
}

/// Says which patterns match no tool of a server that was asked.
pub(super) fn slips(server: &McpServer, unmatched: &[UnmatchedPattern]) {
    for pattern in unmatched {
        let pattern = safe(&pattern.to_string());
        note!("{WARN}warning{WARN:#}: MCP server {}: {pattern}", server.name());
    }
}

/// The same of all servers of a project.
pub(crate) fn unmatched(project: &Project) {
    for server in project.mcp_servers() {
        if let Ok(client) = server.client() {
            slips(server, &client.unmatched_patterns());
        }
    }
}

fn chars(offer: &Offer) -> usize {
    offer.offered.iter().map(of_model).sum()
}

fn of_model(tool: &Tool) -> usize {
    tool.rendering().chars().count()
}

/// All servers.
#[derive(Serialize)]
pub(crate) struct ServersJson<'a> {
    servers: Vec<ServerJson<'a>>,
}

impl<'a> ServersJson<'a> {
    pub(crate) fn new(asked: &'a [Asked<'a>], redactor: &Redactor) -> Self {
        Self { servers: asked.iter().map(|one| ServerJson::new(one, redactor)).collect() }
    }
}

/// A server, and what it lists.
#[derive(Serialize)]
pub(crate) struct ServerJson<'a> {
    name: &'a str,
    origin: &'a str,
    target: Option<String>,
    trusted: bool,
    on_failure: OnFailure,
    ok: bool,
    error: Option<String>,
    state: Option<&'a str>,
    server: Option<&'a str>,
    server_version: Option<&'a str>,
    protocol: Option<&'a str>,
    tool_count: Option<usize>,
    held_back_count: Option<usize>,
    chars: Option<usize>,
    unmatched: &'a [UnmatchedPattern],
    duration_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<OfferedJson<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    held_back: Option<Vec<HeldBackJson<'a>>>,
}

#[derive(Serialize)]
struct OfferedJson<'a> {
    name: &'a str,
    description: &'a str,
    chars: usize,
}

#[derive(Serialize)]
struct HeldBackJson<'a> {
    name: &'a str,
    by: WithheldBy,
    reason: String,
}

impl<'a> ServerJson<'a> {
    fn new(asked: &'a Asked<'a>, redactor: &Redactor) -> Self {
        let server = asked.server;
        let status = asked.status.as_ref();
        let offer = asked.listed.as_ref().ok();
        let hidden = |text: &str| redactor.text(text).into_owned();
        Self {
            name: server.name().as_str(),
            origin: server.origin(),
            target: status.map(|status| hidden(&status.target)),
            trusted: server.is_trusted(),
            on_failure: server.on_failure(),
            ok: offer.is_some(),
            error: asked.listed.as_ref().err().map(|error| hidden(error)),
            state: status.map(|status| status.state.as_str()),
            server: status.and_then(|status| status.server.as_deref()),
            server_version: status.and_then(|status| status.server_version.as_deref()),
            protocol: status.and_then(|status| status.protocol.as_deref()),
            tool_count: offer.map(|offer| offer.offered.len()),
            held_back_count: offer.map(|offer| offer.held_back.len()),
            chars: offer.map(chars),
            unmatched: &asked.unmatched,
            duration_ms: whole_ms(asked.took),
            tools: None,
            held_back: None,
        }
    }

    /// With each tool that is offered or held back.
    pub(crate) fn with_tools(asked: &'a Asked<'a>, redactor: &Redactor) -> Self {
        let offer = asked.listed.as_ref().ok();
        let offered = |tool: &'a Tool| OfferedJson {
            name: tool.name().as_str(),
            description: tool.description(),
            chars: of_model(tool),
        };
        Self {
            tools: offer.map(|offer| offer.offered.iter().map(offered).collect()),
            held_back: offer.map(|offer| {
                let held = offer.held_back.iter();
                held.map(|held| HeldBackJson {
                    name: &held.name,
                    by: held.by,
                    reason: redactor.text(&held.reason).into_owned(),
                })
                .collect()
            }),
            ..Self::new(asked, redactor)
        }
    }
}
