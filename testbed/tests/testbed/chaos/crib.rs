//! An engine with two servers, a good one and one with a fault.

use std::{collections::BTreeMap, fs, path::Path, sync::Arc, time::Duration};

use serde_json::json;
use tempfile::TempDir;
use toolcrib_core::{ErrorCode, ToolCall, ToolResult};
use toolcrib_engine::{Engine, OnFailure, Turn, TurnOptions};
use toolcrib_mcp::{McpClient, McpClientBuilder, mcp_client, server::Stdio};

use super::left;

/// The log of `chaos-mcp`.
pub(crate) struct Log(Vec<String>);

impl Log {
    fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap();
        Self(text.lines().map(str::to_owned).collect())
    }

    /// How often each call was executed.
    pub(crate) fn executed(&self) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for id in self.0.iter().filter_map(|line| line.strip_prefix("call ")) {
            *counts.entry(id).or_default() += 1;
        }
        counts
    }

    pub(crate) fn count(&self, event: &str) -> usize {
        self.0.iter().filter(|line| line.starts_with(event)).count()
    }
}

/// The outcome of one call.
pub(crate) struct Made {
    pub(crate) id: String,
    /// Which iteration made it, from 1.
    pub(crate) iteration: usize,
    pub(crate) code: Option<ErrorCode>,
    pub(crate) value: Arc<str>,
}

pub(crate) struct Crib {
    folder: TempDir,
    tasks_before: usize,
    good: McpClient,
    chaos: McpClient,
    turn: Turn,
    made: usize,
}

impl Crib {
    /// Two servers on one engine; `set` configures the client of the faulty one.
    pub(crate) fn new(fault: &str, set: impl FnOnce(McpClientBuilder) -> McpClientBuilder) -> Self {
        let tasks_before = left::tasks();
        let folder = tempfile::tempdir().unwrap();
        let program = |log: &str, fault: &str| {
            let log = folder.path().join(log);
            Stdio::new(env!("CARGO_BIN_EXE_chaos-mcp")).args([
                "--log",
                log.to_str().unwrap(),
                fault,
            ])
        };
        let good = mcp_client("good", program("good.log", "none")).build().unwrap();
        let chaos = set(mcp_client("chaos", program("chaos.log", fault))).build().unwrap();
        let engine = Engine::builder()
            .provider_with(Arc::new(chaos.clone()), OnFailure::Omit)
            .provider(Arc::new(good.clone()))
            .build()
            .unwrap();
        let turn = engine.turn(TurnOptions::default()).unwrap();
        Self { folder, tasks_before, good, chaos, turn, made: 0 }
    }

    /// One iteration with two concurrent calls to each server. Those to the good one succeed;
    /// returns the others.
    pub(crate) async fn iterate(&mut self) -> Vec<Made> {
        let mut iteration = self.turn.iteration().await.unwrap();
        let calls: Vec<ToolCall> = ["chaos", "good", "chaos", "good"]
            .iter()
            .map(|server| {
                self.made += 1;
                let id = format!("{server}-{}", self.made);
                ToolCall::new(id.as_str(), format!("mcp__{server}__echo"), json!({"id": id}))
            })
            .collect();
        let results = iteration.execute(calls).await;
        let number = usize::try_from(iteration.number()).unwrap();
        let (good, chaos): (Vec<ToolResult>, Vec<ToolResult>) =
            results.into_iter().partition(|result| &*result.name == "mcp__good__echo");
        assert_eq!((good.len(), chaos.len()), (2, 2));
        for result in good {
            assert_eq!((result.code, &result.value), (None, &result.call_id));
        }
        chaos
            .into_iter()
            .map(|result| Made {
                id: result.call_id.to_string(),
                iteration: number,
                code: result.code,
                value: result.value,
            })
            .collect()
    }

    /// Ends everything, and checks that nothing is left. Returns the log of the faulty server.
    pub(crate) async fn end(self, by_close: bool) -> Log {
        let Self { folder, tasks_before, good, chaos, turn, made } = self;
        if by_close {
            chaos.close().await;
            good.close().await;
            // The faulty program may still be starting: it is killed and not awaited.
            assert_eq!(left::processes(&folder.path().join("good.log")), [""; 0]);
        }
        drop((turn, good, chaos));
        left::no_process(folder.path()).await;
        left::no_task(tasks_before).await;
        let good = Log::read(&folder.path().join("good.log"));
        assert_eq!(good.executed().len(), made / 2);
        assert!(good.executed().values().all(|count| *count == 1));
        assert_eq!(good.count("start "), 1, "the good server was started over");
        Log::read(&folder.path().join("chaos.log"))
    }
}

/// Short enough for a test, long enough for a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(2);
