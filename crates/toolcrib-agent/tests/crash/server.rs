//! Sessions of a PostgreSQL store on several worker processes, which are killed, while the server is stopped at
//! once and connections are cut. Each session is a schedule: it must end, and is judged as those of a file.

use std::{
    collections::HashMap,
    env, fs,
    path::PathBuf,
    process::{Command, ExitCode, Stdio},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use toolcrib_core::{NewSession, SessionInfo, SessionStore as _, SessionStoreError, TurnState};
use toolcrib_store::PostgresStore;
use toolcrib_testbed::PostgresServer;

use crate::{
    effects::Counter,
    proxy::Proxy,
    script::Random,
    verdict,
    worker::{STOP, WorkerOrders, owner},
};

/// The number of worker processes.
const WORKERS: u64 = 3;

/// The number of sessions that have not ended: fewer than the calls that may wait in a store.
const OPEN: usize = 60;

/// A session that has not ended after this time never does.
const PATIENCE: Duration = Duration::from_secs(180);

/// The greatest number of a point at which a worker kills itself.
const MOST_POINTS: u64 = 500;

struct Field {
    root: PathBuf,
    server: PostgresServer,
    proxy: Proxy,
    counter: Counter,
    database: String,
    /// The wanted number of immediate stops.
    stops: u64,
    /// The share of the schedules that have ended, in thousandths.
    progress: AtomicU64,
    is_over: AtomicBool,
    kills: AtomicU64,
    stopped: AtomicU64,
}

/// Runs schedules, during which the server is stopped a number of times.
pub(crate) fn run(root: PathBuf, schedules: u64, stops: u64) -> ExitCode {
    let Some(server) = PostgresServer::durable() else { return ExitCode::SUCCESS };
    let database = server.database("").unwrap();
    let field = Field {
        root,
        proxy: Proxy::start(server.port()),
        server,
        counter: Counter::start(),
        database,
        stops,
        progress: AtomicU64::new(0),
        is_over: AtomicBool::new(false),
        kills: AtomicU64::new(0),
        stopped: AtomicU64::new(0),
    };
    let began = Instant::now();
    let (passed, failed) = thread::scope(|scope| {
        for worker in 0..WORKERS {
            let field = &field;
            scope.spawn(move || field.kill_workers(worker));
        }
        scope.spawn(|| field.stop_server());
        let judged = field.judge_all(schedules);
        field.is_over.store(true, Ordering::Relaxed);
        fs::write(field.root.join(STOP), "").unwrap();
        judged
    });
    let [kills, stopped, cuts] = [&field.kills, &field.stopped, &*field.proxy.cuts]
        .map(|count| count.load(Ordering::Relaxed));
    println!(
        "{passed} passed, {failed} failed ({kills} kills, {stopped} stops of the server, {cuts} cut \
         connections, {:.0?})",
        began.elapsed()
    );
    if stopped < stops {
        println!("{stops} stops of the server were wanted, and only {stopped} happened");
    }
    if failed == 0 && stopped >= stops { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Field {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Keeps one worker running, which is killed again and again.
    fn kill_workers(&self, worker: u64) {
        let mut random = Random::of(worker + 1);
        while !self.is_over() {
            let kills_itself = random.below(3) > 0;
            let orders = WorkerOrders {
                root: self.root.clone(),
                url: format!(
                    "postgres://owner@127.0.0.1:{}/{}?sslmode=disable",
                    self.proxy.port, self.database
                ),
                address: self.counter.address().to_owned(),
                point: if kills_itself { 1 + random.below(MOST_POINTS) } else { 0 },
                clock: [-3_600, 0, 3_600][usize::try_from(random.below(3)).unwrap()],
            };
            let mut command = Command::new(env::current_exe().unwrap());
            orders.put_into(&mut command);
            let mut process = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
            if !kills_itself {
                let until = Instant::now() + Duration::from_millis(100 + random.below(1_500));
                while Instant::now() < until && !self.is_over() {
                    thread::sleep(Duration::from_millis(10));
                }
                process.kill().unwrap();
            }
            let status = process.wait().unwrap();
            self.kills.fetch_add(u64::from(!status.success()), Ordering::Relaxed);
        }
    }

    /// Stops the server as often as the progress of the schedules asks for.
    fn stop_server(&self) {
        let mut random = Random::of(99);
        while !self.is_over() {
            thread::sleep(Duration::from_millis(300 + random.below(900)));
            let due = self.stops * (self.progress.load(Ordering::Relaxed) + 50) / 1_000;
            if self.stopped.load(Ordering::Relaxed) < due.min(self.stops) {
                self.server.crash().unwrap();
                self.stopped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Submits a message to each session, and judges those that have ended. Returns the numbers of sessions
    /// that passed and failed.
    fn judge_all(&self, schedules: u64) -> (u64, u64) {
        let url = self.server.url("owner", &self.database);
        let store = patiently(|| PostgresStore::connect(&url));
        let (mut next, mut passed, mut failed) = (0, 0, 0);
        let mut open: HashMap<u64, Instant> = HashMap::new();
        while passed + failed < schedules {
            while open.len() < OPEN && next < schedules {
                self.submit(&store, next);
                open.insert(next, Instant::now());
                next += 1;
            }
            thread::sleep(Duration::from_millis(50));
            let ended: Vec<_> = open
                .iter()
                .filter_map(|(number, begun)| {
                    Some((*number, self.judged(&store, *number, *begun)?))
                })
                .collect();
            for (number, verdict) in ended {
                open.remove(&number);
                match verdict {
                    Ok(()) => passed += 1,
                    Err(problem) => {
                        println!("FAILED session s{number}: {problem}");
                        failed += 1;
                    }
                }
            }
            self.progress.store((passed + failed) * 1_000 / schedules, Ordering::Relaxed);
        }
        (passed, failed)
    }

    fn submit(&self, store: &PostgresStore, number: u64) {
        let name = format!("s{number}");
        fs::create_dir_all(self.root.join(&name)).unwrap();
        let new = NewSession {
            owner: owner(),
            name: Some(name.as_str().into()),
            personality: "default".into(),
        };
        // Any step may fail, or be lost, with the server.
        patiently(|| {
            let info = match store.find(&owner(), &name) {
                Err(SessionStoreError::Unknown { .. }) => store.create(&new)?,
                found => found?,
            };
            match info.submitted == 0 && info.turns == 0 {
                true => store.submit(&owner(), &info.id, "Go"),
                false => Ok(()),
            }
        });
    }

    /// The verdict on a session; `None` while it has not ended.
    fn judged(
        &self,
        store: &PostgresStore,
        number: u64,
        begun: Instant,
    ) -> Option<Result<(), String>> {
        let name = format!("s{number}");
        let info: SessionInfo = patiently(|| store.find(&owner(), &name));
        match info.last_turn {
            Some(TurnState::Ended { .. }) => {}
            _ if begun.elapsed() > PATIENCE => {
                let session = patiently(|| store.read(&owner(), &info.id));
                let errors = fs::read_to_string(self.root.join(&name).join("errors.txt"));
                return Some(Err(format!("it does not end: {session:?} {errors:?}")));
            }
            _ => return None,
        }
        // A synced write: the end of the turn was not one, and may still be lost with the server.
        let flush = NewSession { owner: owner(), name: None, personality: "default".into() };
        patiently(|| store.cancel(&owner(), &store.create(&flush)?.id));
        let session = patiently(|| store.read(&owner(), &info.id));
        if matches!(session.info.last_turn, Some(TurnState::Running)) {
            return None;
        }
        let dir = self.root.join(&name);
        let verdict = verdict::on_server(&dir, &session, &self.counter.of(&name));
        let verdict = verdict.and_then(|()| match session.info.submitted {
            0 => Ok(()),
            _ => Err("its message was not taken".to_owned()),
        });
        if verdict.is_ok() {
            let _ = fs::remove_dir_all(dir);
        }
        Some(verdict)
    }
}

/// Repeats what fails while the server is stopped.
fn patiently<T>(mut attempt: impl FnMut() -> Result<T, SessionStoreError>) -> T {
    let begun = Instant::now();
    loop {
        match attempt() {
            Ok(done) => return done,
            Err(error) => assert!(begun.elapsed() < PATIENCE, "{error}"),
        }
        thread::sleep(Duration::from_millis(20));
    }
}
