//! `/readyz`: how many of the servers can be used, for whoever runs the gateway. It needs no token, so
//! it names nothing.

use http::StatusCode;
use serde_json::{Value, json};

use crate::{McpClient, ServerState};

/// The answer. It is 503 only where there are servers and none of them can be used: one that is away
/// does not take the gateway out of service.
pub(super) fn readiness(servers: &[McpClient]) -> (StatusCode, Value) {
    let (mut usable, mut starting, mut failing) = (0, 0, 0);
    for server in servers {
        let status = server.status();
        match status.state {
            // A server that is idle starts when it is needed.
            ServerState::Idle => usable += 1,
            ServerState::Ready if status.tools.is_some() => usable += 1,
            // It is connected and cannot be listed.
            ServerState::Ready if status.last_error.is_some() => failing += 1,
            ServerState::Ready | ServerState::Connecting => starting += 1,
            ServerState::BackingOff | ServerState::Open | ServerState::Closed => failing += 1,
        }
    }
    let (status, word) = match (usable, starting + failing) {
        (_, 0) => (StatusCode::OK, "ok"),
        (0, _) => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
        _ => (StatusCode::OK, "degraded"),
    };
    let counts = json!({ "usable": usable, "starting": starting, "failing": failing });
    (status, json!({ "status": word, "servers": counts }))
}
