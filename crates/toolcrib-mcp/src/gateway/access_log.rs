//! The access log: one entry per request, without arguments, values or tokens.

use std::{net::SocketAddr, sync::Arc, time::SystemTime};

use serde::{Serialize, Serializer};
use toolcrib_core::ErrorCode;
use toolcrib_engine::{Notice, Redactor, WithheldBy};

use super::{
    access::Caller,
    quoted::{LONGEST_ERROR, LONGEST_NAME, cut},
};

/// One request that was answered or refused: who asked for what, and what it came to. It holds no
/// arguments, values or tokens; only `error` may quote some, redacted as in events, since it is what a
/// tool or its server said.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct AccessEntry {
    /// When it was settled; RFC 3339 when serialised.
    #[serde(serialize_with = "rfc3339")]
    pub time: SystemTime,
    /// For which organisation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<Arc<str>>,
    /// For whom.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<Arc<str>>,
    /// In which session, where there is one. It is the conversation of the identity in events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<Arc<str>>,
    /// In which run: the `run_id` of its events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<Arc<str>>,
    /// From where, over HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<SocketAddr>,
    /// The version of the protocol, such as `2026-07-28`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// The protocol's method, such as `tools/call`; `http` for a request that was refused with an
    /// HTTP status, `stdio` for a line that was refused.
    pub method: &'static str,
    /// The HTTP status that a request was refused with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The name that was called. One that is not offered is redacted, and cut to 64 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<Arc<str>>,
    /// Where the called tool comes from, such as `mcp:git`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Arc<str>>,
    /// The class of the failure of a call; none where it succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<ErrorCode>,
    /// What went wrong, for the operator, in at most 1,000 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Arc<str>>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// How long the text is that a client was given, in characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chars: Option<usize>,
    /// How many tools a listing offers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offered: Option<usize>,
    /// How many known tools it withholds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub withheld: Option<usize>,
    /// The tools of MCP servers in a listing, and why some are withheld.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remote: Vec<ListedTool>,
    /// Which sources a listing is without, or has from earlier, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
}

/// A known tool of an MCP server, in the log of a listing; or a server that was left out, which
/// stands for whatever tools it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ListedTool {
    /// Its name, as it is offered; of a server, what its tools are called, such as `mcp__git__*`.
    pub name: Arc<str>,
    /// Where it comes from, such as `mcp:git`.
    pub origin: Arc<str>,
    /// Who withholds it; none where it is offered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub withheld_by: Option<WithheldBy>,
    /// Why it is withheld, and every fact that must change for it to be offered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl AccessEntry {
    /// An entry of now, with everything else empty.
    pub(super) fn new(method: &'static str, caller: Option<&Caller>) -> Self {
        let access = caller.map(|caller| &caller.access);
        Self {
            time: SystemTime::now(),
            tenant: access.and_then(|access| access.tenant.clone()),
            principal: access.and_then(|access| access.principal.clone()),
            session: None,
            run_id: None,
            peer: caller.and_then(|caller| caller.peer),
            protocol: None,
            method,
            status: None,
            tool: None,
            origin: None,
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

    /// Redacts and cuts what a client or a server wrote.
    pub(super) fn cleaned(mut self, redactor: &Redactor) -> Self {
        let clean = |text: Arc<str>, longest| cut(&redactor.text(&text), longest).into();
        self.error = self.error.map(|error| clean(error, LONGEST_ERROR));
        self.protocol = self.protocol.map(|version| cut(&version, LONGEST_NAME));
        // A name that is offered is its tool's.
        if self.origin.is_none() {
            self.tool = self.tool.map(|name| clean(name, LONGEST_NAME));
        }
        self
    }
}

fn rfc3339<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&humantime::format_rfc3339_millis(*time))
}
