//! Kills processes at every write of the journal, around every effect and at random times, lets their
//! disks fail, and approves what waits in other processes. Resumes them until they are done, and
//! compares the store with the effects. Prints `N passed, N failed`.
//!
//! The process is this binary again, as a [child](child). `TOOLCRIB_FULL` sets the long form,
//! `TOOLCRIB_SCHEDULES` another number of schedules.
//!
//! Then the same on a [server](server) and several workers. `TOOLCRIB_STOPS` is the number of its immediate
//! stops, and leaves the first part out: `cargo xtask crash` sets it.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod child;
mod effects;
mod proxy;
mod script;
mod server;
mod verdict;
mod worker;

use std::{
    env,
    iter::repeat_n,
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, Stdio},
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use self::{
    child::{Orders, WAITS},
    effects::Counter,
    script::Random,
    worker::WorkerOrders,
};

/// The number of schedules, and in the long form.
const SCHEDULES: (u64, u64) = (50, 10_000);

/// The number of sessions on a server, and of its stops.
const SAMPLE: (u64, u64) = (60, 4);

/// The scripts of which every point is a schedule of its own, and in the long form.
const EXHAUSTIVE: (u64, u64) = (1, 40);

/// More points than any script has.
const MOST_POINTS: u64 = 400;

/// One process is killed at most so often; then it may end.
const MOST_KILLS: u64 = 3;

/// The faults of a disk: full, a short write, an error.
const FAULTS: [&str; 3] = ["full", "short", "broken"];

/// The runs after that: a session with waiting calls ends after some of them.
const MOST_RUNS: usize = 20;

fn main() -> ExitCode {
    if let Some(orders) = WorkerOrders::of_env() {
        return worker::live(&orders);
    }
    if let Some(orders) = Orders::of_env() {
        return child::live(&orders);
    }
    // As a test of libtest: `cargo test WORD` runs only tests with the word in their name.
    let mut words = env::args().skip(1).filter(|word| !word.starts_with('-'));
    if words.any(|word| !"crash".contains(&word)) || env::args().any(|word| word == "--list") {
        return ExitCode::SUCCESS;
    }
    let is_full = env::var_os("TOOLCRIB_FULL").is_some();
    let number = |name| env::var(name).ok().and_then(|number| number.parse().ok());
    let root = tempfile::tempdir_in(ram().unwrap_or_else(env::temp_dir)).unwrap();
    if let Some(stops) = number("TOOLCRIB_STOPS") {
        let schedules = number("TOOLCRIB_SCHEDULES").unwrap_or(SCHEDULES.1);
        return server::run(root.path().to_owned(), schedules, stops);
    }
    let of = |(short, long)| if is_full { long } else { short };
    let began = Instant::now();
    let matrix = Matrix {
        root,
        counter: Counter::start(),
        passed: AtomicU64::new(0),
        kills: AtomicU64::new(0),
        faults: AtomicU64::new(0),
        failed: AtomicU64::new(0),
        next: AtomicU64::new(0),
    };
    let schedules = number("TOOLCRIB_SCHEDULES").unwrap_or(of(SCHEDULES));
    let scripts = of(EXHAUSTIVE);
    thread::scope(|scope| {
        let workers = thread::available_parallelism().map_or(2, usize::from);
        for _ in 0..workers {
            scope.spawn(|| matrix.work(scripts, schedules));
        }
    });
    let [passed, failed, kills, faults] =
        [&matrix.passed, &matrix.failed, &matrix.kills, &matrix.faults]
            .map(|count| count.load(Ordering::Relaxed));
    println!(
        "{passed} passed, {failed} failed ({kills} kills, {faults} faults, {:.0?})",
        began.elapsed()
    );
    if failed > 0 {
        return ExitCode::FAILURE;
    }
    let (sessions, stops) = SAMPLE;
    server::run(matrix.root.path().to_owned(), sessions, stops)
}

/// A file system in memory: a sync costs nothing there, and a killed process loses nothing.
fn ram() -> Option<PathBuf> {
    let ram = Path::new("/dev/shm");
    ram.is_dir().then(|| ram.to_owned())
}

struct Matrix {
    root: tempfile::TempDir,
    counter: Counter,
    passed: AtomicU64,
    failed: AtomicU64,
    kills: AtomicU64,
    faults: AtomicU64,
    next: AtomicU64,
}

/// When a process is killed.
#[derive(Debug, Clone, Copy)]
enum Kill {
    /// By itself, at a point.
    At(u64),
    /// By its parent, after microseconds.
    After(u64),
    /// Not at all: its disk fails at a write, in one of three ways.
    Fault(&'static str, u64),
    Never,
}

impl Matrix {
    /// Takes schedules until none are left: first each point of some scripts, then random ones.
    fn work(&self, scripts: u64, schedules: u64) {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number < scripts {
                self.each_point(number);
            } else if self.passed.load(Ordering::Relaxed) + self.failed.load(Ordering::Relaxed)
                < schedules
            {
                let mut random = Random::of(number);
                let kills = 1 + random.below(MOST_KILLS);
                let how = random.below(4);
                let kills: Vec<_> = (0..kills)
                    .map(|_| match how {
                        0 => Kill::After(random.below(30_000)),
                        1 => Kill::Fault(FAULTS[below(&mut random, 3)], 1 + random.below(120)),
                        _ => Kill::At(1 + random.below(60)),
                    })
                    .collect();
                self.schedule(number, &kills);
            } else {
                return;
            }
        }
    }

    fn each_point(&self, script: u64) {
        for point in 1..MOST_POINTS {
            if !self.schedule(script, &[Kill::At(point)]) {
                return;
            }
        }
        panic!("script {script} has more than {MOST_POINTS} points");
    }

    /// Kills the process as scheduled, resumes it until it is done, and judges. Returns whether it
    /// was killed at all.
    fn schedule(&self, script: u64, kills: &[Kill]) -> bool {
        let dir = tempfile::tempdir_in(self.root.path()).unwrap();
        let name = dir.path().file_name().unwrap().to_string_lossy().into_owned();
        let orders = |kill: Kill, settles: bool| Orders {
            dir: dir.path().to_owned(),
            script,
            point: if let Kill::At(point) = kill { point } else { 0 },
            fault: match kill {
                Kill::Fault(kind, number) => format!("{kind}:{number}"),
                _ => String::new(),
            },
            settles,
            address: format!("{}/{name}", self.counter.address()),
        };
        let mut was_killed = false;
        let mut verdict = Err("it does not end".to_owned());
        // What waits for approval is settled by the next process, which may be killed too.
        let mut settles = false;
        let all = kills.iter().copied().chain(repeat_n(Kill::Never, MOST_RUNS));
        for kill in all {
            let mut process = begin(&orders(kill, settles));
            if let Kill::After(micros) = kill {
                thread::sleep(Duration::from_micros(micros));
                process.kill().unwrap();
            }
            let output = process.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            match output.status.code() {
                None if output.status.signal() == Some(9) => {
                    was_killed = true;
                    self.kills.fetch_add(1, Ordering::Relaxed);
                }
                Some(0) if settles => settles = false,
                Some(0) => {
                    verdict = Ok(());
                    // Later kills are of a turn that has ended.
                    if matches!(kill, Kill::Never) {
                        break;
                    }
                }
                Some(code) if code == i32::from(WAITS) => settles = true,
                // The run says that its store failed.
                Some(1) if matches!(kill, Kill::Fault(..)) && is_of_the_store(&said) => {
                    was_killed = true;
                    self.faults.fetch_add(1, Ordering::Relaxed);
                }
                _ => {
                    verdict = Err(format!("{:?} {said}", output.status));
                    break;
                }
            }
        }
        let verdict = verdict.and_then(|()| verdict::of(dir.path(), &self.counter.of(&name)));
        match verdict {
            Ok(()) => self.passed.fetch_add(1, Ordering::Relaxed),
            Err(problem) => {
                println!("FAILED script {script}, {kills:?}: {problem}");
                self.failed.fetch_add(1, Ordering::Relaxed)
            }
        };
        was_killed
    }
}

/// Whether an error names the store and the operation.
fn is_of_the_store(said: &str) -> bool {
    said.contains("sessions.db cannot be") && !said.contains("panicked")
}

fn below(random: &mut Random, limit: u64) -> usize {
    usize::try_from(random.below(limit)).unwrap()
}

fn begin(orders: &Orders) -> Child {
    let mut command = Command::new(env::current_exe().unwrap());
    orders.put_into(&mut command);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}
