//! Third-party gateways, each with its defaults except for its output on standard error.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use toolcrib_benches::Outcome;

use crate::roles::ECHO_STDIO;

/// mcp-proxy of the npm registry.
pub(crate) fn mcp_proxy(folder: &Path, port: u16) -> Outcome<Command> {
    let mut command = node(folder, "mcp-proxy");
    command.args(["--host", "127.0.0.1", "--port", &port.to_string(), "--server", "stream", "--"]);
    command.arg(env::current_exe()?).arg(ECHO_STDIO);
    Ok(command)
}

/// supergateway of the npm registry, with one server per session: without sessions it starts one
/// per request, which is much slower.
pub(crate) fn supergateway(folder: &Path, port: u16) -> Outcome<Command> {
    let server = format!("{} {ECHO_STDIO}", env::current_exe()?.display());
    let mut command = node(folder, "supergateway");
    command.args(["--stdio", &server, "--outputTransport", "streamableHttp", "--stateful"]);
    command.args(["--port", &port.to_string(), "--logLevel", "none"]);
    Ok(command)
}

fn node(folder: &Path, program: &str) -> Command {
    let mut command = Command::new(folder.join("node/bin/node"));
    command.arg(PathBuf::from_iter([folder, Path::new("node_modules/.bin"), Path::new(program)]));
    command
}
