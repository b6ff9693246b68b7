//! Projects with the server of `fixtures/remote_faults.py`, and clients of the gateway before it.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Stdio},
};

use serde_json::{Value, json};

use crate::support::{Project, toolcrib};

pub(super) fn script() -> String {
    fixture("remote_faults.py")
}

fn fixture(name: &str) -> String {
    format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// A project with the server `f`, of which more is said.
pub(super) fn project(more: &str) -> Project {
    project_of("remote_faults.py", more)
}

/// The same with another server.
pub(super) fn project_of(script: &str, more: &str) -> Project {
    let script = fixture(script);
    let file = format!("[mcp.f]\ncommand = 'python3'\nargs = ['{script}']\n{more}\n");
    Project::of(&[("toolcrib.toml", &file)])
}

/// A folder with a file of the server `f`, with more keys in its entry and beside `mcpServers`.
pub(super) fn file(entry: &Value, beside: &Value) -> Project {
    let mut server = json!({ "command": "python3", "args": [script()] });
    server.as_object_mut().unwrap().extend(entry.as_object().unwrap().clone());
    let mut file = json!({ "mcpServers": { "f": server } });
    file.as_object_mut().unwrap().extend(beside.as_object().unwrap().clone());
    Project::of(&[("file.json", &file.to_string())])
}

/// The names of the server's own tools that a menu with such a file offers, and standard error.
pub(super) fn offered(folder: &Project) -> (Option<i32>, Vec<String>, String) {
    let mut command = toolcrib();
    let args = ["menu", "--import", "file.json", "--allow-stray-children"];
    let output = command.args(args).current_dir(folder.path()).output().unwrap();
    let menu = String::from_utf8(output.stdout).unwrap();
    let (offered, _) = menu.split_once("\nwithheld").unwrap_or_default();
    let names = offered.lines().filter_map(|line| line.strip_prefix("  mcp__f__"));
    let names = names.filter_map(|line| line.split(' ').next()).map(str::to_owned).collect();
    (output.status.code(), names, String::from_utf8(output.stderr).unwrap())
}

/// A client of the gateway on pipes.
pub(super) struct Client {
    child: Child,
    stdin: ChildStdin,
    lines: BufReader<ChildStdout>,
}

impl Client {
    pub(super) fn of(project: &Project) -> Self {
        let mut command = project.command(&["serve"]);
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = piped.spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let mut client = Self { child, stdin, lines };
        let params = json!({
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        client.ask("initialize", &params);
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.stdin, "{message}").unwrap();
    }

    /// The answer to a request, and all lines before it as they came.
    pub(super) fn ask(&mut self, method: &str, params: &Value) -> (Value, Vec<String>) {
        let id = format!("{method} {params}");
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        let mut before = Vec::new();
        loop {
            let mut line = String::new();
            assert_ne!(self.lines.read_line(&mut line).unwrap(), 0, "the output ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == *id {
                return (message, before);
            }
            before.push(line);
        }
    }

    /// A call of the server's tool.
    pub(super) fn call(&mut self, tool: &str) -> (Value, Vec<String>) {
        let name = format!("mcp__f__{tool}");
        let meta = json!({ "progressToken": "p" });
        self.ask("tools/call", &json!({ "name": name, "arguments": {}, "_meta": meta }))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
