//! Who may make a database, and who uses it: a lock on `FILE.lock`, shared by users, exclusive for
//! the one that makes it.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Duration,
};

use tokio_util::sync::CancellationToken;

use super::{DatabaseSpec, error::DatabaseError, make};

/// The system has no wait for a lock that can be cancelled, so it is asked again and again.
const LOCK_STEP: Duration = Duration::from_millis(10);
/// How often the file may be found missing while somebody uses it, before that is an error and not
/// a start at the same moment: 1 second.
const MISSING_TRIES: u32 = 100;

/// Keeps a database from being made anew. The system gives it up with the process, however that
/// ends.
pub(crate) struct SharedLock(#[expect(dead_code, reason = "held, not read")] File);

/// Takes the shared lock on a database that is there, and makes it before if it must; says whether
/// it did.
pub(crate) fn acquire(
    spec: &DatabaseSpec,
    fresh: bool,
    cancel: &CancellationToken,
) -> Result<(SharedLock, bool), DatabaseError> {
    let lock = Lock::open(spec)?;
    let mut made = false;
    if fresh {
        if !lock.try_exclusive()? {
            return Err(in_use(spec));
        }
        make::make(spec, cancel)?;
        made = true;
        lock.unlock()?;
    }
    let mut missing = 0;
    loop {
        if cancel.is_cancelled() {
            return Err(DatabaseError::Cancelled { name: Arc::clone(&spec.name) });
        }
        if lock.try_shared()? {
            if make::exists(spec)? {
                return Ok((SharedLock(lock.file), made));
            }
            missing += 1;
            lock.unlock()?;
        }
        // Another may have made it since, so look again before making it.
        if lock.try_exclusive()? {
            if !make::exists(spec)? {
                make::make(spec, cancel)?;
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

struct Lock<'a> {
    spec: &'a DatabaseSpec,
    path: PathBuf,
    file: File,
}

impl<'a> Lock<'a> {
    fn open(spec: &'a DatabaseSpec) -> Result<Self, DatabaseError> {
        let path = make::beside(&spec.file, ".lock");
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path)
            .map_err(|source| failed(spec, "open", &path, source))?;
        Ok(Self { spec, path, file })
    }

    fn try_shared(&self) -> Result<bool, DatabaseError> {
        self.outcome(self.file.try_lock_shared())
    }

    fn try_exclusive(&self) -> Result<bool, DatabaseError> {
        self.outcome(self.file.try_lock())
    }

    fn unlock(&self) -> Result<(), DatabaseError> {
        self.file.unlock().map_err(|source| failed(self.spec, "unlock", &self.path, source))
    }

    fn outcome(&self, outcome: Result<(), TryLockError>) -> Result<bool, DatabaseError> {
        match outcome {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(source)) => Err(failed(self.spec, "lock", &self.path, source)),
        }
    }
}

pub(crate) fn failed(
    spec: &DatabaseSpec,
    action: &'static str,
    path: &Path,
    source: io::Error,
) -> DatabaseError {
    DatabaseError::File { name: Arc::clone(&spec.name), action, path: path.to_owned(), source }
}
