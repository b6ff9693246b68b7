//! Restate's server from npm, on loopback and without telemetry. It has the Business Source License 1.1; it is run, and nothing of it is linked.

use std::{
    fs::File,
    io,
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use super::systems::Server;
use crate::{packages, peers, problem::Problem, workspace::Workspace};

/// The exact versions, with the digest of each file.
const PACKAGE: &str = "benches/crash-table/package.json";
const LOCK: &str = "benches/crash-table/package-lock.json";

/// The time for the server until it listens.
const START: Duration = Duration::from_secs(60);

fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target().join("crash-table").join("restate-server")
}

/// Installs the server into a separate folder, unless this version is there.
pub(super) fn install(workspace: &Workspace) -> Result<(), Problem> {
    peers::install(workspace)?;
    let (folder, node) = (folder(workspace), peers::node(workspace));
    let works = || folder.join("node_modules").exists();
    packages::once(workspace, &folder, &[PACKAGE, LOCK], works, || {
        packages::npm_ci(workspace, &folder, &node, [PACKAGE, LOCK])
    })
}

/// Starts the server, with its data in a folder.
pub(super) fn start(workspace: &Workspace, data: &Path) -> Result<Option<Server>, Problem> {
    let failed = |error: io::Error| {
        Problem::new(format!("Restate's server failed: {error}"), "it runs on Linux, on x86-64")
    };
    let ports = || -> io::Result<Vec<String>> {
        let sockets: Vec<_> =
            (0..4).map(|_| TcpListener::bind("127.0.0.1:0")).collect::<io::Result<_>>()?;
        sockets.iter().map(|socket| Ok(socket.local_addr()?.to_string())).collect()
    };
    let ports = ports().map_err(failed)?;
    let [node, ingress, admin, service] = ports.as_slice() else { return Ok(None) };
    let log = File::create(data.join("restate.txt")).map_err(failed)?;
    let package = "node_modules/@restatedev/restate-server-linux-x64/bin/restate-server";
    let mut command = workspace.program(folder(workspace).join(package));
    command
        .arg("--base-dir")
        .arg(data.join("restate"))
        .args(["--no-logo"])
        .env("RESTATE_DISABLE_TELEMETRY", "true")
        .env("RESTATE_LISTEN_MODE", "tcp")
        .env("RESTATE_BIND_ADDRESS", node)
        .env("RESTATE_INGRESS__BIND_ADDRESS", ingress)
        .env("RESTATE_ADMIN__BIND_ADDRESS", admin)
        .stdin(Stdio::null())
        .stdout(log.try_clone().map_err(failed)?)
        .stderr(log);
    let process = command.spawn().map_err(failed)?;
    for address in [ingress, admin] {
        listens(address).map_err(failed)?;
    }
    let variables = vec![
        ("CRASH_ADDRESS", service.clone()),
        ("CRASH_RESTATE", format!("http://{ingress}")),
        ("CRASH_RESTATE_ADMIN", format!("http://{admin}")),
    ];
    Ok(Some(Server { process, variables }))
}

fn listens(address: &str) -> io::Result<()> {
    let began = Instant::now();
    loop {
        match TcpStream::connect(address) {
            Ok(_) => return Ok(()),
            Err(error) if began.elapsed() > START => return Err(error),
            Err(_) => thread::sleep(Duration::from_millis(20)),
        }
    }
}
