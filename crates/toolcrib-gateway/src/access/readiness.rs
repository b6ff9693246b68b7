//! `/readyz`: whether the servers are usable. Names of servers are only for this machine, and for
//! clients with a token: probes have none.

use http::StatusCode;
use serde_json::{Value, json};
use toolcrib_mcp::{McpClient, ServerState};

/// When a gateway counts as ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Readiness {
    /// When all its servers are usable.
    #[default]
    AllServers,
    /// When at least one server is usable, or none is configured.
    AnyServer,
}

/// The state of a server, as probes see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerHealth {
    Usable,
    Starting,
    Failing,
}

impl ServerHealth {
    pub(crate) fn is_usable(self) -> bool {
        self == Self::Usable
    }

    fn word(self) -> &'static str {
        match self {
            Self::Usable => "usable",
            Self::Starting => "starting",
            Self::Failing => "failing",
        }
    }
}

pub(crate) fn state_of(server: &McpClient) -> ServerHealth {
    let status = server.status();
    match status.state {
        // An idle server starts when it is needed.
        ServerState::Idle => ServerHealth::Usable,
        ServerState::Ready if status.tools.is_some() => ServerHealth::Usable,
        // It is connected but cannot be listed.
        ServerState::Ready if status.last_error.is_some() => ServerHealth::Failing,
        ServerState::Ready | ServerState::Connecting => ServerHealth::Starting,
        // Backing off, open or closed.
        _ => ServerHealth::Failing,
    }
}

/// The response. `names` says whether it may name servers.
pub(crate) fn readiness(
    servers: &[McpClient],
    rule: Readiness,
    names: bool,
) -> (StatusCode, Value) {
    let states: Vec<_> =
        servers.iter().map(|server| (server.name().as_str(), state_of(server))).collect();
    let count = |wanted| states.iter().filter(|(_, state)| *state == wanted).count();
    let usable = count(ServerHealth::Usable);
    let (starting, failing) = (count(ServerHealth::Starting), count(ServerHealth::Failing));
    let (word, is_ready) = match (usable, starting + failing) {
        (_, 0) => ("ok", true),
        (0, _) => ("unavailable", false),
        _ => ("degraded", rule == Readiness::AnyServer),
    };
    let counts = json!({ "usable": usable, "starting": starting, "failing": failing });
    let mut answer = json!({ "status": word, "servers": counts });
    if names {
        let missing = states.iter().filter(|(_, state)| !state.is_usable());
        let missing: serde_json::Map<_, _> =
            missing.map(|(name, state)| ((*name).to_owned(), state.word().into())).collect();
        if let Some(fields) = answer.as_object_mut().filter(|_| !missing.is_empty()) {
            fields.insert("missing".to_owned(), missing.into());
        }
    }
    let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, answer)
}
