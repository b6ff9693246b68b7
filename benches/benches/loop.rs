//! What one iteration of the agent loop costs: a model as code that answers at once, 200
//! iterations, each with one call of a trivial tool, the history growing.
//!
//! Each run is a process of its own, so that the most memory it had is its own, and nothing is warm
//! that would not be for a user. The process that was started runs them one after the other.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "host crate: it starts itself and prints what it finds"
)]

use std::{
    env, io,
    process::Command,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use toolcrib_agent::{Agent, RunOptions, Stopped};
use toolcrib_benches::{
    Caller, Menu, Outcome, Table, cpu_time, median, micros, peak_rss, print, render, runtime,
};

const ITERATIONS: usize = 200;

/// How many processes are run of each kind; figures are medians over them.
const RUNS: usize = 15;

/// What one process found.
#[derive(Serialize, Deserialize)]
struct Run {
    /// CPU time per iteration, in microseconds.
    iterations: Vec<f64>,
    /// CPU time of the whole run, in microseconds.
    total: f64,
    /// The most memory, in MiB.
    peak_rss: f64,
}

fn main() -> Outcome {
    let args: Vec<String> = env::args().collect();
    let asked = args.iter().position(|arg| arg == "--one").and_then(|at| args.get(at + 1));
    if let Some(kind) = asked {
        let (name, renders) = match kind.strip_suffix(RENDERED) {
            Some(name) => (name, true),
            None => (kind.as_str(), false),
        };
        let menu = Menu::ALL.into_iter().find(|menu| menu.name() == name);
        println!("{}", serde_json::to_string(&one(menu.ok_or("no such menu")?, renders)?)?);
        return Ok(());
    }
    print(&[
        Table {
            title: "One iteration of the loop",
            command: "cargo bench -p toolcrib-benches --bench loop",
            columns: vec![
                "CPU time per iteration",
                "median, µs",
                "goal, µs",
                "whole run / 200, µs",
                "last 20 / first 20",
                "goal",
                "peak memory, MiB",
                "goal, MiB",
            ],
            rows: [(Menu::Ten, 25.0), (Menu::Thousand, 50.0), (Menu::Gated, 100.0)]
                .into_iter()
                .map(|(menu, goal)| {
                    let runs = Runs::of(menu, false)?;
                    Ok(vec![
                        menu.name().into(),
                        runs.iteration().into(),
                        goal.into(),
                        runs.whole().into(),
                        runs.growth().into(),
                        1.1.into(),
                        runs.peak_rss().into(),
                        15.0.into(),
                    ])
                })
                .collect::<Outcome<_>>()?,
        },
        Table {
            title: "One iteration, with the request written out",
            command: "cargo bench -p toolcrib-benches --bench loop",
            columns: vec![
                "CPU time per iteration",
                "median, µs",
                "first 20, µs",
                "last 20, µs",
                "peak memory, MiB",
            ],
            rows: Menu::ALL
                .into_iter()
                .map(|menu| {
                    let runs = Runs::of(menu, true)?;
                    Ok(vec![
                        menu.name().into(),
                        runs.iteration().into(),
                        runs.first().into(),
                        runs.last().into(),
                        runs.peak_rss().into(),
                    ])
                })
                .collect::<Outcome<_>>()?,
        },
    ])
}

const RENDERED: &str = ", rendered";

/// One run in this process.
fn one(menu: Menu, renders: bool) -> Outcome<Run> {
    let times = Arc::new(Mutex::new(Vec::with_capacity(ITERATIONS + 1)));
    let noted = Arc::clone(&times);
    let model = Caller::new(ITERATIONS, move |request| {
        noted.lock().unwrap_or_else(PoisonError::into_inner).push(cpu_time());
        if renders {
            // Nothing can go wrong in writing text into nowhere.
            let _ = render(request, io::sink());
        }
    });
    let engine = menu.engine()?.build()?;
    let settings = toolcrib_agent::Settings {
        system: "You keep the ledgers.".into(),
        // The last one answers.
        max_iterations: u32::try_from(ITERATIONS)? + 1,
        turn_timeout: Duration::from_secs(600),
    };
    let agent = Agent::new(engine, Arc::new(model), settings);
    let runtime = runtime()?;
    let began = cpu_time();
    let outcome =
        runtime.block_on(async { agent.run("Read the ledgers.", RunOptions::default()).await });
    let total = micros(cpu_time() - began);
    let succeeded = outcome.tool_calls.iter().filter(|result| result.is_ok()).count();
    if outcome.stopped != Stopped::Answered || succeeded != ITERATIONS {
        return Err(format!("{}, {succeeded} calls succeeded", outcome.stopped).into());
    }
    let times = times.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(Run {
        iterations: times.iter().zip(times.iter().skip(1)).map(|(a, b)| micros(*b - *a)).collect(),
        total,
        peak_rss: peak_rss(),
    })
}

struct Runs(Vec<Run>);

impl Runs {
    fn of(menu: Menu, renders: bool) -> Outcome<Self> {
        let kind = format!("{}{}", menu.name(), if renders { RENDERED } else { "" });
        let program = env::current_exe()?;
        let run = |_| {
            let output = Command::new(&program).args(["--one", &kind]).output()?;
            if !output.status.success() {
                return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
            }
            Ok(serde_json::from_slice(&output.stdout)?)
        };
        (0..RUNS).map(run).collect::<Result<_, _>>().map(Self)
    }

    /// The median over the runs of something of each.
    fn middle(&self, of: impl Fn(&Run) -> f64) -> f64 {
        median(self.0.iter().map(of))
    }

    fn iteration(&self) -> f64 {
        self.middle(|run| median(run.iterations.iter().copied()))
    }

    fn whole(&self) -> f64 {
        self.middle(|run| run.total) / ITERATIONS as f64
    }

    fn first(&self) -> f64 {
        self.middle(first)
    }

    fn last(&self) -> f64 {
        self.middle(last)
    }

    fn growth(&self) -> f64 {
        self.middle(|run| last(run) / first(run))
    }

    fn peak_rss(&self) -> f64 {
        self.middle(|run| run.peak_rss)
    }
}

fn first(run: &Run) -> f64 {
    median(run.iterations.iter().copied().take(20))
}

fn last(run: &Run) -> f64 {
    median(run.iterations.iter().copied().rev().take(20))
}
