//! The official conformance suite of MCP, if it is installed: its scenarios that need no tools made
//! for them.

use std::{fs, path::Path, process::Stdio as Pipe, time::Duration};

use serde::Deserialize;
use tokio::process::Command;
use toolcrib_mcp::server::Stdio;

use crate::{
    clients::read,
    output::{CheckedSuite, ServerFinding},
};

/// The program of the npm package `@modelcontextprotocol/conformance`.
const PROGRAM: &str = "conformance";

/// The variables that the program receives: it needs Node, and no secrets.
const VARIABLES: [&str; 2] = ["PATH", "HOME"];

/// A longer message is cut.
const MAX_MESSAGE: usize = 300;

struct Scenario {
    name: &'static str,
    /// Whether it speaks to servers since 2026-07-28.
    is_new: bool,
    /// Whether it sends the headers of a web page of another site, which only a server on this
    /// machine must refuse.
    is_local: bool,
    /// Whether a failure breaks clients.
    is_error: bool,
}

const SCENARIOS: [Scenario; 6] = [
    Scenario { name: "server-initialize", is_new: false, is_local: false, is_error: true },
    Scenario { name: "ping", is_new: false, is_local: false, is_error: true },
    Scenario { name: "tools-list", is_new: false, is_local: false, is_error: true },
    Scenario { name: "server-session-lifecycle", is_new: false, is_local: false, is_error: false },
    Scenario { name: "dns-rebinding-protection", is_new: false, is_local: true, is_error: false },
    Scenario { name: "tools-list", is_new: true, is_local: false, is_error: true },
];

/// One check, as the suite writes it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Check {
    id: String,
    status: String,
    error_message: Option<String>,
    #[serde(default)]
    description: String,
}

/// Runs the suite against a server at a URL that answers the old handshake, the new one, or both.
pub(super) async fn suite(
    url: &str,
    (is_new, is_old): (bool, bool),
    timeout: Duration,
    findings: &mut Vec<ServerFinding>,
) -> CheckedSuite {
    let Ok(program) = Stdio::new(PROGRAM).find_program() else {
        return CheckedSuite::not_run(
            "it is not installed: `npm install --global @modelcontextprotocol/conformance`",
        );
    };
    let mut run = 0;
    for scenario in &SCENARIOS {
        let is_asked = if scenario.is_new { is_new } else { is_old };
        if !is_asked || scenario.is_local && !is_on_this_machine(url) {
            continue;
        }
        let checks = match checks(&program, url, scenario, timeout).await {
            Ok(checks) => checks,
            Err(problem) => {
                return CheckedSuite::not_run(&format!("`{}`: {problem}", scenario.name));
            }
        };
        run += checks.len();
        for check in checks.into_iter().filter(|check| check.status == "FAILURE") {
            let why = check.error_message.unwrap_or(check.description);
            let why: String = why.chars().take(MAX_MESSAGE).collect();
            let message = format!("`{}` of `{}`: {why}", check.id, scenario.name);
            let help = "the suite's own output says more: `conformance server --url URL --scenario \
                        SCENARIO`";
            findings.push(match scenario.is_error {
                true => ServerFinding::error("suite", message, help),
                false => ServerFinding::warning("suite", message, help),
            });
        }
    }
    CheckedSuite::run(run)
}

async fn checks(
    program: &Path,
    url: &str,
    scenario: &Scenario,
    timeout: Duration,
) -> Result<Vec<Check>, String> {
    let failed = |error: std::io::Error| format!("it cannot be run: {error}");
    let results = tempfile::tempdir().map_err(failed)?;
    let mut command = Command::new(program);
    command.args(["server", "--url", url, "--scenario", scenario.name, "--output-dir"]);
    command.arg(results.path()).arg("--timeout").arg(timeout.as_millis().to_string());
    if scenario.is_new {
        command.args(["--spec-version", "2026-07-28"]);
    }
    command.env_clear();
    let known = VARIABLES.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
    command.envs(known).stdin(Pipe::null()).stdout(Pipe::null()).stderr(Pipe::null());
    command.kill_on_drop(true);
    let ended = tokio::time::timeout(timeout.saturating_mul(2), command.status()).await;
    let status = ended.map_err(|_| "it does not end".to_owned())?.map_err(failed)?;
    // One folder for each scenario.
    let folder = fs::read_dir(results.path()).map_err(failed)?.next();
    let Some(folder) = folder.transpose().map_err(failed)? else {
        return Err(format!("it ended without results ({status}); it needs Node 22 or newer"));
    };
    let found = read(&folder.path().join("checks.json")).map_err(|error| error.to_string())?;
    let found = found.ok_or_else(|| format!("it ended without results ({status})"))?;
    serde_json::from_str(&found.text).map_err(|error| format!("its results are invalid: {error}"))
}

/// Whether a URL names this machine.
fn is_on_this_machine(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    ["localhost", "127.0.0.1", "[::1]"]
        .iter()
        .filter_map(|host| authority.strip_prefix(host))
        .any(|port| port.is_empty() || port.starts_with(':'))
}
