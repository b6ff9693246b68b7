//! The process that is killed: an agent in a session, on a store that kills it at a point.

use std::{
    collections::HashMap,
    env,
    fmt::Write as _,
    fs::OpenOptions,
    io::{ErrorKind, Write as _},
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use rustix::process::{Signal, getpid, kill_process};
use serde_json::{Value, json};
use toolcrib_agent::{Agent, EndReason, RunOptions, Session};
use toolcrib_approvals::{ApprovalError, ApprovalKeys, Approvals};
use toolcrib_core::{
    ClaimedSession, Digest, FoundMessage, LeaseTimes, NewSession, Policy, Rule, SentPart,
    SessionInfo, SessionLease, SessionOwner, SessionRecord, SessionRetention, SessionSearch,
    SessionStore, SessionStoreError, StoredApproval, StoredRun, StoredSession, Tool, ToolContext,
    TracedEvent, TurnState,
};
use toolcrib_engine::{Engine, Redactor};
use toolcrib_store::SqliteStore;

use crate::{effects, script::Script};

/// The name of the session.
pub(crate) const SESSION: &str = "night";

/// What a child is to do.
pub(crate) struct Orders {
    pub(crate) dir: PathBuf,
    pub(crate) script: u64,
    /// The point at which it kills itself; 0 for none.
    pub(crate) point: u64,
    /// The fault of the store, as [`faults.c`](faults.c) reads it; empty for none.
    pub(crate) fault: String,
    /// Whether it decides on calls that wait for approval, instead of running the agent.
    pub(crate) settles: bool,
    /// The address of the counter, with the first part of the path.
    pub(crate) address: String,
}

impl Orders {
    pub(crate) fn of_env() -> Option<Self> {
        let text = |name: &str| env::var(format!("CRASH_{name}")).ok();
        Some(Self {
            dir: text("DIR")?.into(),
            script: text("SCRIPT")?.parse().ok()?,
            point: text("POINT")?.parse().ok()?,
            address: text("ADDRESS")?,
            fault: text("FAULT").unwrap_or_default(),
            settles: text("SETTLES").is_some(),
        })
    }

    pub(crate) fn put_into(&self, command: &mut Command) {
        command
            .env("CRASH_DIR", &self.dir)
            .env("CRASH_SCRIPT", self.script.to_string())
            .env("CRASH_POINT", self.point.to_string())
            .env("CRASH_ADDRESS", &self.address);
        if self.settles {
            command.env("CRASH_SETTLES", "1");
        }
        if !self.fault.is_empty() {
            command.env("CRASH_FAULT", &self.fault).env("LD_PRELOAD", faults());
        }
    }
}

/// The library with the faults of a disk, compiled once.
fn faults() -> &'static Path {
    static LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| library("faults"));
    &LIBRARY
}

/// A library for `LD_PRELOAD`, of a C file in this folder.
pub(crate) fn library(name: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/crash/{name}.c"));
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("crash_{name}.so"));
    let mut compiler = Command::new(env::var_os("CC").unwrap_or_else(|| "cc".into()));
    compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).arg("-ldl");
    assert!(compiler.status().unwrap().success(), "{name}.c does not compile");
    library
}

/// The exit code of a run whose calls wait for approval.
pub(crate) const WAITS: u8 = 4;

/// Begins the turn, or resumes it, up to its end; or settles what waits.
pub(crate) fn live(orders: &Orders) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    match runtime.block_on(work(orders)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(WAITS),
        Err(problem) => {
            let _ = writeln!(std::io::stderr(), "{problem}");
            ExitCode::FAILURE
        }
    }
}

/// True at the end of the turn, and after settling; false if calls wait.
async fn work(orders: &Orders) -> Result<bool, String> {
    let text = |error: SessionStoreError| error.to_string();
    let points = Arc::new(Points { until: orders.point, passed: AtomicU64::new(0) });
    let store = SqliteStore::open(orders.dir.join("sessions.db")).map_err(text)?;
    let keys = ApprovalKeys::new(Some(orders.dir.join("config")));
    let approvals = Approvals::new(Arc::new(store.clone()), keys, "crash");
    if orders.settles {
        return settle(&approvals, &points, |_| orders.dir.clone()).map(|()| true);
    }
    let dir = orders.dir.clone();
    let store = Observed::new(Arc::new(store), Arc::clone(&points), move |_| dir.clone());
    let store = Arc::new(Observed { lease: Some(Duration::ZERO), ..store });
    let owner = SessionOwner::default();
    let session = match Session::open(store.clone(), &owner, SESSION).await {
        Err(SessionStoreError::Unknown { .. }) => {
            let new =
                NewSession { owner, name: Some(SESSION.into()), personality: "default".into() };
            Session::create(store, new).await
        }
        other => other,
    };
    let session = session.map_err(text)?;
    let agent = agent(orders, &points);
    let mut options = RunOptions::default().session(&session);
    options.turn = options.turn.approver(Arc::new(approvals.approver(Some(session.id().clone()))));
    let outcome = match session.info().await.map_err(text)?.last_turn {
        None => agent.run("Go", options).await,
        Some(TurnState::Running) => agent.resume(options).await,
        Some(TurnState::Ended { .. }) => return Ok(true),
    };
    match outcome.end_reason {
        EndReason::Answered => Ok(true),
        EndReason::AwaitingApproval => Ok(false),
        _ => Err(format!("{:?}", outcome.error)),
    }
}

/// Approves or denies what waits, as a person does at another terminal. Notes an approval before it
/// is made.
pub(crate) fn settle(
    approvals: &Approvals,
    points: &Points,
    dir: impl Fn(&StoredApproval) -> PathBuf,
) -> Result<(), String> {
    let text = |error: ApprovalError| error.to_string();
    for review in approvals.list(false).map_err(text)? {
        if &*review.state != "open" {
            continue;
        }
        let id = &review.stored.id;
        // A call that was parked twice outlives its session, which is judged already.
        if !dir(&review.stored).exists() {
            continue;
        }
        let call_id = review.stored.call.call_id.clone().unwrap_or_default();
        points.pass();
        // The same decision of each call, also after a crash.
        if Digest::of(&*call_id).to_string().as_bytes()[0].is_multiple_of(3) {
            approvals.deny(id, Some("not tonight".into())).map_err(text)?;
        } else {
            append(&dir(&review.stored).join("approved.txt"), &format!("{call_id}\n"));
            approvals.approve(id).map_err(text)?;
        }
        points.pass();
    }
    Ok(())
}

pub(crate) fn agent(orders: &Orders, points: &Arc<Points>) -> Agent {
    let tool = |name: &'static str| {
        let (dir, address, points) = (orders.dir.clone(), orders.address.clone(), points.clone());
        let builder = Tool::builder(name).description("An effect.");
        let builder = builder.input_schema(json!({ "type": "object" }));
        let builder = match name {
            "look" => builder.read_only(),
            "put" => builder.idempotent(),
            "insert" => builder.sequential(),
            _ => builder,
        };
        let handler = move |_: Value, cx: ToolContext| {
            let (dir, address, points) = (dir.clone(), address.clone(), points.clone());
            let key = cx.idempotency_key();
            async move {
                points.pass();
                effects::perform(&dir, &address, name, &key);
                points.pass();
                // Larger than its share of the budget: its outcome is written before its result.
                format!(
                    "ok {key} {}",
                    if name == "look" { "x".repeat(90_000) } else { String::new() }
                )
            }
        };
        builder.handler(handler).unwrap()
    };
    let tools = ["append", "insert", "post", "wire", "put", "look"].map(tool);
    let policy = Policy::of([Rule::ask("rule 1").tools(["wire"])]);
    let engine = Engine::builder().redactor(Redactor::default()).tools(tools).policy(policy);
    let engine = engine.build().unwrap();
    Agent::new(engine, Arc::new(Script(orders.script)), toolcrib_agent::Settings::default())
}

/// The points at which the process may be killed.
pub(crate) struct Points {
    pub(crate) until: u64,
    pub(crate) passed: AtomicU64,
}

impl Points {
    pub(crate) fn pass(&self) {
        if self.passed.fetch_add(1, Ordering::SeqCst) + 1 == self.until {
            kill_process(getpid(), Signal::KILL).unwrap();
        }
    }
}

/// A store that writes down what it has committed, outside of itself.
pub(crate) struct Observed {
    store: Arc<dyn SessionStore>,
    points: Arc<Points>,
    /// The time of all leases, instead of that which is asked for.
    lease: Option<Duration>,
    /// The folder of a session.
    dir: Box<dyn Fn(&SessionInfo) -> PathBuf + Send + Sync>,
    sessions: Mutex<HashMap<Arc<str>, ObservedSession>>,
}

struct ObservedSession {
    log: PathBuf,
    /// The number of messages in the store.
    messages: usize,
}

impl Observed {
    pub(crate) fn new(
        store: Arc<dyn SessionStore>,
        points: Arc<Points>,
        dir: impl Fn(&SessionInfo) -> PathBuf + Send + Sync + 'static,
    ) -> Self {
        Self { store, points, lease: None, dir: Box::new(dir), sessions: Mutex::default() }
    }

    fn knows(&self, info: SessionInfo) -> SessionInfo {
        let log = || ObservedSession { log: (self.dir)(&info).join("committed.txt"), messages: 0 };
        self.sessions.lock().entry(Arc::clone(&info.id)).or_insert_with(log);
        info
    }

    /// Each line has the lease, the number of the write, and whether it survives a crash of a server.
    fn commit(&self, lease: &SessionLease, number: u64, records: &[SessionRecord]) {
        let mut sessions = self.sessions.lock();
        let session = sessions.get_mut(&lease.session).unwrap();
        let is_synced = records.iter().any(
            |record| matches!(record, SessionRecord::Intent(intent) if intent.is_unrepeatable()),
        );
        let head = format!("{} {number} {is_synced}", lease.token);
        let mut lines = String::new();
        for record in records {
            match record {
                SessionRecord::Intent(intent) => {
                    writeln!(lines, "{head} intent {}", intent.call_id).unwrap();
                }
                SessionRecord::Outcome { call_id, outcome, result } => {
                    let (outcome, result) = (outcome.as_str(), result.is_some());
                    writeln!(lines, "{head} outcome {call_id} {outcome} {result}").unwrap();
                }
                SessionRecord::Message(message) => {
                    let digest = Digest::of(format!("{message:?}"));
                    writeln!(lines, "{head} message {} {digest}", session.messages).unwrap();
                    session.messages += 1;
                }
                _ => {}
            }
        }
        append(&session.log, &lines);
    }
}

pub(crate) fn append(path: &Path, lines: &str) {
    match OpenOptions::new().create(true).append(true).open(path) {
        Ok(mut file) => file.write_all(lines.as_bytes()).unwrap(),
        // The session has ended and is judged already, and its folder is removed.
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => panic!("{}: {error}", path.display()),
    }
}

impl SessionStore for Observed {
    fn create(&self, new: &NewSession) -> Result<SessionInfo, SessionStoreError> {
        self.points.pass();
        self.store.create(new).map(|info| self.knows(info))
    }

    fn find(&self, owner: &SessionOwner, session: &str) -> Result<SessionInfo, SessionStoreError> {
        self.store.find(owner, session).map(|info| self.knows(info))
    }

    fn list(
        &self,
        owner: &SessionOwner,
        limit: usize,
    ) -> Result<Vec<SessionInfo>, SessionStoreError> {
        self.store.list(owner, limit)
    }

    fn read(&self, owner: &SessionOwner, id: &str) -> Result<StoredSession, SessionStoreError> {
        let read = self.store.read(owner, id)?;
        if let Some(session) = self.sessions.lock().get_mut(id) {
            session.messages = read.messages.len();
        }
        Ok(read)
    }

    fn runs(
        &self,
        owner: &SessionOwner,
        limit: usize,
    ) -> Result<Vec<StoredRun>, SessionStoreError> {
        self.store.runs(owner, limit)
    }

    fn search(
        &self,
        owner: &SessionOwner,
        search: &SessionSearch,
    ) -> Result<Vec<FoundMessage>, SessionStoreError> {
        self.store.search(owner, search)
    }

    fn events(
        &self,
        owner: &SessionOwner,
        id: &str,
        turn: u32,
    ) -> Result<Vec<TracedEvent>, SessionStoreError> {
        self.store.events(owner, id, turn)
    }

    fn sent(&self, owner: &SessionOwner, id: &str) -> Result<Vec<SentPart>, SessionStoreError> {
        self.store.sent(owner, id)
    }

    fn acquire(
        &self,
        owner: &SessionOwner,
        id: &str,
        time: Duration,
    ) -> Result<SessionLease, SessionStoreError> {
        self.points.pass();
        self.store.acquire(owner, id, self.lease.unwrap_or(time))
    }

    fn lease_times(&self) -> LeaseTimes {
        self.store.lease_times()
    }

    fn renew(&self, lease: &SessionLease, time: Duration) -> Result<bool, SessionStoreError> {
        self.store.renew(lease, self.lease.unwrap_or(time))
    }

    fn submit(
        &self,
        owner: &SessionOwner,
        id: &str,
        message: &str,
    ) -> Result<(), SessionStoreError> {
        self.store.submit(owner, id, message)
    }

    fn claim(
        &self,
        owner: Option<&SessionOwner>,
        time: Duration,
    ) -> Result<Option<ClaimedSession>, SessionStoreError> {
        self.points.pass();
        let claimed = self.store.claim(owner, time)?;
        self.points.pass();
        Ok(claimed.map(|claimed| ClaimedSession { info: self.knows(claimed.info), ..claimed }))
    }

    fn cancel(&self, owner: &SessionOwner, id: &str) -> Result<bool, SessionStoreError> {
        self.store.cancel(owner, id)
    }

    fn release(&self, lease: &SessionLease) -> Result<(), SessionStoreError> {
        self.store.release(lease)
    }

    fn write(
        &self,
        lease: &SessionLease,
        seen: u64,
        records: &[SessionRecord],
    ) -> Result<u64, SessionStoreError> {
        self.points.pass();
        let number = self.store.write(lease, seen, records)?;
        self.commit(lease, number, records);
        self.points.pass();
        Ok(number)
    }

    fn remove(&self, owner: &SessionOwner, id: &str) -> Result<(), SessionStoreError> {
        self.store.remove(owner, id)
    }

    fn prune(&self, retention: &SessionRetention) -> Result<usize, SessionStoreError> {
        self.store.prune(retention)
    }
}
