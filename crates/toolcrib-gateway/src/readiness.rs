//! `/readyz`: the number of usable servers, for the operator of the gateway. It needs no token, so
//! it contains no names.

use http::StatusCode;
use serde_json::{Value, json};

use toolcrib_mcp::{McpClient, ServerState};

/// The response. It is 503 only if there are servers and none is usable: an unavailable one does
/// not take the gateway out of service.
pub(super) fn readiness(servers: &[McpClient]) -> (StatusCode, Value) {
    let (mut usable, mut starting, mut failing) = (0, 0, 0);
    for server in servers {
        let status = server.status();
        match status.state {
            // An idle server starts when it is needed.
            ServerState::Idle => usable += 1,
            ServerState::Ready if status.tools.is_some() => usable += 1,
            // It is connected but cannot be listed.
            ServerState::Ready if status.last_error.is_some() => failing += 1,
            ServerState::Ready | ServerState::Connecting => starting += 1,
            // Backing off, open or closed.
            _ => failing += 1,
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
