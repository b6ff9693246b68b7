//! A proxy with only rmcp: it forwards each request to one server, and each response back. It is
//! the minimum cost of a hop.

use std::{env, process::Stdio, sync::Arc};

use rmcp::{
    ErrorData, RoleClient, RoleServer, ServerHandler, ServiceExt as _,
    model::{
        CallToolRequestParams, CallToolResponse, ListToolsResult, PaginatedRequestParams,
        ServerCapabilities, ServerConfig,
    },
    service::{RequestContext, RunningService, ServiceError},
};
use tokio::process::{Child, Command};
use toolcrib_benches::Outcome;

use crate::roles;

/// The proxy, with its server, which ends with it.
#[derive(Clone)]
pub(crate) struct Hop {
    server: Arc<RunningService<RoleClient, ()>>,
    _process: Arc<Child>,
}

impl Hop {
    /// Starts the server as a program, and performs the handshake.
    pub(crate) async fn start() -> Outcome<Self> {
        let mut command = Command::new(env::current_exe()?);
        command.arg(roles::ECHO_STDIO).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.kill_on_drop(true).spawn()?;
        let stdout = process.stdout.take().ok_or("the server has no stdout")?;
        let stdin = process.stdin.take().ok_or("the server has no stdin")?;
        let server = ().serve((stdout, stdin)).await?;
        Ok(Self { server: Arc::new(server), _process: Arc::new(process) })
    }
}

impl ServerHandler for Hop {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.server.list_tools(request).await.map_err(failed)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.server.call_tool_once(request).await.map_err(failed)
    }
}

fn failed(error: ServiceError) -> ErrorData {
    match error {
        ServiceError::McpError(refused) => refused,
        other => ErrorData::internal_error(other.to_string(), None),
    }
}
