use std::{fmt, sync::Arc, time::Duration};

use serde::Serialize;

/// The state of a client's connection to its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ServerState {
    /// Not connected, because it was not needed yet, or since the connection was lost.
    Idle,
    /// It is being started or connected.
    Connecting,
    /// Connected.
    Ready,
    /// It failed, and waits for its next attempt.
    BackingOff,
    /// It failed too often in a row: the circuit breaker is open.
    Open,
    /// The client has been closed.
    Closed,
}

impl ServerState {
    /// The state as in JSON.
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

/// A server's state at one moment, for operators.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ServerStatus {
    /// The operator's name of the server.
    pub name: Arc<str>,
    /// The program or address: the command line, with the expanded arguments, without values that look
    /// like secrets, or the URL without its query. It may contain a secret that does not look like one.
    pub target: Arc<str>,
    /// The state of the client.
    pub state: ServerState,
    /// The number of connections so far, including this one.
    pub epoch: u64,
    /// The self-reported name of the server of the last connection.
    pub server: Option<Arc<str>>,
    /// Its self-reported version.
    pub server_version: Option<Arc<str>>,
    /// The negotiated protocol version.
    pub protocol: Option<Arc<str>>,
    /// The number of tools that the last listing offers; none before the first.
    pub tools: Option<usize>,
    /// The number of tools that it withholds.
    pub withheld_by_provider: Option<usize>,
    /// The last error, for the operator.
    pub last_error: Option<Arc<str>>,
    /// How the last list of tools deviates from the protocol, if it was accepted nevertheless.
    pub list_warning: Option<&'static str>,
    /// The time until the next attempt, in milliseconds; only while it backs off.
    #[serde(rename = "next_try_in_ms", serialize_with = "in_ms")]
    pub next_try_in: Option<Duration>,
}

/// A pattern for a server's tools that matches none of them; as text, a message for an operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct UnmatchedPattern {
    /// Its list: `include`, `exclude`, `tool` for one with another name or description, or
    /// `allowed-tools` of a skill.
    pub list: &'static str,
    /// The pattern.
    pub pattern: Arc<str>,
    /// The probably intended tool, by the server's own name, if one is similar enough.
    pub nearest: Option<Arc<str>>,
}

impl UnmatchedPattern {
    const OF_SKILL: &str = "allowed-tools";

    /// A name in a skill's `allowed-tools` that is not a tool of the server.
    pub(super) fn of_skill(name: &Arc<str>) -> Self {
        Self { list: Self::OF_SKILL, pattern: Arc::clone(name), nearest: None }
    }
}

impl fmt::Display for UnmatchedPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { list, pattern, nearest } = self;
        if *list == Self::OF_SKILL {
            return write!(
                f,
                "`{pattern}` in `{list}` of one of its skills is not a tool of this server, and is \
                 ignored"
            );
        }
        write!(f, "`{pattern}` in `{list}` matches no tool that the server lists; ")?;
        match nearest {
            Some(nearest) => write!(f, "did you mean `{nearest}`?"),
            None => f.write_str("write the server's own names, without `mcp__SERVER__`"),
        }
    }
}

fn in_ms<S: serde::Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    time.map(toolcrib_core::__internal::millis).serialize(serializer)
}

/// A state change of a client; as text, one line for a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StateChange {
    /// The operator's name of the server.
    pub server: Arc<str>,
    /// The previous state.
    pub from: ServerState,
    /// The new state.
    pub to: ServerState,
    /// The error, if one caused the change; for the operator.
    pub reason: Option<Arc<str>>,
}

impl fmt::Display for StateChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MCP server `{}`: {}", self.server, self.to)?;
        self.reason.as_ref().map_or(Ok(()), |reason| write!(f, ": {reason}"))
    }
}
