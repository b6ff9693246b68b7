//! `toolcrib discover`: the servers that MCP clients on this machine have configured.

use std::path::Path;

use toolcrib_core::CancellationToken;
use toolcrib_mcp::server::{FileServer, ServerTarget, read_servers};

use crate::{
    args::GlobalArgs,
    clients::{Client, Scope, read},
    exit::{self, Exit},
    output::{self, ConfiguredFile, ConfiguredServer, DiscoverJson},
    problem::Problem,
    project::load::{blocking, here},
};

pub(super) async fn discover(
    global: &GlobalArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let work = move || {
        let here = here()?;
        let mut files = Vec::new();
        for client in Client::ALL {
            for scope in [Scope::User, Scope::Project] {
                let Some(file) = client.file(scope, &here)? else { continue };
                if cancellation.is_cancelled() {
                    return Err(Problem::cancelled());
                }
                let (servers, problem) = match read(&file) {
                    Ok(None) => continue,
                    Ok(Some(found)) => servers(&file, &found.text, &here),
                    Err(error) => (Vec::new(), Some(error.to_string())),
                };
                files.push(ConfiguredFile { client, scope, file, servers, problem });
            }
        }
        Ok(files)
    };
    let files = blocking(work).await??;
    if global.json {
        output::json(&DiscoverJson::new(&files));
    } else {
        output::discovered(&files, global.quiet);
    }
    Ok(exit::FINE)
}

/// The servers of a file: names, and the kind of transport. No variable is read.
fn servers(file: &Path, text: &str, here: &Path) -> (Vec<ConfiguredServer>, Option<String>) {
    let name = file.to_string_lossy();
    let text = text.trim_start_matches('\u{feff}');
    let variable = |_: &str| Some("x".to_owned());
    let found = read_servers(&name, text, here, &variable, &|_| Ok(String::new()));
    let problem = found.problems.errors().next();
    // A settings file of a client may well have no servers.
    let problem = problem.filter(|_| found.servers.is_empty() && !found.lacks_servers);
    let problem = problem.map(|error| error.message.clone());
    (found.servers.iter().map(server).collect(), problem)
}

fn server(server: &FileServer) -> ConfiguredServer {
    let kind = match server.transport.as_ref().map(|transport| transport.target()) {
        Some(ServerTarget::Program { .. }) => Some("program"),
        Some(ServerTarget::Endpoint { .. }) => Some("http"),
        _ => None,
    };
    let problem = server.problems.errors().next().map(|error| error.message.clone());
    ConfiguredServer { name: server.name.to_string(), kind, disabled: server.disabled, problem }
}
