//! Projects in temporary folders, and the program run on them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;
use toolcrib_models::Vendor;
use toolcrib_skip::skip;

use crate::terminal::Terminal;

/// A project in a temporary folder.
pub(crate) struct Project {
    dir: TempDir,
}

/// The result of a run of the program.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Project {
    /// A copy of the support desk.
    pub(crate) fn desk() -> Self {
        Self::copy_of("support-desk")
    }

    /// A copy of a project of `examples/`.
    pub(crate) fn copy_of(example: &str) -> Self {
        let this = Self { dir: TempDir::new().unwrap() };
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        copy(&examples.join(example), this.path());
        this
    }

    /// Copies the support desk to a folder.
    pub(crate) fn copy_desk(to: &Path) {
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/support-desk");
        copy(&example, to);
    }

    /// A project of these files.
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let this = Self { dir: TempDir::new().unwrap() };
        for (name, text) in files {
            this.write(name, text);
        }
        this
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The program on this project.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = toolcrib();
        command.args(args).arg("--project").arg(self.path());
        command
    }

    /// Runs it to the end.
    pub(crate) fn toolcrib(&self, args: &[&str]) -> Outcome {
        self.command(args).output().unwrap().into()
    }

    /// Runs it with `--json`.
    pub(crate) fn json(&self, args: &[&str]) -> (Option<i32>, Value) {
        let args: Vec<_> = args.iter().copied().chain(["--json"]).collect();
        let outcome = self.toolcrib(&args);
        let value = serde_json::from_str(&outcome.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}{}", outcome.stdout, outcome.stderr));
        (outcome.code, value)
    }

    /// The example's database.
    pub(crate) fn database(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.state().join("desk.db")).unwrap()
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.path().join(".toolcrib")
    }

    /// The number of refunds of an order.
    pub(crate) fn refunds(&self, order: u32) -> u32 {
        self.database()
            .query_row("SELECT count(*) FROM refunds WHERE order_id = ?1", [order], |row| {
                row.get(0)
            })
            .unwrap()
    }
}

/// Whether a test that can be short or long is long: `cargo xtask full` sets this.
pub(crate) fn in_full() -> bool {
    std::env::var_os("TOOLCRIB_FULL").is_some()
}

/// The program, without the tester's environment getting in its way: keys and addresses of models
/// least of all.
pub(crate) fn toolcrib() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolcrib"));
    command.stdin(Stdio::null()).env("NO_COLOR", "1").env("XDG_CONFIG_HOME", config_home());
    // The sessions of runs without a project.
    command.env("XDG_STATE_HOME", config_home().with_extension("state"));
    for vendor in Vendor::ALL {
        command.env_remove(vendor.base_url_variable());
        for variable in vendor.key_variables() {
            command.env_remove(variable);
        }
    }
    command
}

/// The trust records of the tests of this process, instead of the tester's.
pub(crate) fn config_home() -> PathBuf {
    let name = format!("config-{}", std::process::id());
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

impl From<Output> for Outcome {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        // Leftovers of using the example.
        let name = entry.file_name();
        if name == ".toolcrib" || name.as_encoded_bytes().ends_with(b".log") {
            continue;
        }
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Runs a command at a terminal, where it is answered once it has written `prompt`: with `answer`,
/// else with the end of its input. Gives its exit code and all that stood on the terminal.
pub(crate) fn at_terminal(command: &Command, prompt: &str, answer: &str) -> (Option<i32>, String) {
    let mut terminal = Terminal::start(command, 200);
    if terminal.wait_or_end(prompt) {
        terminal.send(if answer.is_empty() { "\u{4}" } else { answer });
    }
    let (code, _, said) = terminal.end();
    (code, said)
}

/// The files and folders below a folder, with their sizes.
pub(crate) fn listing(dir: &Path) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten() {
        let entry = entry.unwrap();
        found.push((entry.path(), entry.metadata().unwrap().len()));
        found.extend(listing(&entry.path()));
    }
    found.sort();
    found
}

/// An MCP server in Python with tools. Its function `answer(method, params)` returns the fields of a
/// result; those of `initialize` replace the usual ones.
pub(crate) fn python_server(answer: &str) -> String {
    format!(
        r#"
import json, sys
{answer}
for line in sys.stdin:
    message = json.loads(line)
    method, params = message.get("method"), message.get("params") or {{}}
    if "id" not in message:
        continue
    result = {{}}
    if method == "initialize":
        result = {{"protocolVersion": params.get("protocolVersion"), "capabilities": {{"tools": {{}}}},
                  "serverInfo": {{"name": "s", "version": "1"}}}}
    result.update(answer(method, params) or {{}})
    print(json.dumps({{"jsonrpc": "2.0", "id": message["id"], "result": result}}), flush=True)
"#
    )
}

/// Waits until a condition is true; fails loudly if it never is.
pub(crate) fn wait_for(mut holds: impl FnMut() -> bool) {
    for _ in 0..30_000 {
        if holds() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("waited for five minutes in vain");
}

/// Whether this machine enforces all tiers, as `doctor` says; if not, the tests of them are skipped.
pub(crate) fn sandboxes_are_possible() -> bool {
    let doctor: Outcome = toolcrib().args(["doctor", "--quiet"]).output().unwrap().into();
    let possible = doctor.code == Some(0);
    if !possible {
        skip(
            "this machine does not enforce all sandboxes; `toolcrib doctor` names what is missing",
        );
    }
    possible
}
