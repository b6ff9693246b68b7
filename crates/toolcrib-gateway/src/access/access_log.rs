//! The access log: one entry per request, without arguments, values or tokens.

use std::{net::SocketAddr, sync::Arc, time::SystemTime};

use serde::{Serialize, Serializer};
use toolcrib_core::{__internal::beginning, Digest, ErrorCode, WithheldBy};
use toolcrib_engine::{Notice, Redactor};

use super::Caller;
use crate::wire::quoted::{LONGEST_ERROR, LONGEST_NAME};

/// The receiver of access log entries.
pub(crate) type AccessLog = Arc<dyn Fn(&AccessEntry) + Send + Sync>;

/// One request that was answered or refused: its sender, its target, and its result. It contains no
/// arguments, values or tokens; only `error` may quote some, redacted as in events, since it is a
/// message of a tool or its server.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct AccessEntry {
    /// The time of the response; RFC 3339 when serialized.
    #[serde(serialize_with = "rfc3339")]
    pub time: SystemTime,
    /// The tenant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<Arc<str>>,
    /// The principal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<Arc<str>>,
    /// The name of the endpoint, unless it is `/mcp`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<Arc<str>>,
    /// The session, if there is one. It is the conversation of the identity in events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<Arc<str>>,
    /// The run: the `turn_id` of its events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<Arc<str>>,
    /// The peer address, over HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<SocketAddr>,
    /// The version of the protocol, such as `2026-07-28`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// The protocol's method, such as `tools/call`; `http` for a request that was refused with an
    /// HTTP status, `stdio` for a line that was refused.
    pub method: &'static str,
    /// Whether the operator has declared the identity, for metrics.
    #[serde(skip)]
    pub(crate) is_declared: bool,
    /// The HTTP status of a refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The name of the called tool: of the target, if the client calls `call_tool`. An unknown one is
    /// redacted, and cut to 64 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<Arc<str>>,
    /// The digest of that name and of the arguments that ran, for an audit log.
    #[serde(skip)]
    pub arguments: Option<Digest>,
    /// The source of the called tool, such as `mcp:git`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Arc<str>>,
    /// Whether the called tool declares that it changes nothing, for a store of calls; `None` without
    /// such a tool.
    #[serde(skip)]
    pub read_only: Option<bool>,
    /// The error class of a failed call; absent for a success.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<ErrorCode>,
    /// The error, for the operator, in at most 1,000 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Arc<str>>,
    /// The duration, in milliseconds.
    pub duration_ms: u64,
    /// The length of the text for the client, in characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chars: Option<usize>,
    /// The number of tools that a listing offers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offered: Option<usize>,
    /// The number of known tools that it withholds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub withheld: Option<usize>,
    /// The tools of MCP servers in a listing, and why some are withheld.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remote: Vec<ListedTool>,
    /// The sources that are missing in a listing, or have an earlier list, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
}

/// A known tool of an MCP server, in the log of a listing; or an unavailable server, for all its
/// tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ListedTool {
    /// Its name, as offered; for a server, the pattern of its tools, such as `mcp__git__*`.
    pub name: Arc<str>,
    /// Its source, such as `mcp:git`.
    pub origin: Arc<str>,
    /// The stage that withholds it; absent if it is offered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub withheld_by: Option<WithheldBy>,
    /// Why it is withheld, and every fact that must change for it to be offered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl AccessEntry {
    /// An entry with the current time, otherwise empty.
    pub(crate) fn new(method: &'static str, caller: Option<&Caller>) -> Self {
        let access = caller.map(|caller| &caller.access);
        Self {
            time: SystemTime::now(),
            tenant: access.and_then(|access| access.tenant.clone()),
            principal: access.and_then(|access| access.principal.clone()),
            endpoint: caller.and_then(|caller| caller.endpoint.clone()),
            session: None,
            turn_id: None,
            peer: caller.and_then(|caller| caller.peer),
            protocol: None,
            method,
            is_declared: caller.is_some_and(|caller| caller.is_declared),
            status: None,
            tool: None,
            arguments: None,
            origin: None,
            read_only: None,
            code: None,
            error: None,
            duration_ms: 0,
            chars: None,
            offered: None,
            withheld: None,
            remote: Vec::new(),
            notices: Vec::new(),
        }
    }

    /// Redacts and cuts texts of a client or a server.
    pub(crate) fn cleaned(mut self, redactor: &Redactor) -> Self {
        let clean = |text: Arc<str>, longest| beginning(&redactor.text(&text), longest).into();
        self.error = self.error.map(|error| clean(error, LONGEST_ERROR));
        self.protocol = self.protocol.map(|version| beginning(&version, LONGEST_NAME));
        // The name of an offered tool is safe.
        if self.origin.is_none() {
            self.tool = self.tool.map(|name| clean(name, LONGEST_NAME));
        }
        self
    }
}

fn rfc3339<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&humantime::format_rfc3339_millis(*time))
}
