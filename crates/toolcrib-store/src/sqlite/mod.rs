//! A store in one SQLite file, or in memory.

#![allow(
    clippy::disallowed_methods,
    reason = "this is where sessions are kept; no tool's body names a path here"
)]

mod approvals;
mod kv;
mod limits;
mod open;
mod read;
mod search;
mod unsigned;
mod usage;
mod work;
mod write;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use rusqlite::{
    Connection, ErrorCode, OptionalExtension as _, Transaction, TransactionBehavior, params,
};
use toolcrib_core::{
    __internal::millis, ClaimedSession, FoundMessage, NewSession, SentPart, SessionHistory,
    SessionInfo, SessionLease, SessionOwner, SessionRecord, SessionRetention, SessionSearch,
    SessionStore, SessionStoreError, Store, StoreId, StoredRun, StoredSession, TracedEvent,
};

use self::{unsigned::UnsignedInt, write::Durability};
use crate::{
    frozen::FrozenError,
    session::{
        EMPTY_DIES_AFTER, ID_ATTEMPTS, check_name, lease_end, new_id, new_token, now_ms, owner_key,
    },
    unsaved::UnsavedKeys,
};

/// The path of a store in memory, as SQLite names it.
const IN_MEMORY: &str = ":memory:";

/// A [`SessionStore`] in a file, which several processes may share, or in memory. Only the process's
/// user can read the file.
///
/// Writes go to SQLite's write-ahead log. They are synced to disk only if they contain the intent
/// of a call that may not be repeated; such a write costs one `fsync`, some milliseconds on a disk.
/// Removed content is overwritten.
#[derive(Clone)]
pub struct SqliteStore(Arc<Inner>);

struct Inner {
    id: StoreId,
    path: PathBuf,
    connection: Mutex<DurableConnection>,
    /// The keys of conversations that are not sessions; of a store in memory, all but those of sessions.
    unsaved: Mutex<UnsavedKeys>,
}

/// The connection, with the durability of its last write.
struct DurableConnection {
    connection: Connection,
    durability: Durability,
}

impl SqliteStore {
    /// Opens the file, and creates it if it is missing. Its folder must exist. Blocks.
    ///
    /// # Errors
    /// [`SessionStoreError`], such as
    /// [`NewerSchema`](toolcrib_core::SessionStoreError::NewerSchema).
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, SessionStoreError> {
        let path = path.into();
        let connection = open::create(&path)?;
        Ok(Self::of(path, connection))
    }

    /// A store in memory, for tests and for programs that keep nothing. Its clones share it.
    ///
    /// # Errors
    /// [`SessionStoreError::Io`] without memory.
    pub fn in_memory() -> Result<Self, SessionStoreError> {
        Ok(Self::of(IN_MEMORY.into(), open::in_memory()?))
    }

    fn of(path: PathBuf, connection: Connection) -> Self {
        let connection =
            Mutex::new(DurableConnection { connection, durability: Durability::Process });
        let unsaved = Mutex::default();
        Self(Arc::new(Inner { id: StoreId::new(), path, connection, unsaved }))
    }

    /// Opens the file; `None` if it is missing. Blocks.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub fn open_existing(path: impl Into<PathBuf>) -> Result<Option<Self>, SessionStoreError> {
        let path = path.into();
        match path.symlink_metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            _ => Self::open(path).map(Some),
        }
    }

    /// The file; `:memory:` of a store in memory.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Runs a function in a transaction that sees one state of the file.
    fn reading<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Failure>,
    ) -> Result<T, SessionStoreError> {
        let mut durable = self.0.connection.lock();
        let transaction = || -> Result<T, Failure> {
            let transaction = durable.connection.transaction()?;
            work(&transaction)
        };
        transaction().map_err(|failure| self.0.error("read", failure))
    }

    /// Runs a function in a transaction with the file's write lock, and commits it.
    fn writing<T>(
        &self,
        durability: Durability,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Failure>,
    ) -> Result<T, SessionStoreError> {
        let mut durable = self.0.connection.lock();
        let transaction = || -> Result<T, Failure> {
            let DurableConnection { connection, durability: current } = &mut *durable;
            if *current != durability {
                // Not possible within a transaction. Without I/O.
                connection.pragma_update(None, "synchronous", durability.pragma())?;
                *current = durability;
            }
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let done = work(&transaction)?;
            transaction.commit()?;
            Ok(done)
        };
        transaction().map_err(|failure| self.0.error("written", failure))
    }
}

toolcrib_core::__internal::debug_fields!(SqliteStore, store, store.0.path);

/// Why a transaction failed.
enum Failure {
    Sqlite(rusqlite::Error),
    Store(SessionStoreError),
    /// Content that cannot be stored or read.
    Content(String),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<SessionStoreError> for Failure {
    fn from(error: SessionStoreError) -> Self {
        Self::Store(error)
    }
}

impl From<FrozenError> for Failure {
    fn from(error: FrozenError) -> Self {
        Self::Content(error.to_string())
    }
}

impl Inner {
    fn error(&self, doing: &'static str, failure: Failure) -> SessionStoreError {
        sqlite_error(&self.path, doing, failure)
    }
}

fn sqlite_error(path: &Path, doing: &'static str, failure: Failure) -> SessionStoreError {
    let store = path.display().to_string();
    match failure {
        Failure::Store(error) => error,
        Failure::Content(problem) => SessionStoreError::Damaged { store, problem },
        Failure::Sqlite(error) => match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                SessionStoreError::Damaged { store, problem: error.to_string() }
            }
            _ => SessionStoreError::Io { store, doing, source: error.into() },
        },
    }
}

fn unknown(session: &str) -> Failure {
    SessionStoreError::Unknown { session: session.into() }.into()
}

/// Refuses a session with a lease that has not expired. The session must be the owner's.
fn check_free(
    transaction: &Transaction<'_>,
    owner: &SessionOwner,
    id: &str,
) -> Result<(), Failure> {
    let lease =
        "SELECT lease IS NOT NULL, lease_until_ms FROM sessions WHERE id = ?1 AND owner = ?2";
    let lease = transaction
        .query_row(lease, params![id, owner_key(owner)], |row| {
            Ok((row.get::<_, bool>(0)?, row.get::<_, UnsignedInt>(1)?))
        })
        .optional()?;
    match lease {
        None => Err(unknown(id)),
        Some((true, UnsignedInt(until_ms))) if until_ms > now_ms() => {
            Err(SessionStoreError::InUse { session: id.into(), until_ms }.into())
        }
        Some(_) => Ok(()),
    }
}

/// Refuses a lease that another has replaced. Removed sessions have none.
fn check_lease(transaction: &Transaction<'_>, lease: &SessionLease) -> Result<(), Failure> {
    let is_present = "SELECT 1 FROM sessions WHERE id = ?1 AND lease = ?2";
    let present = transaction
        .prepare_cached(is_present)?
        .query_row(params![lease.session, lease.token], |_| Ok(()))
        .optional()?;
    present.ok_or_else(|| lost(lease))
}

fn lost(lease: &SessionLease) -> Failure {
    SessionStoreError::LeaseLost { session: Arc::clone(&lease.session) }.into()
}

impl SessionStore for SqliteStore {
    fn create(&self, new: &NewSession) -> Result<SessionInfo, SessionStoreError> {
        check_name(new)?;
        self.writing(Durability::Process, |transaction| {
            let owner = owner_key(&new.owner);
            if let Some(name) = &new.name {
                let taken = "SELECT 1 FROM sessions WHERE owner = ?1 AND name = ?2";
                if transaction
                    .query_row(taken, params![owner, name], |_| Ok(()))
                    .optional()?
                    .is_some()
                {
                    return Err(SessionStoreError::NameTaken { name: Arc::clone(name) }.into());
                }
            }
            let insert = "INSERT INTO sessions (id, owner, name, personality, created_ms, used_ms)
                VALUES (?1, ?2, ?3, ?4, ?5, ?5) ON CONFLICT (id) DO NOTHING";
            for _ in 0..ID_ATTEMPTS {
                let info = SessionInfo::new(new_id(), new, now_ms());
                let created = UnsignedInt(info.created_ms);
                let row = params![info.id, owner, info.name, info.personality, created];
                if transaction.execute(insert, row)? == 1 {
                    return Ok(info);
                }
            }
            Err(Failure::Content("no unused id was found".to_owned()))
        })
    }

    fn find(&self, owner: &SessionOwner, session: &str) -> Result<SessionInfo, SessionStoreError> {
        self.reading(|transaction| read::info(transaction, owner, session))
    }

    fn list(
        &self,
        owner: &SessionOwner,
        limit: usize,
    ) -> Result<Vec<SessionInfo>, SessionStoreError> {
        self.reading(|transaction| read::list(transaction, owner, limit))
    }

    fn read(&self, owner: &SessionOwner, id: &str) -> Result<StoredSession, SessionStoreError> {
        self.reading(|transaction| read::session(transaction, owner, id))
    }

    fn history(&self, owner: &SessionOwner, id: &str) -> Result<SessionHistory, SessionStoreError> {
        self.reading(|transaction| read::history(transaction, owner, id))
    }

    fn runs(
        &self,
        owner: &SessionOwner,
        limit: usize,
    ) -> Result<Vec<StoredRun>, SessionStoreError> {
        self.reading(|transaction| read::runs(transaction, owner, limit))
    }

    fn events(
        &self,
        owner: &SessionOwner,
        id: &str,
        turn: u32,
    ) -> Result<Vec<TracedEvent>, SessionStoreError> {
        self.reading(|transaction| read::events(transaction, owner, id, turn))
    }

    fn sent(&self, owner: &SessionOwner, id: &str) -> Result<Vec<SentPart>, SessionStoreError> {
        self.reading(|transaction| read::sent(transaction, owner, id))
    }

    fn search(
        &self,
        owner: &SessionOwner,
        search: &SessionSearch,
    ) -> Result<Vec<FoundMessage>, SessionStoreError> {
        self.reading(|transaction| search::found(transaction, owner, search))
    }

    fn acquire(
        &self,
        owner: &SessionOwner,
        id: &str,
        time: Duration,
    ) -> Result<SessionLease, SessionStoreError> {
        self.writing(Durability::Process, |transaction| {
            check_free(transaction, owner, id)?;
            let token = new_token();
            transaction.execute(
                "UPDATE sessions SET lease = ?2, lease_until_ms = ?3 WHERE id = ?1",
                params![id, token, UnsignedInt(lease_end(time))],
            )?;
            Ok(SessionLease { session: id.into(), token })
        })
    }

    fn renew(&self, lease: &SessionLease, time: Duration) -> Result<bool, SessionStoreError> {
        self.writing(Durability::Process, |transaction| {
            check_lease(transaction, lease)?;
            transaction.execute(
                "UPDATE sessions SET lease_until_ms = ?2 WHERE id = ?1",
                params![lease.session, UnsignedInt(lease_end(time))],
            )?;
            work::is_cancelled(transaction, &lease.session)
        })
    }

    fn release(&self, lease: &SessionLease) -> Result<(), SessionStoreError> {
        self.writing(Durability::Process, |transaction| {
            transaction.execute(
                "UPDATE sessions SET lease = NULL, lease_until_ms = 0 WHERE id = ?1 AND lease = ?2",
                params![lease.session, lease.token],
            )?;
            Ok(())
        })
    }

    fn submit(
        &self,
        owner: &SessionOwner,
        id: &str,
        message: &str,
    ) -> Result<(), SessionStoreError> {
        // The process that submits does not wait for the run.
        self.writing(Durability::Power, |transaction| work::submit(transaction, owner, id, message))
    }

    fn claim(
        &self,
        owner: Option<&SessionOwner>,
        time: Duration,
    ) -> Result<Option<ClaimedSession>, SessionStoreError> {
        self.writing(Durability::Process, |transaction| work::claim(transaction, owner, time))
    }

    fn cancel(&self, owner: &SessionOwner, id: &str) -> Result<bool, SessionStoreError> {
        // A person does not cancel twice.
        self.writing(Durability::Power, |transaction| work::cancel(transaction, owner, id))
    }

    fn write(
        &self,
        lease: &SessionLease,
        seen: u64,
        records: &[SessionRecord],
    ) -> Result<u64, SessionStoreError> {
        self.writing(Durability::of(records), |transaction| {
            write::records(transaction, lease, seen, records)
        })
    }

    fn usage_store_id(&self) -> Option<StoreId> {
        Some(self.0.id)
    }

    fn remove(&self, owner: &SessionOwner, id: &str) -> Result<(), SessionStoreError> {
        self.writing(Durability::Process, |transaction| {
            check_free(transaction, owner, id)?;
            transaction.execute("DELETE FROM sessions WHERE id = ?1", [id])?;
            Ok(())
        })?;
        self.shrink()
    }

    fn prune(&self, retention: &SessionRetention) -> Result<usize, SessionStoreError> {
        let expired = "DELETE FROM sessions WHERE (lease IS NULL OR lease_until_ms <= ?1)
            AND submitted = '[]' AND (used_ms < ?2 OR used_ms < ?3 AND turns = 0 AND name IS NULL)";
        // The running total counts from the last used session to the first.
        let too_large = "DELETE FROM sessions WHERE (lease IS NULL OR lease_until_ms <= ?1)
            AND submitted = '[]' AND id IN (SELECT id FROM
                (SELECT id, sum(bytes) OVER (ORDER BY used_ms DESC, id DESC) AS total FROM sessions)
                WHERE total > ?2)";
        let removed = self.writing(Durability::Process, |transaction| {
            let now = now_ms();
            let since = |time| UnsignedInt(now.saturating_sub(millis(time)));
            let ages =
                params![UnsignedInt(now), since(retention.keep_for), since(EMPTY_DIES_AFTER)];
            transaction.execute("DELETE FROM kv WHERE expires_ms <= ?1", [UnsignedInt(now)])?;
            limits::prune(transaction)?;
            let expired = transaction.execute(expired, ages)?;
            usage::prune(transaction)?;
            // The sum alone needs no order.
            let total = "SELECT coalesce(sum(bytes), 0) > ?1 FROM sessions";
            let max_bytes = UnsignedInt(retention.max_bytes);
            if !transaction.query_row(total, [&max_bytes], |row| row.get::<_, bool>(0))? {
                return Ok(expired);
            }
            let sizes = params![UnsignedInt(now), max_bytes];
            Ok(expired + transaction.execute(too_large, sizes)?)
        })?;
        if removed > 0 {
            self.shrink()?;
        }
        Ok(removed)
    }
}

impl Store for SqliteStore {}

impl SqliteStore {
    /// Returns the space of removed content to the file system, also in the write-ahead log. If
    /// another process reads the file, its next removal does so.
    fn shrink(&self) -> Result<(), SessionStoreError> {
        let durable = self.0.connection.lock();
        let vacuum = "PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE);";
        match durable.connection.execute_batch(vacuum) {
            Err(error) if error.sqlite_error_code() != Some(ErrorCode::DatabaseBusy) => {
                Err(self.0.error("written", error.into()))
            }
            _ => Ok(()),
        }
    }
}
