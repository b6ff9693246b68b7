//! A SQLite database that a project declares: made from a seed script under a lock, used through
//! handles that either only read or also write, one transaction per use.
//!
//! - [`Database::open`] makes the file if it is missing and keeps it from being made anew while the
//!   value lives. [`Database::claim`] is how it is made anew. [`Database::inspect`] writes nothing at
//!   all and runs nothing.
//! - [`Database::read_only`] and [`Database::writable`] give the [`DatabaseHandle`]s that bodies get.
//!   A handle cannot be widened.
//! - [`DatabaseHandle::transaction`] runs a function in one transaction on the blocking pool;
//!   [`DatabaseHandle::describe`] prepares a statement against the schema without running it.
//!
//! Statements on a handle may neither attach another file, nor set a pragma, nor begin or end
//! transactions, nor make temporary objects (connections are shared), nor load extensions. Foreign
//! keys are enforced, and text in double quotes is a name, never a string, so that a misspelt
//! column is an error. No text, blob or row may be larger than [`MAX_VALUE_BYTES`].

mod connection;
mod error;
mod guard;
mod lock;
mod make;
mod pool;
mod private;
mod replace;
mod seed;
mod transaction;

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
};

/// The SQLite binding whose types stand in this module's API.
pub use rusqlite;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use self::{
    connection::GuardedConnection,
    guard::Access,
    lock::{Lock, SharedLock},
    pool::Pool,
};
pub use self::{
    connection::{MAX_VALUE_BYTES, StatementDescription},
    error::{DatabaseError, StatementError},
    make::SIDE_FILES,
    transaction::Settle,
};

/// Which database: its name, its file, and the script that makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseSpec {
    /// The name under which a project declares it, for messages.
    pub name: Arc<str>,
    /// Its file, absolute. The folder must exist when the database is opened. Beside the file stand
    /// `FILE.lock`, which also notes the seed, and others while it is made or used; see
    /// [`SIDE_FILES`].
    pub file: PathBuf,
    /// What makes it.
    pub seed: Seed,
}

/// The script that makes a database: any SQL but `ATTACH`, with every transaction closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seed {
    /// Where the script comes from, for messages, such as `seed.sql`.
    pub name: Arc<str>,
    /// The script.
    pub sql: Arc<str>,
}

/// An open database: what a host keeps. Cheap to clone; clones share it.
///
/// Neighbour: a [`DatabaseHandle`] is what a tool's body gets.
#[derive(Clone)]
pub struct Database(Arc<Shared>);

pub(crate) struct Shared {
    name: Arc<str>,
    file: PathBuf,
    made: bool,
    kept: Option<PathBuf>,
    seed_has_changed: bool,
    state: State,
    /// Who may read at the same time: as many as there are processors. More would not be done
    /// sooner, and would keep the runtime's own threads from theirs.
    reading: Semaphore,
}

enum State {
    // The pools stand before the lock, so that connections are closed before it is given up.
    Open { readers: Pool, writers: Pool, _lock: SharedLock },
    Inspected(Box<std::sync::Mutex<GuardedConnection>>),
}

impl Database {
    /// Opens a database, and makes it from its seed if its file is missing.
    ///
    /// Blocks, at most as long as another process needs to make the same database; `cancel` ends
    /// that. As long as the value or a handle of it lives, no process can make the file anew. Of
    /// several processes that find it missing one makes it and the others use it. It comes into
    /// place whole or not at all.
    ///
    /// Where the folder cannot be written, a database that is there can be read. It is then taken
    /// not to change while a transaction lasts: if somebody else may write there and does at that
    /// moment, what is read may be wrong.
    ///
    /// # Errors
    /// [`Unreadable`](DatabaseError::Unreadable) when the file is there and no database;
    /// [`Seed`](DatabaseError::Seed) when the script fails; [`DatabaseError::InUse`] when the file
    /// is removed under others who use it; [`Cancelled`](DatabaseError::Cancelled);
    /// [`File`](DatabaseError::File).
    pub fn open(spec: &DatabaseSpec, cancel: &CancellationToken) -> Result<Self, DatabaseError> {
        let (lock, made) = lock::acquire(spec, cancel)?;
        Self::opened(spec, lock, made, None, cancel)
    }

    /// Takes a database for oneself, in order to [make it anew](Claim::make_anew). Nothing is
    /// changed yet, so that several can be claimed before the first is made. Does not wait.
    ///
    /// # Errors
    /// [`DatabaseError::InUse`] at once while anybody has it open, this process included;
    /// [`NotOurs`](DatabaseError::NotOurs) for a file that was not made here;
    /// [`File`](DatabaseError::File).
    pub fn claim(spec: &DatabaseSpec) -> Result<Claim<'_>, DatabaseError> {
        lock::claim(spec).map(Claim)
    }

    /// Looks at a database without writing a byte anywhere: at its file if that is there, else at
    /// an empty memory into which the seed is run. Statements can be described, none can be run.
    ///
    /// # Errors
    /// As [`open`](Self::open), less `InUse`; `cancel` ends a seed that does not end.
    pub fn inspect(spec: &DatabaseSpec, cancel: &CancellationToken) -> Result<Self, DatabaseError> {
        let connection = make::inspect(spec, cancel)?;
        let state = State::Inspected(Box::new(connection.into()));
        Ok(Self::new(spec, false, None, lock::seed_has_changed(spec), state))
    }

    /// The same with an empty memory into which the seed is run, also where the file is there: what
    /// [`Claim::make_anew`] would make.
    ///
    /// # Errors
    /// [`Seed`](DatabaseError::Seed); [`Cancelled`](DatabaseError::Cancelled).
    pub fn preview(spec: &DatabaseSpec, cancel: &CancellationToken) -> Result<Self, DatabaseError> {
        let connection = make::preview(spec, cancel)?;
        let state = State::Inspected(Box::new(connection.into()));
        // It is made from the seed as it is now.
        Ok(Self::new(spec, false, None, false, state))
    }

    fn opened(
        spec: &DatabaseSpec,
        lock: SharedLock,
        made: bool,
        kept: Option<PathBuf>,
        cancel: &CancellationToken,
    ) -> Result<Self, DatabaseError> {
        let (reader, beside) = make::verify(spec, cancel)?;
        let readers = Pool::new(Access::Read, beside);
        readers.put_back(reader);
        let writers = Pool::new(Access::Write, beside);
        let state = State::Open { readers, writers, _lock: lock };
        Ok(Self::new(spec, made, kept, lock::seed_has_changed(spec), state))
    }

    fn new(
        spec: &DatabaseSpec,
        made: bool,
        kept: Option<PathBuf>,
        seed_has_changed: bool,
        state: State,
    ) -> Self {
        Self(Arc::new(Shared {
            name: Arc::clone(&spec.name),
            file: spec.file.clone(),
            made,
            kept,
            seed_has_changed,
            state,
            reading: Semaphore::new(thread::available_parallelism().map_or(1, usize::from)),
        }))
    }

    /// The name under which it is declared.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Its file. It may be missing where the database is only inspected.
    pub fn file(&self) -> &Path {
        &self.0.file
    }

    /// Whether opening it made its file.
    pub fn was_made(&self) -> bool {
        self.0.made
    }

    /// Where the file that was there before is kept, if opening it replaced one.
    pub fn kept(&self) -> Option<&Path> {
        self.0.kept.as_deref()
    }

    /// Whether its file was made from another seed than the one that is declared now; `false` where
    /// that is not known.
    pub fn seed_has_changed(&self) -> bool {
        self.0.seed_has_changed
    }

    /// A handle that can only read: its connections are opened read-only.
    pub fn read_only(&self) -> DatabaseHandle {
        DatabaseHandle { shared: Arc::clone(&self.0), access: Access::Read }
    }

    /// A handle that can also write.
    pub fn writable(&self) -> DatabaseHandle {
        DatabaseHandle { shared: Arc::clone(&self.0), access: Access::Write }
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database")
            .field("name", &self.0.name)
            .field("file", &self.0.file)
            .field("inspected", &matches!(self.0.state, State::Inspected(_)))
            .finish_non_exhaustive()
    }
}

/// A database that nobody else can open until it is made anew, or this is dropped.
pub struct Claim<'a>(Lock<'a>);

impl Claim<'_> {
    /// Makes the database from its seed and opens it. A file that is there is kept beside it, as
    /// `FILE.old-N`; see [`Database::kept`]. Blocks; `cancel` ends that.
    ///
    /// # Errors
    /// As [`Database::open`]. When the seed fails, what was there before stays.
    pub fn make_anew(self, cancel: &CancellationToken) -> Result<Database, DatabaseError> {
        let spec = self.0.spec;
        let (lock, kept) = lock::make_anew(self.0, cancel)?;
        Database::opened(spec, lock, true, kept, cancel)
    }
}

impl fmt::Debug for Claim<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Claim").field(&self.0.spec.name).finish()
    }
}

/// A database as a tool's body has it: to read only, or to write too, as the host decided. Cheap
/// to clone. Holding one keeps the database open.
///
/// Neighbour: [`Database`] is what the host keeps and makes handles from.
#[derive(Clone)]
pub struct DatabaseHandle {
    shared: Arc<Shared>,
    access: Access,
}

impl DatabaseHandle {
    /// The name under which the database is declared.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Whether it can only read.
    pub fn is_read_only(&self) -> bool {
        self.access == Access::Read
    }

    /// Prepares one statement against the schema as it is now, and says what it takes and gives.
    /// Runs nothing, blocks shortly.
    ///
    /// # Errors
    /// [`StatementError`] when it could not be run through this handle.
    pub fn describe(&self, sql: &str) -> Result<StatementDescription, StatementError> {
        self.shared.describe(self.access, sql)
    }
}

impl fmt::Debug for DatabaseHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatabaseHandle")
            .field("name", &self.shared.name)
            .field("access", &self.access)
            .finish()
    }
}
