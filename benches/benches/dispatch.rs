//! Measures the overhead of the pipe: for one call, a batch of 64, 16 that sleep; and whether 16
//! database reads delay other tasks.

use std::{
    future::Future,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::{
    runtime::Runtime,
    task::{JoinHandle, spawn_blocking},
    time::sleep,
};
use toolcrib_benches::{
    Cell, Menu, Outcome, Table, call, engine, median, micros, print, quantile, runtime,
};
use toolcrib_capabilities::database::{Database, DatabaseSpec, Seed};
use toolcrib_core::{CancellationToken, Tool, ToolCall, ToolContext};
use toolcrib_engine::{Engine, TurnOptions};
use toolcrib_tools::{Declaration, sql::SqlToolSpec};

const COMMAND: &str = "cargo bench -p toolcrib-benches --bench dispatch";

/// Number of batches of each kind.
const BATCHES: usize = 500;

/// Number of batches that take 10 ms and more.
const SLOW_BATCHES: usize = 100;

const SLEEP: Duration = Duration::from_millis(10);

const BEAT: Duration = Duration::from_millis(1);

fn main() -> Outcome {
    let runtime = runtime()?;
    print(&[dispatched(&runtime)?, heartbeat(&runtime)?])
}

fn dispatched(runtime: &Runtime) -> Outcome<Table> {
    let trivial = Menu::Ten.engine()?.build()?;
    let calls: Vec<ToolCall> = (0..64).map(call).collect();
    let one = batches(runtime, &trivial, &[call(0)], BATCHES * 10)?;
    let many = batches(runtime, &trivial, &calls, BATCHES)?;

    let sleeping = engine()
        .tool(
            Tool::builder("block")
                .description("Sleeps on a separate thread.")
                .blocking(|_: Value, _: ToolContext| thread::sleep(SLEEP))?,
        )
        .tool(Tool::builder("wait").description("Sleeps on tokio's timer.").handler(
            |_: Value, _: ToolContext| async {
                sleep(SLEEP).await;
            },
        )?)
        .build()?;
    let blocking = batches(runtime, &sleeping, &sixteen("block"), SLOW_BATCHES)?;
    let bare_blocking = bare(runtime, || async {
        join_all((0..16).map(|_| spawn_blocking(|| thread::sleep(SLEEP)))).await;
    });
    let waiting = batches(runtime, &sleeping, &sixteen("wait"), SLOW_BATCHES)?;
    let bare_waiting = bare(runtime, || async {
        join_all((0..16).map(|_| sleep(SLEEP))).await;
    });
    Ok(Table {
        title: "Dispatch",
        command: COMMAND,
        columns: vec!["one batch", "median, µs", "99 % below, µs", "without us, µs", "goal, µs"],
        rows: vec![
            row("one trivial call", &one, "–".into(), 10.0.into()),
            row("64 trivial calls", &many, "–".into(), 300.0.into()),
            row("16 that sleep 10 ms", &blocking, bare_blocking.into(), 10_500.0.into()),
            row("16 that await tokio's 10 ms", &waiting, bare_waiting.into(), "–".into()),
        ],
    })
}

fn row(name: &str, micros: &[f64], bare: Cell, goal: Cell) -> Vec<Cell> {
    let each = || micros.iter().copied();
    vec![name.into(), median(each()).into(), quantile(each(), 0.99).into(), bare, goal]
}

fn sixteen(tool: &str) -> Vec<ToolCall> {
    (0..16).map(|id| ToolCall::new(format!("call_{id}"), tool, json!({}))).collect()
}

/// The time of each batch, in microseconds.
fn batches(
    runtime: &Runtime,
    engine: &Engine,
    calls: &[ToolCall],
    batches: usize,
) -> Outcome<Vec<f64>> {
    runtime.block_on(async {
        let mut turn = engine.turn(TurnOptions::default())?;
        let mut iteration = turn.iteration().await?;
        let mut times = Vec::with_capacity(batches);
        for _ in 0..batches {
            let batch = calls.to_vec();
            let began = Instant::now();
            let results = iteration.execute(batch).await;
            times.push(micros(began.elapsed()));
            if let Some(failed) = results.iter().find(|result| !result.is_ok()) {
                return Err(format!("a call of `{}` failed: {}", failed.name, failed.value).into());
            }
        }
        Ok(times)
    })
}

/// The median time of the same work without an engine, in microseconds.
fn bare<F: Future<Output = ()>>(runtime: &Runtime, work: impl Fn() -> F) -> f64 {
    runtime.block_on(async {
        let mut times = Vec::with_capacity(SLOW_BATCHES);
        for _ in 0..SLOW_BATCHES {
            let began = Instant::now();
            work().await;
            times.push(micros(began.elapsed()));
        }
        median(times)
    })
}

fn heartbeat(runtime: &Runtime) -> Outcome<Table> {
    let folder = tempfile::tempdir()?;
    let engine = engine().tool(reader(folder.path())?).build()?;
    let calls: Vec<ToolCall> = sixteen("search");
    let idle = Heart::beat_while(runtime, || {
        runtime.block_on(async { sleep(Duration::from_secs(1)).await });
        Ok(())
    })?;
    let mut times = Vec::new();
    let busy = Heart::beat_while(runtime, || {
        times = batches(runtime, &engine, &calls, SLOW_BATCHES)?;
        Ok(())
    })?;
    Ok(Table {
        title: "A heartbeat of 1 ms beside 16 SQL reads at once",
        command: COMMAND,
        columns: vec![
            "",
            "batch, median, µs",
            "beats",
            "late, median, µs",
            "greatest, µs",
            "goal, µs",
        ],
        rows: vec![
            late("nothing else runs", "–".into(), &idle, "–".into()),
            late("batches of 16 reads", median(times).into(), &busy, 5_000.0.into()),
        ],
    })
}

fn late(name: &str, batch: Cell, beats: &[f64], goal: Cell) -> Vec<Cell> {
    let greatest = beats.iter().copied().fold(0.0, f64::max);
    let middle = median(beats.iter().copied());
    vec![name.into(), batch, (beats.len() as u64).into(), middle.into(), greatest.into(), goal]
}

/// A tool that scans a table of 5,000 rows and returns 200 of them.
fn reader(folder: &Path) -> Outcome<Tool> {
    let seed = "
        CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT, note TEXT);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
        INSERT INTO orders SELECT i, 'customer ' || (i % 97), 'A note on order ' || i FROM n;";
    let spec = DatabaseSpec {
        name: "orders".into(),
        file: folder.join("orders.db"),
        seed: Seed { name: "seed.sql".into(), sql: seed.into() },
    };
    let database = Database::open(&spec, &CancellationToken::new())?;
    let mut declaration = Declaration::new("search", "Orders whose notes end in a digit.");
    declaration.annotations.read_only = true;
    let statement =
        "SELECT id, customer, note FROM orders WHERE note LIKE '%7' ORDER BY customer, id";
    Ok(SqlToolSpec::new(declaration, [statement.into()]).build(&database)?)
}

/// A task that wakes every millisecond and records its delay, in microseconds.
struct Heart {
    beats: Arc<Mutex<Vec<f64>>>,
    task: JoinHandle<()>,
}

impl Heart {
    fn beat_while(runtime: &Runtime, work: impl FnOnce() -> Outcome) -> Outcome<Vec<f64>> {
        let beats = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&beats);
        let task = runtime.spawn(async move {
            loop {
                let due = Instant::now() + BEAT;
                sleep(BEAT).await;
                noted.lock().unwrap_or_else(PoisonError::into_inner).push(micros(due.elapsed()));
            }
        });
        let heart = Self { beats, task };
        work()?;
        let beats =
            std::mem::take(&mut *heart.beats.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(beats)
    }
}

impl Drop for Heart {
    fn drop(&mut self) {
        self.task.abort();
    }
}
