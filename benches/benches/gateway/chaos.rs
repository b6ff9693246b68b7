//! Measures a good server's calls with and without a misbehaving server on the same engine.

use std::{
    env,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::{runtime::Runtime, task::JoinHandle, time::sleep};
use toolcrib_benches::{Cell, Outcome, Table, engine};
use toolcrib_core::ToolCall;
use toolcrib_engine::{Engine, OnFailure, TurnOptions};
use toolcrib_mcp::{McpClient, mcp_client, server::Stdio};

use crate::{
    COMMAND,
    figures::{Round, Rounds, Window},
    roles::ECHO_STDIO,
};

/// The other server's faults: its argument, and the description.
const FAULTS: [(&str, &str); 7] = [
    ("none", "does not misbehave"),
    ("flood-changes", "floods: changes of its list"),
    ("flood-answers", "floods: answers to nothing"),
    ("garbage-only", "floods: lines without messages"),
    ("crash-on-call=1", "crashes at each call"),
    ("hang-at-start", "hangs at its start"),
    ("hang-at-call", "hangs at each call"),
];

/// The other server's timeout.
const PATIENCE: Duration = Duration::from_millis(500);

/// The pause between two calls of the other server.
const PAUSE: Duration = Duration::from_millis(10);

/// For each fault the same calls with and without it, alternating.
pub(crate) fn table(chaos: &Path, rounds: usize) -> Outcome<Table> {
    let runtime = Runtime::new()?;
    let mut rows = Vec::new();
    for (fault, meaning) in FAULTS {
        eprintln!("beside a server that {fault}");
        rows.push(runtime.block_on(row(chaos, fault, meaning, rounds))?);
    }
    Ok(Table {
        title: "A good server's calls beside a bad server",
        command: COMMAND,
        columns: vec![
            "the bad server",
            "alone: median, µs",
            "99 % below, µs",
            "beside it: median, µs",
            "99 % below, µs",
            "median / alone",
            "goal",
            "99 % / alone",
            "calls of it per round",
            "of those good",
        ],
        rows,
    })
}

async fn row(chaos: &Path, fault: &str, meaning: &str, rounds: usize) -> Outcome<Vec<Cell>> {
    let good = good()?;
    let alone = engine().provider_with(Arc::new(good.clone()), OnFailure::Fail).build()?;
    let bad = mcp_client("bad", Stdio::new(chaos.to_string_lossy()).arg(fault))
        .start_timeout(PATIENCE)
        .list_timeout(PATIENCE)
        .call_timeout(PATIENCE)
        .build()?;
    let other_good = self::good()?;
    let beside = engine()
        .provider_with(Arc::new(other_good.clone()), OnFailure::Fail)
        .provider_with(Arc::new(bad.clone()), OnFailure::Omit)
        .build()?;
    let (mut without, mut with) = (Rounds::default(), Rounds::default());
    let calls = Calls::default();
    for _ in 0..rounds {
        without.0.push(round(&alone).await?);
        let bothered = calls.keep_coming(beside.clone());
        let found = round(&beside).await;
        bothered.abort();
        with.0.push(found?);
    }
    for client in [good, other_good, bad] {
        client.close().await;
    }
    let figures = |rounds: &Rounds| {
        [rounds.middle(|round| round.p50).into(), rounds.middle(|round| round.p99).into()]
    };
    let slower =
        |of: fn(&Round) -> f64| with.with(&without, |with, without| of(with) / of(without));
    let per_round = |count: &AtomicU64| Cell::from(count.load(Ordering::Relaxed) / rounds as u64);
    let mut row = vec![Cell::from(meaning)];
    row.extend(figures(&without));
    row.extend(figures(&with));
    row.extend([slower(|round| round.p50).into(), 1.5.into(), slower(|round| round.p99).into()]);
    row.extend([per_round(&calls.made), per_round(&calls.good)]);
    Ok(row)
}

fn good() -> Outcome<McpClient> {
    Ok(mcp_client("good", Stdio::new(env::current_exe()?.to_string_lossy()).arg(ECHO_STDIO))
        .build()?)
}

/// The good server's calls, one by one, each in a separate iteration. Only the call is timed.
async fn round(engine: &Engine) -> Outcome<Round> {
    let mut turn = engine.turn(TurnOptions::default())?;
    let window = Window::now();
    let mut times = Vec::new();
    while window.is_open() {
        let mut iteration = turn.iteration().await?;
        let call = vec![call("mcp__good__echo", json!({ "text": "Hello." }))];
        let sent = Instant::now();
        let results = iteration.execute(call).await;
        window.note(sent, &mut times);
        if let Some(failed) = results.iter().find(|result| !result.is_ok()) {
            return Err(format!("the good server: {}", failed.value).into());
        }
    }
    Ok(Round::of(&times))
}

fn call(tool: &str, arguments: Value) -> ToolCall {
    ToolCall::new("call", tool, arguments)
}

/// Calls of the bad server: made, and answered correctly.
#[derive(Debug, Clone, Default)]
struct Calls {
    made: Arc<AtomicU64>,
    good: Arc<AtomicU64>,
}

impl Calls {
    /// Calls it repeatedly, until the task is stopped.
    fn keep_coming(&self, engine: Engine) -> JoinHandle<()> {
        let own = self.clone();
        tokio::spawn(async move {
            let Ok(mut turn) = engine.turn(TurnOptions::default()) else { return };
            while let Ok(mut iteration) = turn.iteration().await {
                let call = vec![call("mcp__bad__echo", json!({ "id": "1" }))];
                own.made.fetch_add(1, Ordering::Relaxed);
                let answered =
                    iteration.execute(call).await.iter().filter(|one| one.is_ok()).count();
                own.good.fetch_add(answered as u64, Ordering::Relaxed);
                sleep(PAUSE).await;
            }
        })
    }
}
