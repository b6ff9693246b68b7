//! Restate's server from npm, on loopback and without telemetry. It has the Business Source License 1.1; it is run, and nothing of it is linked.

use std::{
    fs::File,
    io::{self, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use tinyjson::JsonValue;

use super::{stand_in::StandIn, systems::Server, worker::Variables};
use crate::{example::items, packages, peers, problem::Problem, workspace::Workspace};

/// The exact versions, with the digest of each file.
const PACKAGE: &str = "benches/crash-table/package.json";
const LOCK: &str = "benches/crash-table/package-lock.json";

/// The time for the server until it listens.
const START: Duration = Duration::from_secs(60);

/// The time for a service until it is registered, of which a loaded machine needs a part.
const REGISTRATION: Duration = Duration::from_secs(600);

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

/// The client of a run of `examples/restate`: says the message, and decides for the person.
pub(super) fn settle(variables: &Variables, run: &str, stand_in: &StandIn) -> io::Result<()> {
    let of = |name: &str| {
        let found = variables.iter().find(|(own, _)| *own == name);
        found.map(|(_, value)| value.trim_start_matches("http://")).unwrap_or_default()
    };
    register(of("CRASH_RESTATE_ADMIN"), of("CRASH_ADDRESS"))?;
    let call = |handler: &str, body: &str| -> io::Result<JsonValue> {
        let path = format!("/Sessions/{run}/{handler}");
        let (status, reply) = post(of("CRASH_RESTATE"), &path, body)?;
        let reply: Option<JsonValue> = reply.parse().ok().filter(|_| status == 200);
        reply.ok_or_else(|| io::Error::other(format!("{handler} has the status {status}")))
    };
    let mut reply = call("say", &format!(r#""Settle order {run}.""#))?;
    loop {
        let waiting = items(&reply, "waiting").filter_map(|id| id.get::<String>().cloned());
        let Some(id) = waiting.collect::<Vec<_>>().pop() else { break };
        stand_in.approve(run);
        reply = call("decide", &format!(r#"{{"id":"{id}","approve":true}}"#))?;
    }
    stand_in.end(run);
    Ok(())
}

/// Tells the server where the service is, as soon as it runs.
fn register(admin: &str, service: &str) -> io::Result<()> {
    // One at a time: a second registration replaces the first.
    static REGISTERING: Mutex<()> = Mutex::new(());
    let _one = REGISTERING.lock().unwrap_or_else(PoisonError::into_inner);
    let began = Instant::now();
    let (_, known) = request(admin, "GET", "/deployments", "")?;
    if known.contains(service) {
        return Ok(());
    }
    loop {
        let body = format!(r#"{{"uri":"http://{service}"}}"#);
        match post(admin, "/deployments", &body)? {
            (200..300, _) => return Ok(()),
            (_, reply) if began.elapsed() > REGISTRATION => return Err(io::Error::other(reply)),
            _ => thread::sleep(Duration::from_millis(20)),
        }
    }
}

fn post(address: &str, path: &str, body: &str) -> io::Result<(u16, String)> {
    request(address, "POST", path, body)
}

/// Sends a request, and returns the status and the body of the response. HTTP 1.0 has no chunks.
fn request(address: &str, method: &str, path: &str, body: &str) -> io::Result<(u16, String)> {
    let mut stream = TcpStream::connect(address)?;
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.0\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n"
    );
    stream.write_all(format!("{head}{body}").as_bytes())?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    let status = response.split(' ').nth(1).and_then(|status| status.parse().ok());
    let body = response.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
    status.zip(body).ok_or_else(|| io::Error::other(format!("no response but {response:?}")))
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
