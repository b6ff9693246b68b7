//! An engine with the tools of an agent, over a store in a file.

use std::{fs, path::PathBuf, sync::Arc};

use serde_json::Value;
use tempfile::TempDir;
use toolcrib_capabilities::files::{FileLimits, Files, FilesSpec};
use toolcrib_core::{SessionStore as _, Tool, ToolCall, ToolContext, ToolResult};
use toolcrib_engine::{Engine, EngineBuilder, Personality, Redactor, Turn, TurnOptions};
use toolcrib_store::SqliteStore;
use toolcrib_tools::{
    Declaration, clarify,
    memory::{Memory, MemoryScope, MemoryTool},
    todo::TodoTool,
};

pub(crate) struct Agent {
    pub(crate) dir: TempDir,
    pub(crate) store: SqliteStore,
}

impl Agent {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join(".toolcrib/memory")).unwrap();
        let store = SqliteStore::open(dir.path().join(".toolcrib/sessions.db")).unwrap();
        Self { dir, store }
    }

    pub(crate) fn memory(&self, scope: MemoryScope) -> Memory {
        let folder = self.dir.path().join(".toolcrib/memory");
        let mut limits = FileLimits::default();
        limits.max_file_bytes = 256 * 1024;
        let spec = FilesSpec::new("memory", folder)
            .writable()
            .of_state()
            .limits(limits)
            .trash(self.dir.path().join(".toolcrib/trash"));
        let store = self.store.clone();
        let search = Arc::new(move |owner: &_, search: &_| store.search(owner, search));
        Memory::new(Some(Files::open(spec).unwrap()), scope, search)
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(".toolcrib/memory").join(path)
    }

    pub(crate) fn file(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    pub(crate) fn builder(&self, scope: MemoryScope) -> EngineBuilder {
        let memory = self.memory(scope);
        let base = Declaration::new("", "");
        let memories =
            MemoryTool::ALL.map(|tool| tool.build(tool.declaration(&base, None), &memory).unwrap());
        let tasks =
            TodoTool::ALL.map(|tool| tool.build(tool.declaration(&base, None), None).unwrap());
        let page = Tool::builder("page")
            .description("Fetches a page.")
            .untrusted()
            .handler(|_: Value, _: ToolContext| async { "a page" })
            .unwrap();
        Engine::builder()
            .tools(memories)
            .tools(tasks)
            .tool(clarify::build(clarify::declaration(&base, None)).unwrap())
            .tool(page)
            .personality(Personality::new("other").files(["elsewhere"]))
            .redactor(Redactor::new(["sesame-street-42".to_owned()]))
            .kv(self.store.clone())
    }

    pub(crate) fn engine(&self, scope: MemoryScope) -> Engine {
        self.builder(scope).build().unwrap()
    }
}

pub(crate) fn options(principal: &str) -> TurnOptions {
    TurnOptions::default().principal(principal).conversation("work")
}

pub(crate) fn turn(engine: &Engine, principal: &str) -> Turn {
    engine.turn(options(principal)).unwrap()
}

/// One call in a further iteration of a turn.
pub(crate) async fn call(turn: &mut Turn, tool: &str, args: Value) -> ToolResult {
    calls(turn, &[(tool, args)]).await.remove(0)
}

/// The calls of one message.
pub(crate) async fn calls(turn: &mut Turn, calls: &[(&str, Value)]) -> Vec<ToolResult> {
    let mut iteration = turn.iteration().await.unwrap();
    let call = |(at, (name, args)): (usize, &(&str, Value))| {
        ToolCall::new(format!("c{at}"), *name, args.clone())
    };
    let calls: Vec<_> = calls.iter().enumerate().map(call).collect();
    iteration.execute(calls).await
}
