//! Measures what a session costs: the journal's writes of a call, a resumed session of 1,000 calls,
//! and the memory of a long conversation. Wall time, because a sync to disk is a wait.
#![allow(clippy::disallowed_methods, reason = "it measures stores in files")]

use std::{
    fs,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::stream;
use serde_json::{Value, json};
use toolcrib_agent::{Agent, RunOptions, Session};
use toolcrib_benches::{
    Cell, Outcome, Table, median, micros, print, quantile,
    session::{intent, new_session, result, stored, turn_began},
};
use toolcrib_core::{
    CallOutcome, Message, Model, ModelChunk, ModelRequest, ModelResponse, ModelStream,
    SessionOwner, SessionRecord, SessionStore as _, Tool, ToolCall, ToolContext,
};
use toolcrib_engine::Redactor;
use toolcrib_store::SqliteStore;

const COMMAND: &str = "cargo bench -p toolcrib-benches --bench sessions";

/// The number of measured calls of each kind.
const CALLS: usize = 1_000;

/// The number of measured resumed runs.
const RESUMED: usize = 30;

/// The characters of a result.
const RESULT: usize = 500;

fn main() -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // On the disk of the build, not on a file system in memory.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let memory = runtime.block_on(memory(folder.path()))?;
    let tables = [
        Table {
            title: "The journal's writes of one call",
            command: COMMAND,
            columns: vec!["intent and outcome with a result", "median, µs", "99 %, µs", "goal, µs"],
            rows: journal(folder.path())?,
        },
        Table {
            title: "Resuming a session",
            command: COMMAND,
            columns: vec!["to the next request", "median, ms", "goal, ms"],
            rows: runtime.block_on(resume(folder.path()))?,
        },
        memory,
    ];
    print(&tables)
}

fn journal(folder: &Path) -> Outcome<Vec<Vec<Cell>>> {
    let store = SqliteStore::open(folder.join("journal.db"))?;
    let info = store.create(&new_session("journal"))?;
    let lease = store.acquire(&SessionOwner::default(), &info.id, Duration::from_secs(600))?;
    store.write(&lease, 0, &[turn_began()])?;
    let mut rows = Vec::new();
    let kinds = [
        ("normal sync: `read_only` or `idempotent`", true, Cell::from(100.0)),
        ("full sync: every other call", false, Cell::from("")),
    ];
    for (name, idempotent, goal) in kinds {
        let mut times = Vec::new();
        for number in 0..CALLS {
            let id = format!("c{idempotent}{number}");
            let (outcome, result) = (CallOutcome::Succeeded, Some(result(&id)));
            let before = intent(&id, idempotent);
            let after = SessionRecord::Outcome { call_id: id.into(), outcome, result };
            let began = Instant::now();
            store.write(&lease, 0, &[before])?;
            store.write(&lease, 0, &[after])?;
            times.push(micros(began.elapsed()));
        }
        let slow = quantile(times.clone(), 0.99);
        rows.push(vec![name.into(), median(times).into(), slow.into(), goal]);
    }
    Ok(rows)
}

/// Answers at once, or calls the tool first.
struct Quick {
    calls: bool,
}

impl Model for Quick {
    fn name(&self) -> &str {
        "quick"
    }

    fn respond(self: Arc<Self>, request: ModelRequest) -> ModelStream {
        let is_answer = !self.calls
            || request.messages.last().is_some_and(|last| matches!(last, Message::Tool { .. }));
        let calls = match is_answer {
            true => Vec::new(),
            false => {
                vec![ToolCall::new("", "look", json!({ "order": request.messages.len() }))]
            }
        };
        let response = ModelResponse { text: "Yes.".to_owned(), calls, ..ModelResponse::default() };
        Box::pin(stream::iter([Ok(ModelChunk::Done(response))]))
    }
}

fn agent(calls: bool) -> Outcome<Agent> {
    let look = Tool::builder("look")
        .description("Looks.")
        .input_schema(json!({ "type": "object" }))
        .read_only()
        .handler(|_: Value, _: ToolContext| async { "x".repeat(RESULT) })?;
    let builder = Agent::builder().model(Quick { calls }).tool(look);
    Ok(builder
        .engine(|engine| engine.redactor(Redactor::default()))
        .max_iterations(5_000)
        .build()?)
}

/// A session whose process was killed after 1,000 responses with one call each.
async fn resume(folder: &Path) -> Outcome<Vec<Vec<Cell>>> {
    let owner = SessionOwner::default();
    let path = folder.join("resume.db");
    let mut times = Vec::new();
    for number in 0..RESUMED {
        let info = stored(&SqliteStore::open(&path)?, &format!("s{number}"), CALLS, [])?;
        let agent = agent(false)?;
        let began = Instant::now();
        let store = Arc::new(SqliteStore::open(&path)?);
        let session = Session::open(store, &owner, &info.id).await?;
        let outcome = agent.resume(RunOptions::default().session(&session)).await;
        times.push(micros(began.elapsed()) / 1000.0);
        if outcome.messages.len() != 2 * CALLS + 2 {
            return Err(format!("it was not resumed: {:?}", outcome.error).into());
        }
        session.close().await?;
    }
    Ok(vec![vec!["1,000 calls".into(), median(times).into(), 50.0.into()]])
}

/// The memory of the process, in MiB.
fn resident() -> Outcome<f64> {
    let pages: f64 = fs::read_to_string("/proc/self/statm")?
        .split(' ')
        .nth(1)
        .ok_or("the memory of the process is not known")?
        .parse()?;
    Ok(pages * 4096.0 / 1024.0 / 1024.0)
}

async fn memory(folder: &Path) -> Outcome<Table> {
    let store = Arc::new(SqliteStore::open(folder.join("memory.db"))?);
    let session = Session::create(store, new_session("memory")).await?;
    let agent = agent(true)?;
    let mut after_ten = 0.0;
    for turn in 1..=100 {
        let options = RunOptions::default().session(&session);
        agent.run(format!("Look at order {turn}."), options).await.into_answer()?;
        if turn == 10 {
            after_ten = resident()?;
        }
    }
    let after_hundred = resident()?;
    session.close().await?;
    Ok(Table {
        title: "Memory of a session",
        command: COMMAND,
        columns: vec!["turns with one call", "after 10, MiB", "after 100, MiB", "ratio", "goal"],
        rows: vec![vec![
            "100".into(),
            after_ten.into(),
            after_hundred.into(),
            (after_hundred / after_ten).into(),
            1.1.into(),
        ]],
    })
}
