//! Existing files of other programs: opened and never changed unless that is declared.

use std::{
    fs,
    os::unix::{
        fs::{MetadataExt as _, PermissionsExt as _},
        process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use toolcrib_capabilities::database::{
    Database, DatabaseError, DatabaseHandle, FileSpec, StatementError, TransactionEnd,
    rusqlite::{self, Connection},
};

use crate::support::run;

const COUNT: &str = "SELECT count(*) FROM orders";

/// A folder with a database of another program.
struct Shop(TempDir);

impl Shop {
    fn new(mode: &str) -> Self {
        let shop = Self(tempfile::tempdir().unwrap());
        let connection = shop.connect();
        connection
            .execute_batch(&format!(
                "PRAGMA journal_mode = {mode};
                 CREATE TABLE orders (id INTEGER PRIMARY KEY, photo BLOB);
                 INSERT INTO orders (id) VALUES (1), (2);"
            ))
            .unwrap();
        shop
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("shop #1?.db")
    }

    fn connect(&self) -> Connection {
        Connection::open(self.file()).unwrap()
    }

    fn spec(&self, writable: bool) -> FileSpec {
        FileSpec { name: "shop".into(), file: self.file(), writable }
    }

    fn open(&self) -> Database {
        Database::open_file(&self.spec(false)).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

async fn count(handle: &DatabaseHandle) -> u32 {
    run(handle, |c| c.query_row(COUNT, [], |row| row.get(0))).await.unwrap()
}

fn problem(spec: &FileSpec) -> String {
    match Database::open_file(spec).unwrap_err() {
        DatabaseError::CannotOpen { problem, help, .. } => format!("{problem}; {help}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_file_is_read_and_not_one_byte_of_it_changes() {
    for mode in ["WAL", "DELETE"] {
        let shop = Shop::new(mode);
        let (before, mode_before) = (fs::read(shop.file()).unwrap(), mode_of(&shop.file()));
        let database = shop.open();
        assert!(!database.is_writable() && !database.was_made() && !database.seed_has_changed());
        assert_eq!(count(&database.read_only()).await, 2);
        // A handle to write is one to read.
        assert!(database.writable().is_read_only());
        let refused = run(&database.writable(), |c| c.execute("DELETE FROM orders", [])).await;
        assert!(matches!(
            refused.unwrap_err(),
            DatabaseError::Refused { source: StatementError::Writes, .. }
        ));
        drop(database);
        let inspected = Database::inspect_file(&shop.spec(false)).unwrap();
        inspected.read_only().describe(COUNT).unwrap();
        drop(inspected);
        assert_eq!(fs::read(shop.file()).unwrap(), before);
        assert_eq!(mode_of(&shop.file()), mode_before);
        // No lock of Toolcrib lies beside it.
        assert!(shop.names().iter().all(|name| !name.ends_with(".lock")), "{:?}", shop.names());
    }
}

fn mode_of(file: &Path) -> u32 {
    fs::metadata(file).unwrap().permissions().mode()
}

#[tokio::test]
async fn each_transaction_sees_what_a_live_writer_has_committed() {
    for mode in ["WAL", "DELETE"] {
        let shop = Shop::new(mode);
        let writer = shop.connect();
        let database = shop.open();
        for expected in 3..8 {
            writer.execute("INSERT INTO orders (id) VALUES (?1)", [expected]).unwrap();
            assert_eq!(count(&database.read_only()).await, expected);
        }
        // One that has not committed yet keeps readers neither from reading nor from the old state.
        writer.execute_batch("BEGIN IMMEDIATE; DELETE FROM orders").unwrap();
        assert_eq!(count(&database.read_only()).await, 7);
        writer.execute_batch("COMMIT").unwrap();
        assert_eq!(count(&database.read_only()).await, 0);
    }
}

#[tokio::test]
async fn a_writable_file_is_written_beside_other_programs() {
    let shop = Shop::new("WAL");
    let other = shop.connect();
    let database = Database::open_file(&shop.spec(true)).unwrap();
    assert!(database.is_writable() && !database.writable().is_read_only());
    run(&database.writable(), |c| c.execute("INSERT INTO orders (id) VALUES (9)", []))
        .await
        .unwrap();
    let seen: u32 = other.query_row(COUNT, [], |row| row.get(0)).unwrap();
    assert_eq!(seen, 3);
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_is_read() {
    if ran_as_nobody("files::a_folder_that_cannot_be_written_is_read") {
        return;
    }
    let shop = Shop::new("WAL");
    let seal = |mode| fs::set_permissions(shop.0.path(), fs::Permissions::from_mode(mode)).unwrap();
    seal(0o555);
    let database = shop.open();
    assert_eq!(count(&database.read_only()).await, 2);
    assert_eq!(shop.names(), ["shop #1?.db"]);
    assert!(problem(&shop.spec(true)).contains("SQLite needs a journal there"));
    // Another user may write there, and leaves no log: a copy is never older than the file.
    seal(0o755);
    shop.connect().execute("DELETE FROM orders", []).unwrap();
    seal(0o555);
    assert_eq!(shop.names(), ["shop #1?.db"]);
    assert_eq!(count(&database.read_only()).await, 0);
    // A live writer, whose log is there.
    seal(0o755);
    let writer = shop.connect();
    writer.execute("INSERT INTO orders (id) VALUES (7)", []).unwrap();
    seal(0o555);
    assert_eq!(count(&database.read_only()).await, 1);
    seal(0o755);
}

/// Modes do not stop root: its test runs once more as another user. Whether that happened.
fn ran_as_nobody(test: &str) -> bool {
    const NOBODY: u32 = 65_534;
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        return false;
    }
    // The folder of the build may be out of that user's reach.
    let copy = tempfile::tempdir().unwrap();
    fs::set_permissions(copy.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = copy.path().join("tests");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let mut command = Command::new(program);
    let ran = command.args([test, "--exact"]).uid(NOBODY).gid(NOBODY).output().unwrap();
    let output = String::from_utf8_lossy(&ran.stdout);
    assert!(output.contains("1 passed"), "{output}");
    true
}

#[test]
fn an_error_names_the_file_what_is_wrong_and_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let named =
        |name: &str| FileSpec { name: "shop".into(), file: dir.path().join(name), writable: false };
    fs::write(dir.path().join("empty.db"), "").unwrap();
    fs::write(dir.path().join("text.db"), "no database".repeat(100)).unwrap();
    fs::create_dir(dir.path().join("folder.db")).unwrap();
    for (name, expected) in [
        ("missing.db", "does not exist; correct `file`"),
        ("empty.db", "is empty; name the file of an SQLite database"),
        ("text.db", "is not an SQLite database, or it is encrypted; name the file"),
        ("folder.db", "is not a file; name the file of an SQLite database"),
    ] {
        let spec = named(name);
        assert!(problem(&spec).starts_with(expected), "{name}: {}", problem(&spec));
        let shown = Database::open_file(&spec).unwrap_err().to_string();
        assert!(shown.starts_with(&spec.file.display().to_string()), "{shown}");
    }
}

#[test]
fn a_file_that_another_program_locks_is_not_waited_for_without_end() {
    let shop = Shop::new("DELETE");
    let other = shop.connect();
    other.busy_timeout(Duration::ZERO).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    assert!(problem(&shop.spec(false)).starts_with("is locked by another program"));
}

mod attacks {
    use super::*;

    /// An attack, and a part of the reason for its refusal.
    const ATTACKS: [(&str, &str); 25] = [
        ("DROP TABLE orders", "the statement writes"),
        ("DELETE FROM orders RETURNING id", "the statement writes"),
        ("INSERT INTO orders (id) VALUES (3)", "the statement writes"),
        ("CREATE TABLE t (x)", "the statement writes"),
        ("CREATE TEMP TABLE t (x)", "the statement writes"),
        ("CREATE VIRTUAL TABLE t USING fts5(x)", "the statement writes"),
        ("INSERT INTO notes (notes) VALUES ('optimize')", "the statement writes"),
        ("INSERT INTO places VALUES (2, 0, 1)", "the statement writes"),
        ("INSERT INTO places_node VALUES (9, x'00')", "the statement writes"),
        ("DELETE FROM places_rowid", "places_rowid may not be modified"),
        ("ATTACH 'x.db' AS x", "remove ATTACH"),
        ("PRAGMA writable_schema = ON", "remove PRAGMA"),
        ("PRAGMA journal_mode = DELETE", "remove PRAGMA"),
        ("PRAGMA hard_heap_limit = 1", "remove PRAGMA"),
        ("PRAGMA table_info(orders)", "remove PRAGMA"),
        ("SELECT * FROM pragma_table_info('orders')", "remove the pragma_ function"),
        ("SELECT * FROM Pragma_Database_List", "remove the pragma_ function"),
        ("SELECT load_extension('x')", "load_extension"),
        ("SELECT LOAD_EXTENSION('x')", "load_extension"),
        ("SELECT zeroblob(1000000000)", "zeroblob is not available"),
        ("SELECT randomblob(1000000000)", "randomblob is not available"),
        ("SELECT fts3_tokenizer('x')", "fts3_tokenizer is not available"),
        ("SELECT trim('xx', 'x')", "trim takes one argument"),
        ("SELECT printf('%2000000d', 1)", "more than 1 MiB"),
        ("SELECT 'a' LIKE printf('%.*c', 2000, 'x')", "LIKE or GLOB pattern too complex"),
    ];

    #[tokio::test]
    async fn a_statement_of_a_model_can_only_read() {
        let shop = Shop::new("WAL");
        shop.connect()
            .execute_batch(
                "CREATE VIRTUAL TABLE notes USING fts5(body); INSERT INTO notes VALUES ('a b');
                 CREATE VIRTUAL TABLE places USING rtree(id, low, high);
                 INSERT INTO places VALUES (1, 0, 1)",
            )
            .unwrap();
        let before = fs::read(shop.file()).unwrap();
        let database = shop.open();
        for (sql, reason) in ATTACKS {
            let ran = explore(&database.exploring(), sql).await;
            let error = ran.expect_err(sql).to_string();
            assert!(error.contains(reason), "{sql}: {error}");
        }
        let several = explore(&database.exploring(), "SELECT 1; SELECT 2").await;
        assert!(several.unwrap_err().to_string().contains("Multiple statements"));
        for sql in [
            "SELECT count(*), max(id), date('now'), json_extract('{\"a\":1}', '$.a') FROM orders",
            "SELECT '{\"a\":1}' ->> 'a', upper(trim(' x ')), replace('a', 'a', 'b')",
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 9) SELECT sum(i) FROM n",
            "SELECT highlight(notes, 0, '<', '>') FROM notes WHERE notes MATCH 'a' ORDER BY rank",
            "SELECT low FROM places WHERE high > 0 AND id IN (SELECT nodeno FROM places_node)",
            "SELECT row_number() OVER (ORDER BY orders.id), value FROM orders, json_each('[1]')",
            "EXPLAIN QUERY PLAN SELECT * FROM orders WHERE id LIKE '1%'",
        ] {
            explore(&database.exploring(), sql).await.expect(sql);
        }
        drop(database);
        assert_eq!(fs::read(shop.file()).unwrap(), before);
    }

    async fn explore(handle: &DatabaseHandle, sql: &'static str) -> Result<(), DatabaseError> {
        let work = move |connection: &Connection| -> rusqlite::Result<_> {
            let mut statement = connection.prepare(sql)?;
            let mut rows = statement.raw_query();
            while rows.next()?.is_some() {}
            Ok(TransactionEnd::RollBack(()))
        };
        handle.transaction(&CancellationToken::new(), work).await
    }

    #[tokio::test]
    async fn views_of_the_file_call_no_functions_with_side_effects() {
        let shop = Shop::new("WAL");
        shop.connect()
            .execute_batch("CREATE VIEW bad AS SELECT load_extension('x') AS x FROM orders")
            .unwrap();
        let database = shop.open();
        for handle in [database.read_only(), database.exploring()] {
            let error = explore(&handle, "SELECT * FROM bad").await.unwrap_err().to_string();
            assert!(error.contains("load_extension"), "{error}");
        }
    }

    #[tokio::test]
    async fn a_statement_of_a_model_ends_with_its_time_however_it_spends_it() {
        let shop = Shop::new("WAL");
        let database = shop.open();
        for sql in [
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
            // Sorted in memory.
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n ORDER BY -i",
            "WITH a(x) AS (SELECT printf('%.*c', 100000, 'a')), \
         n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) \
         SELECT sum(instr(x || i, printf('%.*c', 50000, 'a') || 'b')) FROM a, n",
        ] {
            let cancel = CancellationToken::new();
            let work = move |connection: &Connection| {
                connection.query_row(sql, [], |_| Ok(())).map(TransactionEnd::RollBack)
            };
            let handle = database.exploring();
            let ran = handle.transaction(&cancel, work);
            let both = async {
                tokio::join!(ran, async {
                    tokio::time::sleep(Duration::from_millis(200)).await;
                    cancel.cancel();
                })
            };
            let ran = tokio::time::timeout(Duration::from_secs(300), both).await;
            let (ran, ()) = ran.unwrap_or_else(|_| panic!("it goes on: {sql}"));
            assert!(matches!(ran.unwrap_err(), DatabaseError::Cancelled { .. }), "{sql}");
        }
    }
}
