//! Complete runs of the loop in separate processes.

use std::{
    env,
    process::Command,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tokio::runtime::Runtime;
use toolcrib_agent::{Agent, EndReason, RunOptions, Settings, TurnLimits};
use toolcrib_core::Model;

use crate::{
    clock::{cpu_time, median, micros, peak_rss},
    fixture::Menu,
    table::Outcome,
};

/// Number of iterations of a run, beside the one that answers.
pub const ITERATIONS: usize = 200;

/// Number of processes for each kind of loop; figures are medians over them.
pub const PROCESSES: usize = 15;

/// Number of iterations that count as a run's first, and as its last.
const ENDS: usize = 20;

/// The kind that this process was started to measure, if [`in_processes`] started it.
pub fn asked() -> Option<String> {
    let mut args = env::args().skip_while(|arg| arg != "--one");
    args.nth(1)
}

/// Starts this program `times` times for each of these kinds, and returns the JSON output of each.
/// Kinds alternate, so that a temporary disturbance affects all alike.
///
/// # Errors
/// The error output of a process that fails.
pub fn in_processes<T: DeserializeOwned>(times: usize, kinds: &[String]) -> Outcome<Vec<Vec<T>>> {
    let program = env::current_exe()?;
    let mut found: Vec<Vec<T>> = kinds.iter().map(|_| Vec::new()).collect();
    for _ in 0..times {
        for (kind, found) in kinds.iter().zip(&mut found) {
            let output = Command::new(&program).args(["--one", kind]).output()?;
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr);
                return Err(format!("{kind}: {said}").into());
            }
            found.push(serde_json::from_slice(&output.stdout)?);
        }
    }
    Ok(found)
}

/// The start of each operation, in CPU time and in wall time.
#[derive(Debug, Clone, Default)]
pub struct Times(Arc<Mutex<Vec<(Duration, Instant)>>>);

impl Times {
    /// Records a start now.
    pub fn note(&self) {
        let now = (cpu_time(), Instant::now());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(now);
    }

    /// The CPU time of each, up to the start of the next, in microseconds.
    pub fn each(&self) -> Vec<f64> {
        self.pairs(|(from, _), (to, _)| micros(*to - *from))
    }

    /// The wall time of each, up to the start of the next, in microseconds.
    pub fn each_wall(&self) -> Vec<f64> {
        self.pairs(|(_, from), (_, to)| micros(*to - *from))
    }

    fn pairs(&self, of: impl Fn(&(Duration, Instant), &(Duration, Instant)) -> f64) -> Vec<f64> {
        let times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        times.iter().zip(times.iter().skip(1)).map(|(from, to)| of(from, to)).collect()
    }
}

/// The results of one process.
#[derive(Debug, Serialize, Deserialize)]
pub struct Run {
    /// CPU time per iteration, in microseconds.
    pub iterations: Vec<f64>,
    /// Wall time per iteration, in microseconds.
    pub wall: Vec<f64>,
    /// CPU time of the whole run, in microseconds.
    pub total: f64,
    /// Peak memory, in MiB.
    pub peak_rss: f64,
}

impl Run {
    /// Runs the loop in this process, with a model that requests `calls` calls, one at a time, and
    /// records when it is called.
    ///
    /// # Errors
    /// If the run ends without an answer, or a call fails.
    pub fn of(
        runtime: &Runtime,
        menu: Menu,
        model: Arc<dyn Model>,
        calls: usize,
        options: RunOptions,
        times: &Times,
    ) -> Outcome<Self> {
        let settings = Settings {
            system: "You keep the ledgers.".into(),
            // The last one answers.
            max_iterations: u32::try_from(calls)? + 1,
            turn_timeout: Duration::from_secs(600),
            turn_limits: TurnLimits::NONE,
            ..Settings::default()
        };
        let agent = Agent::new(menu.engine()?.build()?, model, settings);
        let began = cpu_time();
        let outcome = runtime.block_on(async { agent.run("Read the ledgers.", options).await });
        let total = micros(cpu_time() - began);
        let succeeded = outcome.tool_calls.iter().filter(|result| result.is_ok()).count();
        if outcome.end_reason != EndReason::Answered || succeeded != calls {
            return Err(format!("{}, {succeeded} calls succeeded", outcome.end_reason).into());
        }
        let (iterations, wall) = (times.each(), times.each_wall());
        Ok(Self { iterations, wall, total, peak_rss: peak_rss() })
    }
}

/// Several runs of one kind. Figures are medians over them.
#[derive(Debug)]
pub struct Runs<'a>(Vec<&'a Run>);

impl<'a> FromIterator<&'a Run> for Runs<'a> {
    fn from_iter<I: IntoIterator<Item = &'a Run>>(runs: I) -> Self {
        Self(runs.into_iter().collect())
    }
}

impl Runs<'_> {
    fn middle(&self, of: impl Fn(&Run) -> f64) -> f64 {
        median(self.0.iter().map(|run| of(run)))
    }

    /// CPU time of an iteration, in microseconds: the median of each run's.
    pub fn iteration(&self) -> f64 {
        self.middle(|run| median(run.iterations.iter().copied()))
    }

    /// Wall time of an iteration, in microseconds: the median of each run's.
    pub fn wall(&self) -> f64 {
        self.middle(|run| median(run.wall.iter().copied()))
    }

    /// CPU time of a whole run divided by its iterations, in microseconds.
    pub fn whole(&self) -> f64 {
        self.middle(|run| run.total / run.iterations.len() as f64)
    }

    /// An iteration among the first 20, in microseconds.
    pub fn first(&self) -> f64 {
        self.middle(first)
    }

    /// An iteration among the last 20, in microseconds.
    pub fn last(&self) -> f64 {
        self.middle(last)
    }

    /// The ratio of the last 20 to the first 20.
    pub fn growth(&self) -> f64 {
        self.middle(|run| last(run) / first(run))
    }

    /// Peak memory, in MiB.
    pub fn peak_rss(&self) -> f64 {
        self.middle(|run| run.peak_rss)
    }
}

fn first(run: &Run) -> f64 {
    median(run.iterations.iter().copied().take(ENDS))
}

fn last(run: &Run) -> f64 {
    median(run.iterations.iter().copied().rev().take(ENDS))
}
