//! Measures one iteration of the agent loop: a model as code that answers at once, 200 iterations,
//! each with one call of a trivial tool, with a growing history.
//!
//! Each run is a separate process, so that its peak memory is its own, and caches are as cold as
//! for a user. The main process runs them one by one.
#![allow(clippy::print_stdout, reason = "it prints what it finds")]

use std::{io, sync::Arc};

use toolcrib_benches::{
    Caller, ITERATIONS, Menu, Outcome, PROCESSES, Run, Runs, Table, Times, asked, in_processes,
    print, render, runtime,
};

const COMMAND: &str = "cargo bench -p toolcrib-benches --bench loop";

const RENDERED: &str = ", rendered";

fn main() -> Outcome {
    if let Some(kind) = asked() {
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
            command: COMMAND,
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
                    let runs = runs(menu, false)?;
                    let runs: Runs<'_> = runs.iter().collect();
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
            command: COMMAND,
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
                    let runs = runs(menu, true)?;
                    let runs: Runs<'_> = runs.iter().collect();
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

/// One run in this process.
fn one(menu: Menu, renders: bool) -> Outcome<Run> {
    let times = Times::default();
    let noted = times.clone();
    let model = Caller::new(ITERATIONS, move |request| {
        noted.note();
        if renders {
            // Writing into a sink cannot fail.
            let _ = render(request, io::sink());
        }
    });
    Run::of(&runtime()?, menu, Arc::new(model), &times)
}

/// Runs in separate processes.
fn runs(menu: Menu, renders: bool) -> Outcome<Vec<Run>> {
    let kind = format!("{}{}", menu.name(), if renders { RENDERED } else { "" });
    Ok(in_processes(PROCESSES, &[kind])?.into_iter().flatten().collect())
}
