//! Whole runs of the loop, and exchanges of the same bytes.

use std::sync::Arc;

use hyper::body::Bytes;
use serde::{Deserialize, Serialize};
use toolcrib_agent::RunOptions;
use toolcrib_benches::{
    Caller, ITERATIONS, Menu, Outcome, PROCESSES, Run, Runs, Table, Times, cpu_time, in_processes,
    median, micros, peak_rss,
    vendor::{Server, Wire, answers},
};
use toolcrib_core::{Model, ModelRequest, ModelStream};

use crate::{COMMAND, plain::Plain, runtime};

const IN_PROCESS: &str = "in process";

/// The results of one process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Found {
    /// The loop.
    run: Run,
    /// For a wire format: its exchanges alone.
    exchanges: Option<Exchanges>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Exchanges {
    /// The same with only hyper.
    plain: Run,
    /// The length of each request's body, in bytes.
    bodies: Vec<usize>,
}

/// The compared kinds: menus, each in process and in every wire format.
fn kinds() -> Vec<(Menu, Option<Wire>)> {
    let ways = || [None].into_iter().chain(Wire::ALL.map(Some));
    Menu::ALL.into_iter().flat_map(|menu| ways().map(move |way| (menu, way))).collect()
}

fn name((menu, wire): (Menu, Option<Wire>)) -> String {
    format!("{}, {}", wire.map_or(IN_PROCESS, Wire::name), menu.name())
}

/// One run of the named kind in this process.
pub(crate) fn one(kind: &str) -> Outcome<Found> {
    let (menu, wire) =
        kinds().into_iter().find(|known| name(*known) == kind).ok_or("no such kind")?;
    let runtime = runtime()?;
    let times = Times::default();
    let noted = times.clone();
    let Some(wire) = wire else {
        let model = Caller::new(ITERATIONS, move |_| noted.note());
        let run =
            Run::of(&runtime, menu, Arc::new(model), ITERATIONS, RunOptions::default(), &times)?;
        return Ok(Found { run, exchanges: None });
    };
    let server = runtime.block_on(Server::start(answers(wire)))?;
    let model = Watched { model: Arc::new(wire.model(&server).build()?), times: noted };
    let run = Run::of(&runtime, menu, Arc::new(model), ITERATIONS, RunOptions::default(), &times)?;
    let seen = server.seen();
    if seen.connections != 1 {
        return Err(format!("{} connections, and not one", seen.connections).into());
    }
    let plain = runtime.block_on(exchanges(&server, &seen.bodies, seen.last.into()))?;
    Ok(Found { run, exchanges: Some(Exchanges { plain, bodies: seen.bodies }) })
}

/// Exchanges of bodies with these lengths, each a prefix of the longest.
async fn exchanges(server: &Server, lengths: &[usize], body: Bytes) -> Outcome<Run> {
    let times = Times::default();
    let mut plain = Plain::connect(server).await?;
    let began = cpu_time();
    for length in lengths {
        times.note();
        plain.exchange(body.slice(..body.len().min(*length))).await?;
    }
    let total = micros(cpu_time() - began);
    let (iterations, wall) = (times.each(), times.each_wall());
    Ok(Run { iterations, wall, total, peak_rss: peak_rss() })
}

/// A model that records when it is called.
struct Watched<M> {
    model: Arc<M>,
    times: Times,
}

impl<M: Model> Model for Watched<M> {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn respond(self: Arc<Self>, request: ModelRequest) -> ModelStream {
        self.times.note();
        Arc::clone(&self.model).respond(request)
    }
}

/// The results of the processes of one wire format and menu.
struct Compared {
    name: String,
    through: Figures,
    plain: Figures,
    /// The loop with a model in the process.
    in_process: f64,
    peak_rss: f64,
    /// The request sizes: of the first 20, the last 20, in KiB.
    kib: [f64; 2],
}

/// CPU times in µs.
struct Figures {
    median: f64,
    first: f64,
    last: f64,
}

impl From<&Runs<'_>> for Figures {
    fn from(runs: &Runs<'_>) -> Self {
        Self { median: runs.iteration(), first: runs.first(), last: runs.last() }
    }
}

/// Runs all kinds: an iteration as such, and as the history grows.
pub(crate) fn tables() -> Outcome<[Table; 2]> {
    let kinds = kinds();
    let names: Vec<String> = kinds.iter().map(|kind| name(*kind)).collect();
    let found: Vec<Vec<Found>> = in_processes(PROCESSES, &names)?;
    let mut in_process = 0.0;
    let mut compared = Vec::new();
    for (((_, wire), name), found) in kinds.iter().zip(names).zip(&found) {
        let runs: Runs<'_> = found.iter().map(|found| &found.run).collect();
        // It is the first kind of each menu.
        if wire.is_none() {
            in_process = runs.iteration();
            continue;
        }
        let exchanges: Vec<_> = found.iter().filter_map(|found| found.exchanges.as_ref()).collect();
        let plain: Runs<'_> = exchanges.iter().map(|exchanges| &exchanges.plain).collect();
        let bodies = || exchanges.iter().flat_map(|exchanges| exchanges.bodies.first_chunk::<20>());
        let last = || exchanges.iter().flat_map(|exchanges| exchanges.bodies.last_chunk::<20>());
        let kib = |bytes: &usize| *bytes as f64 / 1024.0;
        compared.push(Compared {
            name,
            through: Figures::from(&runs),
            plain: Figures::from(&plain),
            in_process,
            peak_rss: runs.peak_rss(),
            kib: [median(bodies().flatten().map(kib)), median(last().flatten().map(kib))],
        });
    }
    Ok([medians(&compared), growing(&compared)])
}

fn medians(compared: &[Compared]) -> Table {
    let row = |one: &Compared| {
        let Compared { name, through, plain, in_process, peak_rss, .. } = one;
        vec![
            name.as_str().into(),
            through.median.into(),
            plain.median.into(),
            (*in_process).into(),
            (through.median - plain.median - in_process).into(),
            (through.median / plain.median).into(),
            (*peak_rss).into(),
        ]
    };
    Table {
        title: "One iteration through a vendor's adapter",
        command: COMMAND,
        columns: vec![
            "CPU time per iteration",
            "median, µs",
            "of it the exchange alone, µs",
            "the loop, µs",
            "so the adapter, µs",
            "iteration / exchange",
            "peak memory, MiB",
        ],
        rows: compared.iter().map(row).collect(),
    }
}

fn growing(compared: &[Compared]) -> Table {
    let row = |one: &Compared| {
        let Compared { name, through, plain, kib: [first, last], .. } = one;
        vec![
            name.as_str().into(),
            (*first).into(),
            (*last).into(),
            through.first.into(),
            through.last.into(),
            (through.first - plain.first).into(),
            (through.last - plain.last).into(),
        ]
    };
    Table {
        title: "The same as the history grows",
        command: COMMAND,
        columns: vec![
            "CPU time per iteration",
            "request, first 20, KiB",
            "last 20, KiB",
            "first 20, µs",
            "last 20, µs",
            "without the exchange: first 20, µs",
            "last 20, µs",
        ],
        rows: compared.iter().map(row).collect(),
    }
}
