//! The roles of this program when it is started by itself: a server or a proxy.

use std::{env, future::Future, net::Ipv4Addr, process::Command, sync::Arc, time::Duration};

use axum::{Router, serve::ListenerExt as _};
use rmcp::{
    ServerHandler, ServiceExt as _,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use tokio::{
    io::{stdin, stdout},
    net::TcpListener,
    runtime::Runtime,
};
use toolcrib_benches::Outcome;

use crate::{echo::Echo, hop::Hop};

/// The server, on standard input and output.
pub(crate) const ECHO_STDIO: &str = "echo-stdio";
/// The server, on a local port, which is the next argument; the one after it is the time before each response,
/// in milliseconds.
pub(crate) const ECHO_HTTP: &str = "echo-http";
/// The bare proxy, on standard input and output.
pub(crate) const HOP_STDIO: &str = "hop-stdio";
/// The bare proxy, on a local port, which is the next argument.
pub(crate) const HOP_HTTP: &str = "hop-http";

/// One of these.
pub(crate) enum Role {
    EchoStdio,
    EchoHttp(u16, Duration),
    HopStdio,
    HopHttp(u16),
}

/// The role in the arguments, unless this is the bench itself.
pub(crate) fn asked(words: &[&str]) -> Outcome<Option<Role>> {
    Ok(Some(match words {
        [role] if *role == ECHO_STDIO => Role::EchoStdio,
        [role] if *role == HOP_STDIO => Role::HopStdio,
        [role, port, wait] if *role == ECHO_HTTP => {
            Role::EchoHttp(port.parse()?, Duration::from_millis(wait.parse()?))
        }
        [role, port] if *role == HOP_HTTP => Role::HopHttp(port.parse()?),
        _ => return Ok(None),
    }))
}

/// This program in a role.
pub(crate) fn own(args: &[&str]) -> Outcome<Command> {
    let mut command = Command::new(env::current_exe()?);
    command.args(args);
    Ok(command)
}

impl Role {
    /// Runs it until its input ends or it is killed.
    pub(crate) fn run(self) -> Outcome {
        match self {
            Self::EchoStdio => wait(async { stdio(Echo(Duration::ZERO)).await }),
            Self::EchoHttp(port, time) => wait(async move { http(Echo(time), port).await }),
            Self::HopStdio => wait(async { stdio(Hop::start().await?).await }),
            Self::HopHttp(port) => wait(async move { http(Hop::start().await?, port).await }),
        }
    }
}

fn wait(role: impl Future<Output = Outcome>) -> Outcome {
    let runtime = Runtime::new()?;
    let outcome = runtime.block_on(role);
    // A read of standard input cannot be interrupted.
    runtime.shutdown_background();
    outcome
}

async fn stdio(handler: impl ServerHandler) -> Outcome {
    handler.serve((stdin(), stdout())).await?.waiting().await?;
    Ok(())
}

/// Serves as fast as rmcp can over HTTP: single-message responses are JSON and not a stream if the
/// protocol allows it, and nothing is delayed for batching.
async fn http(handler: impl ServerHandler + Clone, port: u16) -> Outcome {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?.tap_io(|stream| {
        // If it cannot be set, the figures show it.
        let _ = stream.set_nodelay(true);
    });
    let config = StreamableHttpServerConfig::default().with_json_response(true);
    let service = StreamableHttpService::new(
        move || Ok(handler.clone()),
        Arc::new(LocalSessionManager::default()),
        config,
    );
    Ok(axum::serve(listener, Router::new().nest_service("/mcp", service)).await?)
}
