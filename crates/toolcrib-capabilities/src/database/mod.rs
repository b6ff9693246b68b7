//! A SQLite database that a project declares: created from a seed script under a lock, or an existing
//! file of another program; used through handles that are read-only or writable, one transaction per
//! use.
//!
//! - [`Database::open`] creates the file if it is missing, and prevents that it is recreated while
//!   the value exists. [`Database::claim`] permits recreating it. [`Database::inspect`] writes
//!   nothing and runs no statements.
//! - [`Database::open_file`] opens an existing file, read-only unless declared otherwise. It is
//!   never created, replaced, or given another mode.
//! - [`Database::read_only`], [`Database::writable`] and [`Database::exploring`] return the
//!   [`DatabaseHandle`]s for bodies. A handle cannot be widened.
//! - [`DatabaseHandle::transaction`] runs a function in one transaction on the blocking pool;
//!   [`DatabaseHandle::describe`] prepares a statement against the schema without running it.
//!
//! Statements on a handle cannot attach another file, set a pragma, begin or end transactions,
//! create temporary objects (connections are shared), or load extensions. Foreign keys are
//! enforced, and text in double quotes is a name, never a string, so that a misspelled column is an
//! error. The mathematical functions of SQLite's shell are available, such as `sqrt`. No text, blob or row may be larger than [`MAX_VALUE_BYTES`]. The schema of the file is not
//! trusted: its views and triggers call no functions with side effects, and SQLite's defensive mode
//! is on.

mod connection;
mod error;
mod file;
mod files;
mod guard;
mod lock;
mod make;
mod math;
mod pool;
pub mod postgres;
mod replace;
mod seed;
mod transaction;
mod unknown;

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
};

/// The SQLite binding whose types appear in this module's API.
pub use rusqlite;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use self::{
    connection::GuardedConnection,
    guard::Access,
    lock::{Lock, SharedLock},
    pool::Pools,
};
pub use self::{
    connection::MAX_VALUE_BYTES,
    connection::{StatementDescription, TransactionEnd},
    error::{DatabaseError, StatementError},
    files::SIDE_FILES,
};

/// The description of a database: its name, its file, and its seed script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseSpec {
    /// The declared name, for messages.
    pub name: Arc<str>,
    /// Its file, absolute. The folder must exist when the database is opened. Next to the file is
    /// `FILE.lock`, which also contains the seed's digest, and other files while it is created or
    /// used; see [`SIDE_FILES`].
    pub file: PathBuf,
    /// The seed script.
    pub seed: Seed,
}

/// The description of an existing database file that another program created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSpec {
    /// The declared name, for messages.
    pub name: Arc<str>,
    /// Its file, absolute.
    pub file: PathBuf,
    /// Whether handles may write.
    pub writable: bool,
}

/// The script that creates a database: any SQL but `ATTACH`, with every transaction closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seed {
    /// The script's source, for messages, such as `seed.sql`.
    pub name: Arc<str>,
    /// The script.
    pub sql: Arc<str>,
}

/// An open database, owned by the host. Cheap to clone; clones share it.
///
/// Neighbor: a [`DatabaseHandle`] is for a tool's body.
#[derive(Clone)]
pub struct Database(Arc<Shared>);

pub(crate) struct Shared {
    name: Arc<str>,
    file: PathBuf,
    made: bool,
    kept: Option<PathBuf>,
    seed_has_changed: bool,
    writable: bool,
    state: State,
    /// Limits concurrent readers to the number of processors. More would not be faster, and would
    /// take time from the runtime's threads.
    reading: Semaphore,
}

enum State {
    // The pools come before the lock, so that connections are closed before it is released.
    Open { pools: Pools, _lock: Option<SharedLock> },
    Inspected(Box<parking_lot::Mutex<GuardedConnection>>),
}

impl Database {
    /// Opens a database, and creates it from its seed if its file is missing.
    ///
    /// Blocks at most as long as another process needs to create the same database; `cancel` ends
    /// that. As long as the value or a handle of it exists, no process can recreate the file. If
    /// several processes find it missing, one creates it and the others use it. It appears whole or
    /// not at all.
    ///
    /// If the folder is not writable, an existing database can be read. It is then assumed not to
    /// change during a transaction: if another user may write there and does at that moment, the
    /// data read may be wrong.
    ///
    /// # Errors
    /// [`Unreadable`](DatabaseError::Unreadable) if the file exists and is not a database;
    /// [`Seed`](DatabaseError::Seed) if the script fails; [`DatabaseError::InUse`] if the file is
    /// removed while others use it; [`Cancelled`](DatabaseError::Cancelled);
    /// [`File`](DatabaseError::File).
    pub fn open(spec: &DatabaseSpec, cancel: &CancellationToken) -> Result<Self, DatabaseError> {
        let (lock, made) = lock::acquire(spec, cancel)?;
        Self::opened(spec, lock, made, None, cancel)
    }

    /// Claims a database exclusively, in order to [recreate it](Claim::make_anew). Nothing is
    /// changed yet, so that several can be claimed before the first is created. Does not wait.
    ///
    /// # Errors
    /// [`DatabaseError::InUse`] at once while any process has it open, this one included;
    /// [`HeldByOther`](DatabaseError::HeldByOther) while another program has it open;
    /// [`NotOurs`](DatabaseError::NotOurs) for a file that was not created here;
    /// [`File`](DatabaseError::File).
    pub fn claim(spec: &DatabaseSpec) -> Result<Claim<'_>, DatabaseError> {
        lock::claim(spec).map(Claim)
    }

    /// Inspects a database without writing a byte: its file if it exists, else an empty memory into
    /// which the seed is run. Statements can be described, but not run.
    ///
    /// # Errors
    /// As [`open`](Self::open), except `InUse`; `cancel` ends an endless seed.
    pub fn inspect(spec: &DatabaseSpec, cancel: &CancellationToken) -> Result<Self, DatabaseError> {
        let connection = make::inspect(spec, cancel)?;
        let state = State::Inspected(Box::new(connection.into()));
        Ok(Self::new(spec, false, None, lock::seed_has_changed(spec), state))
    }

    /// The same with an empty memory into which the seed is run, even if the file exists: the
    /// result of [`Claim::make_anew`].
    ///
    /// # Errors
    /// [`Seed`](DatabaseError::Seed); [`Cancelled`](DatabaseError::Cancelled).
    pub fn preview(spec: &DatabaseSpec, cancel: &CancellationToken) -> Result<Self, DatabaseError> {
        let connection = make::preview(spec, cancel)?;
        let state = State::Inspected(Box::new(connection.into()));
        // It is created from the present seed.
        Ok(Self::new(spec, false, None, false, state))
    }

    /// Opens an existing file. Nothing is created but SQLite's side files `-wal` and `-shm`, which
    /// readers of a database in WAL mode need too. Other programs may read and write the file at
    /// the same time, as SQLite's locks permit.
    ///
    /// In a folder that cannot be written, a database in WAL mode without side files is read from a
    /// copy in memory, which is recreated for each transaction.
    ///
    /// # Errors
    /// [`CannotOpen`](DatabaseError::CannotOpen).
    pub fn open_file(spec: &FileSpec) -> Result<Self, DatabaseError> {
        let (reader, beside) = file::open(spec)?;
        let state = State::Open { pools: Pools::new(beside, reader), _lock: None };
        Ok(Self::of_file(spec, state))
    }

    /// Opens an existing file to inspect its schema. Statements can be described, but not run.
    ///
    /// # Errors
    /// As [`open_file`](Self::open_file).
    pub fn inspect_file(spec: &FileSpec) -> Result<Self, DatabaseError> {
        let (connection, _) = file::open(spec)?;
        Ok(Self::of_file(spec, State::Inspected(Box::new(connection.into()))))
    }

    fn of_file(spec: &FileSpec, state: State) -> Self {
        Self::shared(Shared {
            writable: spec.writable,
            ..Shared::new(&spec.name, &spec.file, state)
        })
    }

    fn opened(
        spec: &DatabaseSpec,
        lock: SharedLock,
        made: bool,
        kept: Option<PathBuf>,
        cancel: &CancellationToken,
    ) -> Result<Self, DatabaseError> {
        let (reader, beside) = make::verify(spec, cancel)?;
        let state = State::Open { pools: Pools::new(beside, reader), _lock: Some(lock) };
        Ok(Self::new(spec, made, kept, lock::seed_has_changed(spec), state))
    }

    fn new(
        spec: &DatabaseSpec,
        made: bool,
        kept: Option<PathBuf>,
        seed_has_changed: bool,
        state: State,
    ) -> Self {
        Self::shared(Shared {
            made,
            kept,
            seed_has_changed,
            ..Shared::new(&spec.name, &spec.file, state)
        })
    }

    fn shared(shared: Shared) -> Self {
        Self(Arc::new(shared))
    }

    /// The name by which it is declared.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The file of the database. It may be missing if the database is only inspected.
    pub fn file(&self) -> &Path {
        &self.0.file
    }

    /// Whether opening it created its file.
    pub fn was_made(&self) -> bool {
        self.0.made
    }

    /// The path of the kept old file, if opening it replaced one.
    pub fn kept(&self) -> Option<&Path> {
        self.0.kept.as_deref()
    }

    /// Whether its file was created from another seed than the declared one; `false` if unknown.
    pub fn seed_has_changed(&self) -> bool {
        self.0.seed_has_changed
    }

    /// Whether its handles may write at all.
    pub fn is_writable(&self) -> bool {
        self.0.writable
    }

    /// A read-only handle: its connections are opened read-only.
    pub fn read_only(&self) -> DatabaseHandle {
        DatabaseHandle { shared: Arc::clone(&self.0), access: Access::Read }
    }

    /// A handle that can also write, unless the database is [read-only](Self::is_writable).
    pub fn writable(&self) -> DatabaseHandle {
        let access = if self.0.writable { Access::Write } else { Access::Read };
        DatabaseHandle { shared: Arc::clone(&self.0), access }
    }

    /// A read-only handle for statements that a model writes: only listed functions can be called,
    /// values and patterns have lower limits, sorting uses no temporary files, and cancellation
    /// comes sooner.
    pub fn exploring(&self) -> DatabaseHandle {
        DatabaseHandle { shared: Arc::clone(&self.0), access: Access::Explore }
    }
}

impl Shared {
    fn new(name: &Arc<str>, file: &Path, state: State) -> Self {
        Self {
            name: Arc::clone(name),
            file: file.to_owned(),
            made: false,
            kept: None,
            seed_has_changed: false,
            writable: true,
            state,
            reading: Semaphore::new(thread::available_parallelism().map_or(1, usize::from)),
        }
    }
}

toolcrib_core::__internal::debug_fields!(
    Database,
    database,
    name = database.0.name,
    file = database.0.file,
    inspected = matches!(database.0.state, State::Inspected(_)),
    ..
);

/// A database that no other process can open until it is recreated, or this is dropped.
pub struct Claim<'a>(Lock<'a>);

impl Claim<'_> {
    /// Creates the database from its seed and opens it. An existing file is kept next to it, as
    /// `FILE.old-N`; see [`Database::kept`]. Blocking; `cancel` ends it.
    ///
    /// # Errors
    /// As [`Database::open`]. If the seed fails, the old file is unchanged.
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

/// The handle of a tool's body: read-only or writable, as the host decided. Cheap to clone. It
/// keeps the database open.
///
/// Neighbor: a [`Database`] is owned by the host and creates handles.
#[derive(Clone)]
pub struct DatabaseHandle {
    shared: Arc<Shared>,
    access: Access,
}

impl DatabaseHandle {
    /// The declared name of the database.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Whether it is read-only.
    pub fn is_read_only(&self) -> bool {
        self.access != Access::Write
    }

    /// Prepares one statement against the current schema, and returns its parameters and columns.
    /// Runs nothing, blocks shortly.
    ///
    /// # Errors
    /// [`StatementError`] if it could not be run through this handle.
    pub fn describe(&self, sql: &str) -> Result<StatementDescription, StatementError> {
        self.shared.describe(self.access, sql)
    }
}

toolcrib_core::__internal::debug_fields!(
    DatabaseHandle,
    handle,
    name = handle.shared.name,
    access = handle.access
);
