//! The official MCP conformance suite, run on the gateway and on the client.

mod expected;
mod page;
mod results;

use std::{
    fs,
    io::Read as _,
    path::PathBuf,
    process::{Command, Stdio},
};

use self::{expected::Expected, results::Run};
use crate::{
    packages::{self, unwritable},
    peers, postgres,
    problem::Problem,
    small_examples::{build_programs, program},
    workspace::{Workspace, command_line, not_started, unreadable},
};

/// The exact versions, with the digest of each file.
const PACKAGE: &str = "xtask/conformance/package.json";
const LOCK: &str = "xtask/conformance/package-lock.json";
const REQUIREMENTS: &str = "xtask/conformance/requirements.txt";

/// Programs that find their packages only beside themselves: they are copied into the folder.
const PROGRAMS: [&str; 5] = ["client.mjs", "fixture.mjs", "proxy.py", "relay.mjs", "run.mjs"];

/// The columns that CI runs: a server of both versions, one of which most requests of the newer version are
/// translated, and the client.
const SAMPLE: [&str; 3] = ["gateway/both", "gateway/sessions@2026-07-28", "client"];

const MATRIX: [&str; 18] = [
    "direct/both",
    "gateway/both",
    "gateway/sessions",
    "gateway/stateless",
    "direct/both/call",
    "gateway/both/call",
    "gateway/sessions/call",
    "gateway/stateless/call",
    "replicas/both",
    "replicas/sessions",
    "replicas/stateless",
    "replicas/both/call",
    "replicas/sessions/call",
    "replicas/stateless/call",
    "fastmcp/both",
    "fastmcp/sessions",
    "fastmcp/stateless",
    "client",
];

/// Two gateways with one database, which must have the verdicts of one gateway.
const REPLICAS: &str = "replicas/";

/// The command that repeats a run, in errors and on the page.
const COMMAND: &str = "cargo xtask conformance";

fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target().join("conformance")
}

fn fastmcp(workspace: &Workspace) -> PathBuf {
    folder(workspace).join("fastmcp")
}

/// Installs the suite and the packages of its fixture, unless these versions are there. The peers
/// must be installed: they provide the Node that runs it.
pub(crate) fn install(workspace: &Workspace) -> Result<(), Problem> {
    let folder = folder(workspace);
    packages::once(
        workspace,
        &folder,
        &[PACKAGE, LOCK],
        || true,
        || packages::npm_ci(workspace, &folder, &peers::node(workspace), [PACKAGE, LOCK]),
    )
}

/// Installs FastMCP, whose proxy is measured for comparison.
pub(crate) fn install_fastmcp(workspace: &Workspace) -> Result<(), Problem> {
    packages::install_once(workspace, &fastmcp(workspace), REQUIREMENTS)
}

/// Runs the columns for CI, and compares them with the expected failures.
pub(crate) fn check_sample(workspace: &Workspace) -> Result<(), Problem> {
    let runs = run(workspace, &SAMPLE)?;
    Expected::read(workspace)?.check(&runs)
}

/// Runs all columns, compares them with the expected failures, and writes the page.
pub(crate) fn check(workspace: &Workspace) -> Result<(), Problem> {
    let runs = run(workspace, &MATRIX)?;
    Expected::read(workspace)?.check(&runs)?;
    page::write(workspace, &runs)
}

/// As [`check`], but removes expected failures that pass now.
pub(crate) fn bless(workspace: &Workspace) -> Result<(), Problem> {
    let runs = run(workspace, &MATRIX)?;
    let mut expected = Expected::read(workspace)?;
    expected.remove_passed(&runs);
    expected.write(workspace)?;
    expected.check(&runs)?;
    page::write(workspace, &runs)
}

fn run(workspace: &Workspace, columns: &[&str]) -> Result<Vec<Run>, Problem> {
    build_programs(workspace)?;
    let folder = folder(workspace);
    for name in PROGRAMS {
        let source = workspace.root().join("xtask/conformance").join(name);
        fs::copy(&source, folder.join(name)).map_err(|error| unwritable(&folder, &error))?;
    }
    let mut command = Command::new(peers::node(workspace).join("bin/node"));
    command.arg("run.mjs").arg(program(workspace, "toolcrib")).args(columns);
    // The replicas' database; it ends with its standard input.
    let has_replicas = columns.iter().any(|column| column.starts_with(REPLICAS));
    let database = has_replicas.then(|| postgres::start(workspace)).transpose()?;
    command.envs(database.iter().map(|(_, url)| ("DATABASE", url)));
    let printed = printed(command.current_dir(&folder))?;
    if let Some((mut server, _)) = database {
        server.wait().map_err(|error| not_started("PostgreSQL", &error))?;
    }
    results::parse(&printed)
}

/// Runs the program to its end; returns what it printed. Its standard input stays open meanwhile:
/// with the end of this program it closes, and the other ends all that it started.
fn printed(command: &mut Command) -> Result<String, Problem> {
    let line = command_line(command);
    eprintln!("$ {line}");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| not_started(&line, &error))?;
    let stdin = child.stdin.take();
    let mut text = String::new();
    if let Some(stdout) = &mut child.stdout {
        stdout.read_to_string(&mut text).map_err(|error| unreadable(line.as_ref(), &error))?;
    }
    let status = child.wait().map_err(|error| not_started(&line, &error))?;
    drop(stdin);
    if status.success() {
        return Ok(text);
    }
    Err(Problem::new(
        format!("`{line}` failed: {status}"),
        "its message is above; with VERBOSE=1 the suite's own output is printed too",
    ))
}
