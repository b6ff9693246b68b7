//! `toolcrib serve`, with a typical configuration for one server.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::json;
use toolcrib_benches::Outcome;

/// The name of the server's tool in our gateway.
pub(crate) const TOOL: &str = "mcp__echo__echo";

/// How the gateway reaches the server.
pub(crate) enum Behind {
    /// As a program, and its argument.
    Stdio(PathBuf, &'static str),
    /// At an address.
    Http(SocketAddr),
}

/// How the client reaches the gateway.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Door {
    Http(SocketAddr),
    Stdio,
}

/// Serves the one server of an `mcpServers` file, with all files in this folder, which is created.
pub(crate) fn command(
    program: &Path,
    folder: &Path,
    behind: &Behind,
    door: Door,
) -> Outcome<Command> {
    fs::create_dir_all(folder)?;
    let server = match behind {
        Behind::Stdio(program, arg) => json!({ "command": program, "args": [arg] }),
        Behind::Http(address) => json!({ "url": format!("http://{address}/mcp") }),
    };
    let file = folder.join("mcp.json");
    fs::write(&file, json!({ "mcpServers": { "echo": server } }).to_string())?;
    let mut command = Command::new(program);
    command.arg("serve").arg("--import").arg(&file).arg("--state").arg(folder);
    if let Door::Http(address) = door {
        command.args(["--http", &address.to_string()]);
    }
    Ok(command)
}

/// The client's token, once the gateway listens.
pub(crate) fn token(folder: &Path) -> Outcome<String> {
    Ok(fs::read_to_string(folder.join("serve-token"))?.trim().to_owned())
}
