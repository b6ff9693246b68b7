//! A worker process, which is killed: it claims the sessions of a PostgreSQL store, runs their segments, and
//! settles calls that wait.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    sync::{Arc, LazyLock, atomic::AtomicU64},
    thread,
    time::Duration,
};

use tokio::{task::JoinSet, time::sleep};
use toolcrib_agent::{RunOptions, Session};
use toolcrib_approvals::{ApprovalKeys, Approvals};
use toolcrib_core::{LeaseTimes, SessionInfo, SessionOwner, SessionStore};
use toolcrib_store::PostgresStore;

use crate::child::{Observed, Orders, Points, agent, append, library, settle};

/// The number of segments at the same time.
const CONCURRENCY: usize = 8;

/// Short, since each kill costs the time of a lease.
const LEASE: LeaseTimes =
    LeaseTimes { lease: Duration::from_millis(1_000), renew_every: Duration::from_millis(250) };

/// The pause of a worker without work, or without a server.
const PAUSE: Duration = Duration::from_millis(30);

/// The file that tells workers to end.
pub(crate) const STOP: &str = "stop";

/// What a worker is to do.
#[derive(Clone)]
pub(crate) struct WorkerOrders {
    /// The folder with a folder of each session.
    pub(crate) root: PathBuf,
    pub(crate) url: String,
    /// The address of the counter.
    pub(crate) address: String,
    /// The point at which it kills itself; 0 for none.
    pub(crate) point: u64,
    /// The difference of its clock, in seconds.
    pub(crate) clock: i64,
}

impl WorkerOrders {
    pub(crate) fn of_env() -> Option<Self> {
        let text = |name: &str| env::var(format!("CRASH_{name}")).ok();
        Some(Self {
            url: text("URL")?,
            root: text("DIR")?.into(),
            address: text("ADDRESS")?,
            point: text("POINT")?.parse().ok()?,
            clock: text("CLOCK")?.parse().ok()?,
        })
    }

    pub(crate) fn put_into(&self, command: &mut Command) {
        static CLOCK: LazyLock<PathBuf> = LazyLock::new(|| library("clock"));
        command
            .env("CRASH_URL", &self.url)
            .env("CRASH_DIR", &self.root)
            .env("CRASH_ADDRESS", &self.address)
            .env("CRASH_POINT", self.point.to_string())
            .env("CRASH_CLOCK", self.clock.to_string());
        if self.clock != 0 {
            command.env("LD_PRELOAD", &*CLOCK);
        }
    }
}

pub(crate) fn owner() -> SessionOwner {
    SessionOwner::principal("crash")
}

/// The approvals of all workers.
fn approvals(root: &Path, store: &PostgresStore) -> Approvals {
    Approvals::new(Arc::new(store.clone()), ApprovalKeys::new(Some(root.join("config"))), "crash")
}

/// Works until it is killed or stopped.
pub(crate) fn live(orders: &WorkerOrders) -> ExitCode {
    let store = loop {
        match PostgresStore::connect(&orders.url) {
            Ok(store) => break store.lease_times(LEASE),
            Err(_) => thread::sleep(PAUSE),
        }
    };
    let points = Arc::new(Points { until: orders.point, passed: AtomicU64::new(0) });
    let settling = (orders.root.clone(), store.clone(), Arc::clone(&points));
    thread::spawn(move || settle_all(&settling.0, &settling.1, &settling.2));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(work(orders, store, points));
    runtime.shutdown_background();
    ExitCode::SUCCESS
}

/// Settles the calls that wait, as persons do at other terminals.
fn settle_all(root: &Path, store: &PostgresStore, points: &Points) {
    let approvals = approvals(root, store);
    loop {
        thread::sleep(3 * PAUSE);
        // Without the server, the next attempt succeeds.
        let _ = settle(&approvals, points, |call| {
            let session = call.call.session.clone().unwrap();
            loop {
                if let Ok(info) = store.find(&owner(), &session) {
                    return root.join(&*info.name.unwrap());
                }
                thread::sleep(PAUSE);
            }
        });
    }
}

async fn work(orders: &WorkerOrders, store: PostgresStore, points: Arc<Points>) {
    let root = orders.root.clone();
    let dir = move |info: &SessionInfo| root.join(&**info.name.as_ref().unwrap());
    let observed = Observed::new(Arc::new(store.clone()), Arc::clone(&points), dir);
    let observed: Arc<dyn SessionStore> = Arc::new(observed);
    let approvals = approvals(&orders.root, &store);
    let mut running = JoinSet::new();
    while !orders.root.join(STOP).exists() {
        let claimed = match running.len() < CONCURRENCY {
            true => Session::claim(&observed, None).await.ok().flatten(),
            false => None,
        };
        let Some(session) = claimed else {
            tokio::select! {
                _ = running.join_next(), if !running.is_empty() => {}
                () = sleep(PAUSE) => {}
            }
            continue;
        };
        let name = session.name().unwrap().to_string();
        let orders = Orders {
            dir: orders.root.join(&name),
            script: name.trim_start_matches('s').parse().unwrap(),
            point: 0,
            fault: String::new(),
            settles: false,
            address: format!("{}/{name}", orders.address),
        };
        let (agent, dir) = (agent(&orders, &points), orders.dir.clone());
        let mut options = RunOptions::default().session(&session);
        let approver = approvals.approver(Some(Arc::clone(session.id())));
        options.turn = options.turn.approver(Arc::new(approver));
        running.spawn(async move {
            let outcome = agent.segment(options).await;
            if let Some(error) = &outcome.error {
                append(&dir.join("errors.txt"), &format!("{}\n", error.message));
            }
            // Without the server, the lease expires.
            let _ = session.end_segment(&outcome, Duration::ZERO).await;
        });
    }
}
