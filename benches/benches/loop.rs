//! Measures one iteration of the agent loop as users run it: on the default runtime, with parsed
//! arguments, a model as code that answers at once, and one call of a trivial tool in each iteration,
//! with a growing history, in memory or in a session. Whether an iteration grows with a long history
//! is measured on one thread: waking another one varies more than that.
//!
//! Each run is a separate process, so that its peak memory is its own, and caches are as cold as
//! for a user. The main process runs them one by one, in turns.
#![allow(clippy::print_stdout, reason = "it prints what it finds")]

use std::{io, sync::Arc};

use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;
use toolcrib_agent::{RunOptions, Session};
use toolcrib_benches::{
    Caller, ITERATIONS, Menu, Outcome, PROCESSES, Run, Runs, Table, Times, asked, in_processes,
    print, render, runtime,
};
use toolcrib_core::{NewSession, SessionOwner};
use toolcrib_store::SqliteStore;

const COMMAND: &str = "cargo bench -p toolcrib-benches --bench loop";

/// The iterations of a long run.
const LONG: usize = 5_000;

/// The processes for a long run.
const LONG_PROCESSES: usize = 5;

/// What a run adds to the loop alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Setup {
    Plain,
    /// One thread.
    OneThread,
    /// The request is written as JSON.
    Rendered,
    /// A session in a SQLite file.
    Session,
    /// More iterations, on one thread.
    Long,
}

/// A measured kind of run.
type Kind = (Setup, String);

fn main() -> Outcome {
    if let Some(kind) = asked() {
        let (setup, menu): Kind = serde_json::from_str(&kind)?;
        let menu = Menu::ALL.into_iter().find(|known| known.name() == menu);
        println!("{}", serde_json::to_string(&one(menu.ok_or("no such menu")?, setup)?)?);
        return Ok(());
    }
    print(&[
        plain()?,
        with("One iteration, with the request written out", Setup::Rendered)?,
        with("One iteration in a session", Setup::Session)?,
        long()?,
    ])
}

fn plain() -> Outcome<Table> {
    let goals = [(Menu::Ten, 25.0), (Menu::Thousand, 50.0), (Menu::Gated, 100.0)];
    let menus = goals.map(|(menu, _)| menu);
    let on_one = runs(PROCESSES, Setup::OneThread, &menus)?;
    let rows = runs(PROCESSES, Setup::Plain, &menus)?.into_iter().zip(on_one).zip(goals);
    Ok(Table {
        title: "One iteration of the loop",
        command: COMMAND,
        columns: vec![
            "default runtime, parsed arguments",
            "wall time, median, µs",
            "CPU time, median, µs",
            "the same on one thread, µs",
            "goal, µs",
            "whole run / 200, CPU, µs",
            "last 20 / first 20",
            "goal",
            "peak memory, MiB",
            "goal, MiB",
        ],
        rows: rows
            .map(|((runs, on_one), (menu, goal))| {
                let runs: Runs<'_> = runs.iter().collect();
                let on_one: Runs<'_> = on_one.iter().collect();
                vec![
                    menu.name().into(),
                    runs.wall().into(),
                    runs.iteration().into(),
                    on_one.iteration().into(),
                    goal.into(),
                    runs.whole().into(),
                    runs.growth().into(),
                    1.1.into(),
                    runs.peak_rss().into(),
                    15.0.into(),
                ]
            })
            .collect(),
    })
}

fn with(title: &'static str, setup: Setup) -> Outcome<Table> {
    let rows = runs(PROCESSES, setup, &Menu::ALL)?.into_iter().zip(Menu::ALL);
    Ok(Table {
        title,
        command: COMMAND,
        columns: vec![
            "default runtime, parsed arguments",
            "wall time, median, µs",
            "CPU time, median, µs",
            "first 20, CPU, µs",
            "last 20, CPU, µs",
            "peak memory, MiB",
        ],
        rows: rows
            .map(|(runs, menu)| {
                let runs: Runs<'_> = runs.iter().collect();
                vec![
                    menu.name().into(),
                    runs.wall().into(),
                    runs.iteration().into(),
                    runs.first().into(),
                    runs.last().into(),
                    runs.peak_rss().into(),
                ]
            })
            .collect(),
    })
}

fn long() -> Outcome<Table> {
    let found = runs(LONG_PROCESSES, Setup::Long, &[Menu::Ten])?;
    let rows = found.into_iter().map(|runs| {
        let runs: Runs<'_> = runs.iter().collect();
        vec![
            Menu::Ten.name().into(),
            runs.first().into(),
            runs.last().into(),
            runs.growth().into(),
            1.2.into(),
        ]
    });
    Ok(Table {
        title: "A run of 5,000 iterations",
        command: COMMAND,
        columns: vec![
            "one thread, parsed arguments",
            "first 20, CPU, µs",
            "last 20, CPU, µs",
            "last 20 / first 20",
            "goal",
        ],
        rows: rows.collect(),
    })
}

/// One run in this process.
fn one(menu: Menu, setup: Setup) -> Outcome<Run> {
    let calls = if setup == Setup::Long { LONG } else { ITERATIONS };
    let times = Times::default();
    let noted = times.clone();
    let model = Caller::new(calls, move |request| {
        noted.note();
        if setup == Setup::Rendered {
            // Writing into a sink cannot fail.
            let _ = render(request, io::sink());
        }
    });
    let model = Arc::new(model.with_parsed_arguments());
    let runtime = match setup {
        Setup::OneThread | Setup::Long => runtime()?,
        Setup::Plain | Setup::Rendered | Setup::Session => Runtime::new()?,
    };
    if setup != Setup::Session {
        return Run::of(&runtime, menu, model, calls, RunOptions::default(), &times);
    }
    // On the disk of the build, not on a file system in memory.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let store = Arc::new(SqliteStore::open(folder.path().join("sessions.db"))?);
    let new = NewSession {
        owner: SessionOwner::default(),
        name: Some("bench".into()),
        personality: "default".into(),
    };
    let session = runtime.block_on(Session::create(store, new))?;
    let options = RunOptions::default().session(&session);
    Run::of(&runtime, menu, model, calls, options, &times)
}

/// Runs in separate processes, for each menu.
fn runs(processes: usize, setup: Setup, menus: &[Menu]) -> Outcome<Vec<Vec<Run>>> {
    let kinds = menus.iter().map(|menu| serde_json::to_string(&(setup, menu.name())));
    in_processes(processes, &kinds.collect::<Result<Vec<_>, _>>()?)
}
