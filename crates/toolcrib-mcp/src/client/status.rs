use std::{fmt, sync::Arc, time::Duration};

use serde::Serialize;

/// Where a client stands with its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ServerState {
    /// Not connected, because nobody has asked for it yet, or since it was lost.
    Idle,
    /// It is being started or dialled.
    Connecting,
    /// Connected.
    Ready,
    /// It failed, and is not tried again before its time.
    BackingOff,
    /// It failed too often in a row: the breaker is open.
    Open,
    /// The client has been closed.
    Closed,
}

impl ServerState {
    /// The state as it stands in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Connecting => "connecting",
            Self::Ready => "ready",
            Self::BackingOff => "backing_off",
            Self::Open => "open",
            Self::Closed => "closed",
        }
    }
}

impl fmt::Display for ServerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What is known of a server at one moment, for operators.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ServerStatus {
    /// Its name here.
    pub name: Arc<str>,
    /// What is started or dialled: the command line, with whatever was put into its arguments, or the
    /// URL without its query. It may hold secrets, as these may.
    pub target: Arc<str>,
    /// Where the client stands with it.
    pub state: ServerState,
    /// How many connections there have been, this one included.
    pub epoch: u64,
    /// What the server of the last connection calls itself.
    pub server: Option<Arc<str>>,
    /// The version that it says it has.
    pub server_version: Option<Arc<str>>,
    /// The protocol version that was agreed on.
    pub protocol: Option<Arc<str>>,
    /// How many tools the last listing offers; none before there was one.
    pub tools: Option<usize>,
    /// How many it holds back.
    pub held_back: Option<usize>,
    /// What went wrong the last time, in the operator's words.
    pub last_error: Option<Arc<str>>,
    /// When it may be tried again, in milliseconds; only while it is not tried.
    #[serde(rename = "next_try_in_ms", serialize_with = "in_ms")]
    pub next_try_in: Option<Duration>,
}

/// A pattern that chooses among a server's tools, and matches none of them; as text, what an operator is
/// told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct UnmatchedPattern {
    /// Where it stands: `include` or `exclude`.
    pub list: &'static str,
    /// The pattern.
    pub pattern: Arc<str>,
    /// The tool that is probably meant, by the server's own name, if one is near enough.
    pub nearest: Option<Arc<str>>,
}

impl fmt::Display for UnmatchedPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { list, pattern, nearest } = self;
        write!(f, "`{pattern}` in `{list}` matches no tool that the server lists; ")?;
        match nearest {
            Some(nearest) => write!(f, "did you mean `{nearest}`?"),
            None => f.write_str("write the server's own names, without `mcp__SERVER__`"),
        }
    }
}

fn in_ms<S: serde::Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    time.map(toolcrib_core::millis).serialize(serializer)
}

/// A client now stands elsewhere with its server; as text, one line for a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StateChange {
    /// The server's name here.
    pub server: Arc<str>,
    /// Where the client stood before.
    pub from: ServerState,
    /// Where it stands now.
    pub to: ServerState,
    /// What went wrong, where that is why; the operator's words.
    pub reason: Option<Arc<str>>,
}

impl fmt::Display for StateChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MCP server `{}`: {}", self.server, self.to)?;
        self.reason.as_ref().map_or(Ok(()), |reason| write!(f, ": {reason}"))
    }
}
