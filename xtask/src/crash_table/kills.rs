//! Kills the processes of one system, and counts what happened.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use super::{
    random::Random,
    results::Counts,
    stand_in::{Run, StandIn, TOOLS},
    systems::{Client, System},
    watched::Watched,
    worker::{Starter, Variables},
};
use crate::{
    packages::unwritable,
    problem::{Problem, joined},
    workspace::Workspace,
};

/// The runs of a batch, which are in flight at the same time.
const RUNS: usize = 4;

/// A batch is killed at most so often, then it may end.
const MOST_KILLS: u64 = 4;

/// A process is killed after one of its first requests to the model and the API, and a time in
/// microseconds: both uniformly random. The time is about that of a request. With a time alone, a slow
/// machine would be killed before its effects.
const REQUESTS: u64 = 12;
const MICROS: u64 = 30_000;

/// The starts that are not killed. Runs that have not ended then are stuck.
const LAST_STARTS: usize = 2;

/// Counts batches until enough processes were killed.
pub(super) fn count(
    workspace: &Workspace,
    system: &System,
    wanted: u64,
) -> Result<Counts, Problem> {
    let began = Instant::now();
    let folder = workspace.target().join("crash-table").join(system.name);
    drop(fs::remove_dir_all(&folder));
    (system.install)(workspace)?;
    let table = Table {
        workspace,
        system,
        folder,
        wanted,
        next: AtomicU64::new(0),
        counts: Mutex::default(),
    };
    thread::scope(|scope| {
        let lanes: Vec<_> = (0..system.lanes)
            .map(|lane| {
                let table = &table;
                scope.spawn(move || table.work(lane))
            })
            .collect();
        lanes.into_iter().try_for_each(joined)
    })?;
    let mut counts = table.counts.into_inner().unwrap_or_else(PoisonError::into_inner);
    counts.seconds = began.elapsed().as_secs();
    Ok(counts)
}

/// The work on one row. Each lane has its own processes.
struct Table<'a> {
    workspace: &'a Workspace,
    system: &'a System,
    folder: PathBuf,
    wanted: u64,
    next: AtomicU64,
    counts: Mutex<Counts>,
}

impl Table<'_> {
    fn work(&self, lane: usize) -> Result<(), Problem> {
        let Self { workspace, system, .. } = self;
        let folder = self.folder.join(format!("lane-{lane}"));
        let failed = |error: io::Error| {
            let problem = format!("{} failed: {error}", system.name);
            Problem::new(problem, format!("look at {}", folder.join("log.txt").display()))
        };
        fs::create_dir_all(&folder).map_err(|error| unwritable(&folder, &error))?;
        let stand_in = StandIn::start().map_err(failed)?;
        let server = (system.server)(workspace, &folder)?;
        let mut variables = vec![("CRASH_URL", stand_in.url().to_owned())];
        variables.extend(server.iter().flat_map(|server| server.variables.clone()));
        if system.is_keyed {
            variables.push(("CRASH_KEYED", "1".to_owned()));
        }
        let command = (system.command)(workspace);
        let log = folder.join("log.txt");
        let mut starter = Starter::of(command, system.forks, &log).map_err(failed)?;
        while self.counts().kills < self.wanted {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let store = folder.join(number.to_string());
            fs::create_dir_all(&store).map_err(|error| unwritable(&store, &error))?;
            let batch = Batch::of(number, &stand_in);
            let server = server.as_ref().map(|server| server.process.id());
            if let Some(client) = system.client {
                batch.clients(client, &variables);
            }
            let kills = batch.live(&mut starter, server, &variables, &store).map_err(failed)?;
            let mut counts = self.counts();
            counts.kills += kills as u64;
            for run in &batch.runs {
                add(&mut counts, &stand_in.run(run));
            }
            drop(fs::remove_dir_all(&store));
        }
        Ok(())
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Some runs in flight, and the points of their kills: the same for every system.
struct Batch<'a> {
    stand_in: &'a StandIn,
    runs: Vec<String>,
    /// The number of the request, and the time after it.
    kills: Vec<(u64, Duration)>,
}

impl<'a> Batch<'a> {
    fn of(number: u64, stand_in: &'a StandIn) -> Self {
        let mut random = Random::of(number);
        let kills = 1 + random.below(MOST_KILLS);
        Self {
            stand_in,
            runs: (0..RUNS).map(|run| format!("{number}-{run}")).collect(),
            kills: (0..kills)
                .map(|_| {
                    let time = Duration::from_micros(random.below(MICROS));
                    (1 + random.below(REQUESTS), time)
                })
                .collect(),
        }
    }

    /// Starts the client of each run. That of a run that is stuck ends with this program.
    fn clients(&self, client: Client, variables: &Variables) {
        for run in &self.runs {
            let (run, stand_in) = (run.clone(), self.stand_in.clone());
            let variables = variables.to_vec();
            thread::spawn(move || {
                if let Err(error) = client(&variables, &run, &stand_in) {
                    eprintln!("the client of {run} failed: {error}");
                }
            });
        }
    }

    /// Kills the process at each point, unless the runs have ended before, and lets the last one end.
    /// Returns the number of kills.
    fn live(
        &self,
        starter: &mut Starter,
        server: Option<u32>,
        variables: &Variables,
        store: &Path,
    ) -> io::Result<usize> {
        let mut variables = variables.to_owned();
        variables.push(("CRASH_RUNS", self.runs.join(",")));
        variables.push(("CRASH_STORE", store.display().to_string()));
        let start = |starter: &mut Starter| {
            self.stand_in.expect_process();
            let process = starter.start(&variables)?;
            io::Result::Ok(Watched(server.into_iter().chain([process]).collect()))
        };
        for (kills, (request, time)) in self.kills.iter().enumerate() {
            let watched = start(starter)?;
            self.stand_in.wait_for_requests(*request, &self.runs, &watched)?;
            let have_ended = self.stand_in.ends_within(&self.runs, *time);
            starter.kill()?;
            if have_ended {
                return Ok(kills);
            }
        }
        for _ in 0..LAST_STARTS {
            let watched = start(starter)?;
            let have_ended = self.stand_in.ends(&self.runs, &watched)?;
            starter.kill()?;
            if have_ended {
                break;
            }
        }
        Ok(self.kills.len())
    }
}

/// Adds what happened to a run.
fn add(counts: &mut Counts, run: &Run) {
    counts.runs += 1;
    counts.stuck += u64::from(!run.has_ended);
    counts.unapproved += u64::from(run.is_unapproved);
    counts.paid_twice += run.responses.iter().map(|count| count.saturating_sub(1)).sum::<u64>();
    for (count, is_unknown) in run.effects.into_iter().zip(run.unknown) {
        counts.repeated += u64::from(count > 1);
        counts.most = counts.most.max(count);
        counts.unknown += u64::from(is_unknown);
        counts.undone += u64::from(is_unknown && count == 0);
        counts.lost += u64::from(run.has_ended && count == 0 && !is_unknown);
    }
    counts.effects += TOOLS.len() as u64;
}
