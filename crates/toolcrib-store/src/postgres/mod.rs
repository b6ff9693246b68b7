//! A store in a PostgreSQL database.

mod approvals;
mod artifacts;
mod connect;
mod inspect;
mod kv;
mod marks;
mod read;
mod record;
mod schema;
mod search;
mod sessions;
mod usage;
mod work;
mod write;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::sync_channel,
    },
    time::Duration,
};

use deadpool_postgres::{Pool, PoolError};
use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Row, types::ToSql};
use toolcrib_core::{ArtifactStore, LeaseTimes, SessionStoreError, Store, StoreId};

use self::{artifacts::PostgresArtifacts, connect::shown};
pub use self::{inspect::ServerFinding, marks::PostgresMarks};
use crate::{frozen::FrozenError, unsaved::UnsavedKeys};

/// The times of leases by default: a server's clock is the only one, so a crash is found out soon.
const LEASE: LeaseTimes =
    LeaseTimes { lease: Duration::from_secs(5), renew_every: Duration::from_secs(1) };

/// A [`Store`] in a PostgreSQL database, which several machines may share. Its tables are in the schema
/// `toolcrib`, which it creates. Neighbor: a [`SqliteStore`](crate::SqliteStore) is a file of one machine.
///
/// All times are of the server's clock. Each method is one statement, so one round trip; one more prepares it
/// the first time on a connection. A write survives a crash of the server only if it contains the intent of
/// a call that may not be repeated, or precedes such a write; a writer learns of one that was lost. The
/// server must have `fsync` on, unless the loss is [accepted](Self::accept_loss), and with replicas that
/// may replace it, synchronous ones.
///
/// Methods block, in an async context too. Clones share up to 16 connections, each of which has prepared
/// statements: a pooler between must keep one server connection per client connection.
#[derive(Clone)]
pub struct PostgresStore {
    database: Arc<Database>,
    lease_times: LeaseTimes,
    /// Whether the intent of a call may be acknowledged and lost.
    may_lose: bool,
    accepts_loss: bool,
}

/// Connections to one database.
struct Database {
    id: StoreId,
    /// The servers and the database, without user and password.
    shown: String,
    pool: Pool,
    /// Drives the connections. `None` only while it is dropped.
    runtime: Option<Runtime>,
    round_trips: AtomicU64,
    /// The keys of conversations that are not sessions.
    unsaved: Mutex<UnsavedKeys>,
}

/// A value of a statement.
type Param = Box<dyn ToSql + Send + Sync>;

/// The values of a statement, owned, since another thread sends them.
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        vec![$(Box::new($value) as $crate::postgres::Param),*]
    };
}
use params;

impl PostgresStore {
    /// Connects to the database of a URL or key-value string, and creates or migrates its tables. Over TCP
    /// there is TLS with a verified certificate, unless the URL says `sslmode=disable`. Blocks.
    ///
    /// # Errors
    /// [`SessionStoreError`], such as [`NewerSchema`](SessionStoreError::NewerSchema). Its text does not
    /// contain the URL.
    pub fn connect(url: &str) -> Result<Self, SessionStoreError> {
        let database = Database::connect(url)?;
        schema::prepare(&database)?;
        let durable = database.query("opened", inspect::IS_DURABLE, params![])?;
        let may_lose = !durable.iter().all(|row| row.get(0));
        let database = Arc::new(database);
        Ok(Self { database, lease_times: LEASE, may_lose, accepts_loss: false })
    }

    /// Declares that the server may lose an acknowledged intent, whose call is then made twice. Default:
    /// `false`, and where `fsync` is off, the intent of a call that may not be repeated is refused with
    /// [`NotDurable`](SessionStoreError::NotDurable).
    #[must_use]
    pub fn accept_loss(mut self, accepts: bool) -> Self {
        self.accepts_loss = accepts;
        self
    }

    /// Sets the times of leases. Default: 5 seconds, renewed every second.
    #[must_use]
    pub fn lease_times(mut self, times: LeaseTimes) -> Self {
        self.lease_times = times;
        self
    }

    /// The number of statements that were sent so far, each of which is one round trip.
    pub fn round_trips(&self) -> u64 {
        self.database.round_trips.load(Ordering::Relaxed)
    }

    /// Sends a statement that reads.
    fn read(&self, sql: &'static str, params: Vec<Param>) -> Result<Vec<Row>, SessionStoreError> {
        self.database.query("read", sql, params)
    }

    /// Sends a statement that writes.
    fn written(
        &self,
        sql: &'static str,
        params: Vec<Param>,
    ) -> Result<Vec<Row>, SessionStoreError> {
        self.database.query("written", sql, params)
    }

    fn damaged(&self, problem: impl Into<String>) -> SessionStoreError {
        self.database.damaged(problem)
    }
}

impl Store for PostgresStore {
    fn artifacts(&self, keep_for: Duration) -> Option<Arc<dyn ArtifactStore>> {
        Some(Arc::new(PostgresArtifacts::new(Arc::clone(&self.database), keep_for)))
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PostgresStore").field(&self.database.shown).finish()
    }
}

impl Database {
    fn connect(url: &str) -> Result<Self, SessionStoreError> {
        let failed = |source: Box<dyn std::error::Error + Send + Sync>| SessionStoreError::Io {
            store: "the PostgreSQL store".to_owned(),
            doing: "opened",
            source,
        };
        let config = connect::config(url).map_err(failed)?;
        let shown = shown(&config);
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("toolcrib-postgres")
            .enable_all()
            .build()
            .map_err(|error| failed(error.into()))?;
        let pool = connect::pool(config).map_err(failed)?;
        let (id, unsaved) = (StoreId::new(), Mutex::default());
        let round_trips = AtomicU64::new(0);
        Ok(Self { id, shown, pool, runtime: Some(runtime), round_trips, unsaved })
    }

    /// Runs one statement in a separate transaction.
    fn query(
        &self,
        doing: &'static str,
        sql: &'static str,
        params: Vec<Param>,
    ) -> Result<Vec<Row>, SessionStoreError> {
        self.round_trips.fetch_add(1, Ordering::Relaxed);
        let pool = self.pool.clone();
        self.block(doing, async move {
            let client = pool.get().await?;
            let statement = client.prepare_cached(sql).await?;
            let params: Vec<&(dyn ToSql + Sync)> =
                params.iter().map(|param| &**param as &(dyn ToSql + Sync)).collect();
            Ok(client.query(&statement, &params).await?)
        })
    }

    /// Waits for a future on the runtime of the connections. Does not need, and permits, an async context.
    fn block<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl Future<Output = Result<T, PoolError>> + Send + 'static,
    ) -> Result<T, SessionStoreError> {
        let (send, receive) = sync_channel(1);
        if let Some(runtime) = &self.runtime {
            // Without a receiver, the result is of no use.
            runtime.spawn(async move { drop(send.send(work.await)) });
        }
        let io = |source| SessionStoreError::Io { store: self.shown.clone(), doing, source };
        match receive.recv() {
            Ok(done) => done.map_err(|error| io(problem(&error).into())),
            Err(ended) => Err(io(ended.into())),
        }
    }

    fn damaged(&self, problem: impl Into<String>) -> SessionStoreError {
        SessionStoreError::Damaged { store: self.shown.clone(), problem: problem.into() }
    }

    fn frozen(&self, error: &FrozenError) -> SessionStoreError {
        self.damaged(error.to_string())
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // A runtime that is dropped in an async context would panic.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The server's own words: the driver's text says only that there is an error.
fn problem(error: &PoolError) -> String {
    match error {
        PoolError::Backend(error) => match error.as_db_error() {
            Some(told) => format!("{} ({})", told.message(), told.code().code()),
            None => match std::error::Error::source(error) {
                Some(source) => format!("{error}: {source}"),
                None => error.to_string(),
            },
        },
        other => other.to_string(),
    }
}

/// A number without sign as a column has it: a larger number is stored as the largest of them.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number of a column that is never negative.
fn unsigned(row: &Row, column: usize) -> u64 {
    u64::try_from(row.get::<_, i64>(column)).unwrap_or_default()
}

/// A text of a column of bytes: PostgreSQL's texts have no NUL.
fn text(row: &Row, column: usize) -> Arc<str> {
    String::from_utf8_lossy(row.get(column)).into()
}

/// The present time of the server, in milliseconds since 1970. Used in statements.
macro_rules! now {
    () => {
        "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
    };
}
use now;

/// Makes the write of this statement survive a crash of this process only, not one of the server. Used in
/// the output of a statement.
macro_rules! unsynced {
    () => {
        "set_config('synchronous_commit', 'off', true)"
    };
}
use unsynced;
