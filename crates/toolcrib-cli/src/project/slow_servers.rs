//! Names the servers that a command waits for, to explain a silent terminal.

use std::{convert::Infallible, future::pending, time::Duration};

use toolcrib_mcp::{McpClient, ServerState, ServerStatus};
use toolcrib_project::Project;

use crate::output;

/// The delay before the waiting servers are named.
const AFTER: Duration = Duration::from_secs(1);

/// Names them once, if there are any by then.
pub(crate) async fn tell(project: &Project, tells: bool) -> Infallible {
    if tells && !project.mcp_servers().is_empty() {
        tokio::time::sleep(AFTER).await;
        let clients = project.mcp_servers().iter().filter_map(|server| server.client().ok());
        let waiting: Vec<_> = clients.map(McpClient::status).filter(is_asked).collect();
        if !waiting.is_empty() {
            output::waiting_for(waiting.iter().map(|status| &*status.name));
        }
    }
    pending().await
}

/// Whether it is starting, or has not listed its tools yet.
fn is_asked(status: &ServerStatus) -> bool {
    match status.state {
        ServerState::Connecting => true,
        ServerState::Ready => status.tools.is_none() && status.last_error.is_none(),
        _ => false,
    }
}
