//! Measures what a session costs: the journal's writes of a call, a resumed session of 1,000 calls,
//! the memory of a long conversation, and the growth of an iteration and of a turn with the number of
//! calls before it. Wall time, because a sync to disk is a wait; growth is processor time.
#![allow(clippy::disallowed_methods, reason = "it measures stores in files")]

use std::{
    fs,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::stream;
use serde_json::{Value, json};
use toolcrib_agent::{Agent, RunOptions, Session, Settings, TurnLimits};
use toolcrib_benches::{
    Caller, Cell, Menu, Outcome, Table, Times, cpu_time, median, micros, print, quantile,
    session::{intent, new_session, result, stored, turn_began, turn_ended},
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

/// The iterations of a run whose first and last ones are compared, and the number of each.
const ITERATIONS: usize = 20_000;
const ENDS: usize = 100;

/// The numbers of calls before a turn.
const BEFORE: [usize; 2] = [1_000, 10_000];

/// The characters of a result.
const RESULT: usize = 500;

fn main() -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // On the disk of the build, not on a file system in memory.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let memory = runtime.block_on(memory(folder.path()))?;
    let growth = runtime.block_on(growth(folder.path()))?;
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
        growth,
    ];
    print(&tables)
}

fn journal(folder: &Path) -> Outcome<Vec<Vec<Cell>>> {
    let store = SqliteStore::open(folder.join("journal.db"))?;
    let info = store.create(&new_session("journal"))?;
    let lease = store.acquire(&SessionOwner::default(), &info.id, Duration::from_secs(600))?;
    store.write(&lease, &[turn_began()])?;
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
            store.write(&lease, &[before])?;
            store.write(&lease, &[after])?;
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

/// An iteration at the beginning and at the end of a run, with sums of usage; and turns after other
/// turns of many calls, all of whose messages are sent, or of which the last twenty are.
async fn growth(folder: &Path) -> Outcome<Table> {
    let path = folder.join("growth.db");
    let store = Arc::new(SqliteStore::open(&path)?);
    let session = Session::create(store.clone(), new_session("long")).await?;
    let times = Times::default();
    let watched = times.clone();
    let model = Arc::new(Caller::new(ITERATIONS, move |_| watched.note()));
    let settings = Settings {
        max_iterations: u32::try_from(ITERATIONS)? + 1,
        turn_timeout: Duration::from_secs(3_600),
        limits: TurnLimits::NONE,
        ..Settings::default()
    };
    let long = Agent::new(Menu::Ten.engine()?.build()?, model, settings);
    let options = RunOptions::default().session(&session).usage_store(store.clone());
    long.run("Read the ledgers.", options).await.into_answer()?;
    session.close().await?;
    let each = times.each();
    let middle = |from: usize| median(each.iter().copied().skip(from).take(ENDS));
    let mut rows = vec![vec![
        "an iteration after 100 and 20,000 calls, µs".into(),
        middle(ENDS).into(),
        middle(ITERATIONS - 2 * ENDS).into(),
    ]];
    for sends_all in [true, false] {
        let mut row = vec![Cell::from(match sends_all {
            true => "a turn that sends the whole conversation, ms",
            false => "a turn that sends the last 20 messages, ms",
        })];
        for calls in BEFORE {
            let more = match sends_all {
                true => Vec::new(),
                false => (1..2 * calls - 20).collect(),
            };
            let more = [SessionRecord::LeftOut(more), turn_ended()];
            let info =
                stored(&SqliteStore::open(&path)?, &format!("{sends_all}-{calls}"), calls, more)?;
            let agent = agent(false)?;
            let began = cpu_time();
            let store = Arc::new(SqliteStore::open(&path)?);
            let session = Session::open(store, &SessionOwner::default(), &info.id).await?;
            agent.run("Go on.", RunOptions::default().session(&session)).await.into_answer()?;
            row.push((micros(cpu_time() - began) / 1000.0).into());
            session.close().await?;
        }
        rows.push(row);
    }
    Ok(Table {
        title: "Growth of a session",
        command: COMMAND,
        columns: vec!["processor time after 1,000 and 10,000 calls", "fewer", "more"],
        rows,
    })
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
