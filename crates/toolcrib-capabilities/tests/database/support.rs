//! A folder with a declared database, and helpers for tests.

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::Path,
    sync::Arc,
    time::SystemTime,
};

use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use toolcrib_capabilities::database::{
    Database, DatabaseError, DatabaseHandle, DatabaseSpec, Seed, TransactionEnd,
    rusqlite::{self, Connection},
};

/// A seed with a random mark, by which databases can be distinguished.
pub(crate) const SEED: &str = "\
CREATE TABLE mark (id TEXT NOT NULL);
INSERT INTO mark VALUES (hex(randomblob(16)));
CREATE TABLE refunds (order_id INTEGER NOT NULL, amount INTEGER NOT NULL);
";

pub(crate) struct Folder {
    pub(crate) dir: TempDir,
    pub(crate) spec: DatabaseSpec,
}

impl Folder {
    pub(crate) fn new() -> Self {
        Self::seeded(SEED)
    }

    pub(crate) fn seeded(sql: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let spec = spec(dir.path(), sql);
        Self { dir, spec }
    }

    pub(crate) fn open(&self) -> Result<Database, DatabaseError> {
        Database::open(&self.spec, &CancellationToken::new())
    }

    pub(crate) fn open_fresh(&self) -> Result<Database, DatabaseError> {
        Database::claim(&self.spec)?.make_anew(&CancellationToken::new())
    }

    pub(crate) fn inspect(&self) -> Result<Database, DatabaseError> {
        Database::inspect(&self.spec, &CancellationToken::new())
    }

    /// The names of what lies in the folder, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.dir.path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Name, time of change and content hash of the folder's files, sorted. Not to be called while
    /// this process has the database open: reading its file would cost SQLite its locks.
    pub(crate) fn listing(&self) -> Vec<(String, SystemTime, u64)> {
        let mut entries: Vec<_> = fs::read_dir(self.dir.path())
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let changed = entry.metadata().unwrap().modified().unwrap();
                let mut content = DefaultHasher::new();
                fs::read(entry.path()).unwrap().hash(&mut content);
                (entry.file_name().into_string().unwrap(), changed, content.finish())
            })
            .collect();
        entries.sort();
        entries
    }
}

pub(crate) fn spec(folder: &Path, sql: &str) -> DatabaseSpec {
    DatabaseSpec {
        name: "desk".into(),
        file: folder.join("desk #1?.db"),
        seed: Seed { name: "seed.sql".into(), sql: Arc::from(sql) },
    }
}

/// Runs in one transaction that is committed, without cancellation.
pub(crate) async fn run<T: Send + 'static>(
    handle: &DatabaseHandle,
    work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
) -> Result<T, DatabaseError> {
    handle
        .transaction(&CancellationToken::new(), |connection| {
            work(connection).map(TransactionEnd::Commit)
        })
        .await
}

pub(crate) async fn mark(database: &Database) -> String {
    run(&database.read_only(), |connection| {
        connection.query_row("SELECT id FROM mark", [], |row| row.get(0))
    })
    .await
    .unwrap()
}

pub(crate) async fn refunds(database: &Database) -> u32 {
    run(&database.read_only(), |connection| {
        connection.query_row("SELECT count(*) FROM refunds", [], |row| row.get(0))
    })
    .await
    .unwrap()
}

pub(crate) const REFUND_ONCE: &str = "INSERT INTO refunds SELECT 7, 100 \
     WHERE NOT EXISTS (SELECT 1 FROM refunds WHERE order_id = 7)";
pub(crate) const ENDLESS: &str =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
