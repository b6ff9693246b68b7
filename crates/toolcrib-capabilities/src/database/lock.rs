//! The lock of a database, on `FILE.lock`: shared for its users, exclusive to create it.

use std::{
    fs::{File, TryLockError},
    io::{Read as _, Seek as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::PathBuf,
    sync::Arc,
    thread,
    time::Duration,
};

use tokio_util::sync::CancellationToken;
use toolcrib_core::Digest;

use super::{
    DatabaseSpec,
    error::DatabaseError,
    files::{beside, exists, failed, refuses_writing, tighten},
    make,
    replace::{self, ExclusiveConnection},
};
use crate::host_file::no_follow;

/// The system has no cancellable wait for a lock, so it is polled.
const LOCK_STEP: Duration = Duration::from_millis(10);
/// The number of polls that may find the file missing while it is in use, before that is an error
/// and not a concurrent start: 1 second.
const MISSING_TRIES: u32 = 100;

/// Prevents that a database is recreated. The system releases it with the process, however that
/// ends.
pub(crate) struct SharedLock {
    _held: LockFile,
}

/// Takes the shared lock on a database, and creates the database first if needed; returns whether
/// it did.
pub(crate) fn acquire(
    spec: &DatabaseSpec,
    cancel: &CancellationToken,
) -> Result<(SharedLock, bool), DatabaseError> {
    share(Lock::open(spec)?, false, cancel)
}

/// Takes the exclusive lock, at once or not at all, on a database that may be replaced.
pub(crate) fn claim(spec: &DatabaseSpec) -> Result<Lock<'_>, DatabaseError> {
    let mut lock = Lock::open(spec)?;
    if !lock.try_exclusive()? {
        return Err(in_use(spec));
    }
    replace::check_is_ours(spec)?;
    // Programs other than Toolcrib ignore the lock file.
    lock.exclusive = ExclusiveConnection::take(spec)?;
    Ok(lock)
}

/// Creates the database under its exclusive lock, and changes to the shared one. Also returns the
/// path of the kept old file.
pub(crate) fn make_anew(
    mut lock: Lock<'_>,
    cancel: &CancellationToken,
) -> Result<(SharedLock, Option<PathBuf>), DatabaseError> {
    let kept = lock.make(cancel)?;
    lock.unlock()?;
    share(lock, true, cancel).map(|(lock, _)| (lock, kept))
}

/// Whether the database's file was created from another seed than the declared one; `false` if
/// unknown.
pub(crate) fn seed_has_changed(spec: &DatabaseSpec) -> bool {
    let read = no_follow().read(true).open(lock_path(spec)).and_then(|file| {
        let mut noted = String::new();
        file.take(256).read_to_string(&mut noted).map(|_| noted)
    });
    read.is_ok_and(|noted| noted.starts_with(SEED) && noted != seed_note(spec))
}

/// The prefix of the seed's digest.
const SEED: &str = "seed sha256:";

fn seed_note(spec: &DatabaseSpec) -> String {
    format!("{SEED}{}\n", Digest::of(&*spec.seed.sql))
}

fn lock_path(spec: &DatabaseSpec) -> PathBuf {
    beside(&spec.file, ".lock")
}

fn share(
    mut lock: Lock<'_>,
    mut made: bool,
    cancel: &CancellationToken,
) -> Result<(SharedLock, bool), DatabaseError> {
    let spec = lock.spec;
    let mut missing = 0;
    loop {
        if cancel.is_cancelled() {
            return Err(DatabaseError::Cancelled { name: Arc::clone(&spec.name) });
        }
        if lock.try_shared()? {
            if exists(spec)? {
                return Ok((SharedLock { _held: lock.file }, made));
            }
            missing += 1;
            lock.unlock()?;
        }
        // Another process may have created it meanwhile, so check again.
        if lock.try_exclusive()? {
            if !exists(spec)? {
                lock.make(cancel)?;
                made = true;
            }
            lock.unlock()?;
            continue;
        }
        if missing > MISSING_TRIES {
            return Err(in_use(spec));
        }
        thread::sleep(LOCK_STEP);
    }
}

fn in_use(spec: &DatabaseSpec) -> DatabaseError {
    DatabaseError::InUse { name: Arc::clone(&spec.name), file: spec.file.clone() }
}

/// A file whose lock is released on drop. Closing it is not enough: a forked child has it open too
/// until it executes its program, and the lock would last as long.
struct LockFile(File);

impl Drop for LockFile {
    fn drop(&mut self) {
        // If this fails, the lock still ends when the last process closes the file.
        let _ = self.0.unlock();
    }
}

/// An open lock file.
pub(crate) struct Lock<'a> {
    pub(crate) spec: &'a DatabaseSpec,
    path: PathBuf,
    /// Released before the lock on the file, so that no other Toolcrib process meets it.
    exclusive: Option<ExclusiveConnection>,
    file: LockFile,
}

impl<'a> Lock<'a> {
    fn open(spec: &'a DatabaseSpec) -> Result<Self, DatabaseError> {
        let path = lock_path(spec);
        let open = |write| {
            let mut options = no_follow();
            options.create(write).truncate(false).read(true).write(write).mode(0o600);
            options.open(&path)
        };
        let file = open(true).or_else(|error| {
            // Locking needs no right to write, so an existing database can still be read.
            if refuses_writing(&error) { open(false).map_err(|_| error) } else { Err(error) }
        });
        let file = file.map_err(|source| failed(spec, "open", &path, source))?;
        tighten(&path);
        Ok(Self { spec, path, exclusive: None, file: LockFile(file) })
    }

    /// Creates the database and records its seed. Requires the exclusive lock.
    fn make(&mut self, cancel: &CancellationToken) -> Result<Option<PathBuf>, DatabaseError> {
        let kept = make::make(self.spec, self.exclusive.as_ref(), cancel)?;
        // The old file has its new name.
        self.exclusive = None;
        let mut file = &self.file.0;
        let note = seed_note(self.spec);
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(note.as_bytes()))
            .map_err(|source| failed(self.spec, "write", &self.path, source))?;
        Ok(kept)
    }

    fn try_shared(&self) -> Result<bool, DatabaseError> {
        self.outcome(self.file.0.try_lock_shared())
    }

    fn try_exclusive(&self) -> Result<bool, DatabaseError> {
        self.outcome(self.file.0.try_lock())
    }

    fn unlock(&self) -> Result<(), DatabaseError> {
        self.file.0.unlock().map_err(|source| failed(self.spec, "unlock", &self.path, source))
    }

    fn outcome(&self, outcome: Result<(), TryLockError>) -> Result<bool, DatabaseError> {
        match outcome {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(source)) => Err(failed(self.spec, "lock", &self.path, source)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::Seed;

    fn spec(file: PathBuf, sql: &str) -> DatabaseSpec {
        DatabaseSpec {
            name: "desk".into(),
            file,
            seed: Seed { name: "seed.sql".into(), sql: sql.into() },
        }
    }

    /// Duplicates the open file, which a forked child has until it executes a program.
    fn in_a_child(file: &LockFile) -> File {
        file.0.try_clone().unwrap()
    }

    #[test]
    fn a_lock_ends_with_its_owner_though_a_child_has_the_file_open() {
        let folder = tempfile::tempdir().unwrap();
        let spec = spec(folder.path().join("desk.db"), "CREATE TABLE orders (id)");
        let cancel = CancellationToken::new();

        let (shared, made) = acquire(&spec, &cancel).unwrap();
        assert!(made);
        let _child = in_a_child(&shared._held);
        assert!(matches!(claim(&spec), Err(DatabaseError::InUse { .. })));
        drop(shared);

        let exclusive = claim(&spec).unwrap();
        let _child = in_a_child(&exclusive.file);
        assert!(matches!(claim(&spec), Err(DatabaseError::InUse { .. })));
        drop(exclusive);
        drop(claim(&spec).unwrap());
    }

    #[test]
    fn a_lock_ends_with_a_failed_attempt_though_a_child_has_the_file_open() {
        let folder = tempfile::tempdir().unwrap();
        let spec = spec(folder.path().join("desk.db"), "no SQL");
        let cancel = CancellationToken::new();

        let exclusive = claim(&spec).unwrap();
        let _child = in_a_child(&exclusive.file);
        assert!(make_anew(exclusive, &cancel).is_err());
        drop(claim(&spec).unwrap());

        let opened = Lock::open(&spec).unwrap();
        let _child = in_a_child(&opened.file);
        assert!(share(opened, false, &cancel).is_err());
        drop(claim(&spec).unwrap());
    }
}
