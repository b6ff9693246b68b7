//! Where the servers are, and an engine in front of one of them.

use std::{
    env, fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;
use toolcrib_core::{ErrorCode, ToolCall, ToolResult, unfence};
use toolcrib_engine::{Engine, Redactor, Turn, TurnOptions};
use toolcrib_mcp::{McpClient, mcp_client, server::Stdio, server::Transport};
use toolcrib_skip::skip;
use toolcrib_testing::EventRecorder;

const VARIABLE: &str = "TOOLCRIB_PEERS";
/// Stands in the environment of a server, by which its processes are found.
const MARK: &str = "TOOLCRIB_PEER_MARK";

/// The folder that `cargo xtask peers` installs into.
pub(crate) struct Peers(PathBuf);

impl Peers {
    /// `None` where none is named: the test is skipped.
    pub(crate) fn find() -> Option<Self> {
        let Some(folder) = env::var_os(VARIABLE) else {
            skip("no MCP peers are installed; run `cargo xtask peers`");
            return None;
        };
        let folder = PathBuf::from(folder);
        assert!(folder.join("installed.txt").is_file(), "run `cargo xtask peers`");
        Some(Self(folder))
    }

    /// A server of npm, by the name of its program.
    pub(crate) fn npm(&self, program: &str) -> Stdio {
        Stdio::new(text(&self.node())).arg(text(&self.script(program)))
    }

    /// The same as a command.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.node());
        command.arg(self.script(program));
        command
    }

    fn node(&self) -> PathBuf {
        self.0.join("node/bin/node")
    }

    fn script(&self, program: &str) -> PathBuf {
        self.0.join("node_modules/.bin").join(program)
    }

    /// A server of the Python index, by the name of its program.
    pub(crate) fn python(&self, program: &str) -> Stdio {
        Stdio::new(text(&self.0.join("venv/bin").join(program)))
    }
}

pub(crate) fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// One server of an engine, and its folder.
pub(crate) struct Server {
    pub(crate) client: McpClient,
    pub(crate) folder: TempDir,
    pub(crate) heard: EventRecorder,
    turn: Turn,
}

impl Server {
    /// A program that receives its folder.
    pub(crate) fn start(name: &str, program: impl FnOnce(&Path) -> Stdio) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = program(folder.path()).env(MARK, text(folder.path()));
        Self::reach(name, program, folder)
    }

    pub(crate) fn reach(name: &str, at: impl Into<Transport>, folder: TempDir) -> Self {
        let client = mcp_client(name, at).trusted().build().unwrap();
        let engine = Engine::builder()
            .redactor(Redactor::default())
            .provider(Arc::new(client.clone()))
            .build()
            .unwrap();
        let heard = EventRecorder::attach(engine.events());
        let turn = engine.turn(TurnOptions::default()).unwrap();
        Self { client, folder, heard, turn }
    }

    /// The names of the menu, without the server's prefix.
    pub(crate) async fn names(&mut self) -> Vec<String> {
        let start = format!("mcp__{}__", self.client.name());
        let iteration = self.turn.iteration().await.unwrap();
        let names = iteration.menu().names();
        names.map(|name| name.as_str().strip_prefix(&start).unwrap().to_owned()).collect()
    }

    pub(crate) async fn call(&mut self, tool: &str, args: Value) -> ToolResult {
        let mut iteration = self.turn.iteration().await.unwrap();
        let name = self.client.name().tool_name(tool);
        let mut results = iteration.execute(vec![ToolCall::new("id", name, args)]).await;
        results.remove(0)
    }

    /// Calls, and the call goes well.
    pub(crate) async fn says(&mut self, tool: &str, args: Value) -> String {
        let result = self.call(tool, args).await;
        assert_eq!(result.code, None, "{}", result.value);
        fenced(&result)
    }

    /// Calls, and the server refuses in its own words.
    pub(crate) async fn refuses(&mut self, tool: &str, args: Value) -> String {
        let result = self.call(tool, args).await;
        assert_eq!(result.code, Some(ErrorCode::ExecutionFailed), "{}", result.value);
        fenced(&result)
    }

    pub(crate) fn protocol(&self) -> Arc<str> {
        self.client.status().protocol.unwrap()
    }

    /// Closes the client; nothing of the server runs any more.
    pub(crate) async fn close(self) {
        let mark = format!("{MARK}={}", text(self.folder.path()));
        assert_ne!(processes(&mark), 0, "the server did not run");
        self.client.close().await;
        assert_eq!(processes(&mark), 0, "something of the server still runs");
    }
}

/// A server's text; a model reads it in a fence.
fn fenced(result: &ToolResult) -> String {
    assert!(result.untrusted);
    assert_ne!(unfence(&result.text).0, &*result.text, "it is not fenced");
    result.value.to_string()
}

/// How many processes have this in their environment.
fn processes(mark: &str) -> usize {
    let has_mark = |entry: &fs::DirEntry| {
        // Those of others cannot be read, and those that end meanwhile have none.
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    };
    fs::read_dir("/proc").unwrap().flatten().filter(has_mark).count()
}
