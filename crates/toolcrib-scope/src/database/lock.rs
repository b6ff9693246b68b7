//! Who may make a database, and who uses it: a lock on `FILE.lock`, shared by users, exclusive for
//! the one that makes it.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, Read as _, Seek as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Duration,
};

use tokio_util::sync::CancellationToken;
use toolcrib_core::Digest;

use super::{
    DatabaseSpec,
    error::DatabaseError,
    make,
    private::{no_follow, tighten},
    replace,
};

/// The system has no wait for a lock that can be cancelled, so it is asked again and again.
const LOCK_STEP: Duration = Duration::from_millis(10);
/// How often the file may be found missing while somebody uses it, before that is an error and not
/// a start at the same moment: 1 second.
const MISSING_TRIES: u32 = 100;

/// Keeps a database from being made anew. The system gives it up with the process, however that
/// ends.
pub(crate) struct SharedLock {
    _held: LockFile,
}

/// Takes the shared lock on a database that is there, and makes it before if it must; says whether
/// it did.
pub(crate) fn acquire(
    spec: &DatabaseSpec,
    cancel: &CancellationToken,
) -> Result<(SharedLock, bool), DatabaseError> {
    share(Lock::open(spec)?, false, cancel)
}

/// Takes the exclusive lock, at once or not at all, on a database that may be replaced.
pub(crate) fn claim(spec: &DatabaseSpec) -> Result<Lock<'_>, DatabaseError> {
    let lock = Lock::open(spec)?;
    if !lock.try_exclusive()? {
        return Err(in_use(spec));
    }
    replace::check_is_ours(spec)?;
    Ok(lock)
}

/// Makes the database under its exclusive lock, and goes over to the shared one. Also returns where
/// the file that was there is kept.
pub(crate) fn make_anew(
    lock: Lock<'_>,
    cancel: &CancellationToken,
) -> Result<(SharedLock, Option<PathBuf>), DatabaseError> {
    let kept = lock.make(cancel)?;
    lock.unlock()?;
    share(lock, true, cancel).map(|(lock, _)| (lock, kept))
}

/// Whether the database's file was made from another seed than the one that is declared now; `false`
/// where that is not known.
pub(crate) fn seed_has_changed(spec: &DatabaseSpec) -> bool {
    let options = OpenOptions::new().read(true).clone();
    let read = no_follow(options).open(lock_path(spec)).and_then(|file| {
        let mut noted = String::new();
        file.take(256).read_to_string(&mut noted).map(|_| noted)
    });
    read.is_ok_and(|noted| noted.starts_with(SEED) && noted != seed_note(spec))
}

/// What the note of the seed begins with.
const SEED: &str = "seed sha256:";

fn seed_note(spec: &DatabaseSpec) -> String {
    format!("{SEED}{}\n", Digest::of(&*spec.seed.sql))
}

fn lock_path(spec: &DatabaseSpec) -> PathBuf {
    make::beside(&spec.file, ".lock")
}

fn share(
    lock: Lock<'_>,
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
            if make::exists(spec)? {
                return Ok((SharedLock { _held: lock.file }, made));
            }
            missing += 1;
            lock.unlock()?;
        }
        // Another may have made it since, so look again before making it.
        if lock.try_exclusive()? {
            if !make::exists(spec)? {
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

/// A file whose lock ends with it. Closing it would not do: a child of this process has it open too
/// until it becomes another program, whoever started it, and the lock would last as long.
struct LockFile(File);

impl Drop for LockFile {
    fn drop(&mut self) {
        // Where that fails it still ends when the last one closes the file.
        let _ = self.0.unlock();
    }
}

/// An open lock file.
pub(crate) struct Lock<'a> {
    pub(crate) spec: &'a DatabaseSpec,
    path: PathBuf,
    file: LockFile,
}

impl<'a> Lock<'a> {
    fn open(spec: &'a DatabaseSpec) -> Result<Self, DatabaseError> {
        let path = lock_path(spec);
        let open = |write| {
            let mut options = OpenOptions::new();
            options.create(write).truncate(false).read(true).write(write).mode(0o600);
            no_follow(options).open(&path)
        };
        let file = open(true).or_else(|error| {
            // Locking takes no right to write, so a database that is there can be read all the same.
            if refuses_writing(&error) { open(false).map_err(|_| error) } else { Err(error) }
        });
        let file = file.map_err(|source| failed(spec, "open", &path, source))?;
        tighten(&path);
        Ok(Self { spec, path, file: LockFile(file) })
    }

    /// Makes the database and notes its seed. To be called under the exclusive lock.
    fn make(&self, cancel: &CancellationToken) -> Result<Option<PathBuf>, DatabaseError> {
        let kept = make::make(self.spec, cancel)?;
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

/// Whether the system refuses to write there, whatever is tried.
pub(crate) fn refuses_writing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

pub(crate) fn failed(
    spec: &DatabaseSpec,
    action: &'static str,
    path: &Path,
    source: io::Error,
) -> DatabaseError {
    DatabaseError::File { name: Arc::clone(&spec.name), action, path: path.to_owned(), source }
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

    /// The file open once more, as a child has it that is no other program yet.
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
