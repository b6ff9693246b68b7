//! The permissions of statements on a handle, and their descriptions.

use toolcrib_capabilities::database::{Database, DatabaseError, DatabaseHandle, StatementError};

use crate::support::{Folder, run};

/// The handles of a database in use and of an inspected one: both must give the same answers.
fn handles(of: impl Fn(&Database) -> DatabaseHandle) -> (Vec<Folder>, Vec<DatabaseHandle>) {
    let (used, inspected) = (Folder::new(), Folder::new());
    let handles = vec![of(&used.open().unwrap()), of(&inspected.inspect().unwrap())];
    (vec![used, inspected], handles)
}

#[test]
fn a_statement_is_described() {
    let (_folders, handles) = handles(Database::writable);
    for handle in handles {
        assert!(!handle.is_read_only());
        let read = handle
            .describe("SELECT :b AS one, amount FROM refunds WHERE order_id IN (:a, :b) -- end")
            .unwrap();
        assert_eq!(read.parameters, [":b", ":a"]);
        assert_eq!(read.columns, ["one", "amount"]);
        assert!(read.read_only);
        let write = handle.describe("DELETE FROM refunds WHERE amount = ? OR order_id = @x");
        let write = write.unwrap();
        assert_eq!(write.parameters, ["?", "@x"]);
        assert!(write.columns.is_empty());
        assert!(!write.read_only);
    }
}

#[test]
fn what_is_wrong_with_a_text_is_said() {
    let (_folders, handles) = handles(Database::read_only);
    for handle in handles {
        assert!(matches!(handle.describe(" ; -- nothing"), Err(StatementError::Empty)));
        assert!(matches!(handle.describe("SELECT 1; SELECT 2"), Err(StatementError::Several)));
        for (sql, said, at) in [
            (
                "SELECT amuont FROM refunds",
                "no such column: amuont; did you mean `amount`?",
                Some(7),
            ),
            ("SELECT 1; SELEC 2", "near \"SELEC\": syntax error", Some(10)),
            ("SELECT * FROM refnuds", "no such table: refnuds; did you mean `refunds`?", None),
            (
                "SELECT \"amuont\" FROM refunds",
                "no such column: \"amuont\"; did you mean `amount`?",
                Some(7),
            ),
        ] {
            match handle.describe(sql) {
                Err(StatementError::Sql { message, offset }) => {
                    assert_eq!(message, said);
                    assert!(offset == at || at.is_none(), "{sql}: {offset:?}");
                }
                other => panic!("{sql}: {other:?}"),
            }
        }
    }
}

#[test]
fn what_no_handle_may_do_is_refused_with_what_to_write_instead() {
    for of in [Database::read_only, Database::writable] {
        let (_folders, handles) = handles(of);
        for handle in handles {
            for (sql, advice) in [
                ("BEGIN", "remove BEGIN, COMMIT, ROLLBACK and SAVEPOINT"),
                ("COMMIT", "remove BEGIN, COMMIT, ROLLBACK and SAVEPOINT"),
                ("ROLLBACK", "remove BEGIN, COMMIT, ROLLBACK and SAVEPOINT"),
                ("SAVEPOINT a", "remove BEGIN, COMMIT, ROLLBACK and SAVEPOINT"),
                ("ATTACH 'x.db' AS x", "remove ATTACH and DETACH"),
                ("DETACH x", "remove ATTACH and DETACH"),
                ("PRAGMA foreign_keys = OFF", "remove PRAGMA foreign_keys"),
                ("PRAGMA user_version", "remove PRAGMA user_version"),
                ("SELECT name FROM pragma_table_info('mark')", "remove the pragma_ function"),
                ("SELECT load_extension('x')", "remove load_extension"),
            ] {
                match handle.describe(sql) {
                    Err(StatementError::Refused(reason)) => {
                        assert!(reason.contains(advice), "{sql}: {reason}");
                    }
                    other => panic!("{sql}: {other:?}"),
                }
            }
        }
    }
}

#[test]
fn a_handle_that_writes_makes_nothing_that_only_its_connection_would_see() {
    let (_folders, handles) = handles(Database::writable);
    for handle in handles {
        handle.describe("CREATE TABLE t (x)").unwrap();
        for sql in ["CREATE TEMP TABLE t (x)", "CREATE TEMP VIEW v AS SELECT 1"] {
            match handle.describe(sql) {
                Err(StatementError::Refused(reason)) => assert!(reason.contains("use WITH")),
                other => panic!("{sql}: {other:?}"),
            }
        }
    }
}

#[tokio::test]
async fn a_handle_that_reads_takes_no_statement_that_writes() {
    let (_folders, handles) = handles(Database::read_only);
    for handle in &handles {
        assert!(handle.is_read_only());
        for sql in [
            "INSERT INTO refunds VALUES (1, 1)",
            "UPDATE refunds SET amount = 1",
            "DELETE FROM refunds RETURNING amount",
            "CREATE TABLE t (x)",
            "DROP TABLE refunds",
            "ALTER TABLE refunds ADD COLUMN x",
            "CREATE INDEX i ON refunds (amount)",
            "ANALYZE",
        ] {
            let refused = handle.describe(sql);
            assert!(matches!(refused, Err(StatementError::Writes)), "{sql}: {refused:?}");
        }
    }
    let insert = |c: &toolcrib_capabilities::database::rusqlite::Connection| {
        c.execute("INSERT INTO refunds VALUES (1, 1)", [])
    };
    let error = run(&handles[0], insert).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "database `desk`: the statement writes, and the handle is read-only"
    );
}

#[tokio::test]
async fn a_body_can_neither_end_the_transaction_nor_lift_the_guard() {
    let folder = Folder::new();
    let database = folder.open().unwrap();
    let writable = database.writable();
    for sql in ["COMMIT", "PRAGMA foreign_keys = OFF", "ATTACH ':memory:' AS x"] {
        let error = run(&writable, move |c| {
            c.execute("INSERT INTO refunds VALUES (1, 1)", [])?;
            c.execute_batch(sql)
        });
        let error = error.await.unwrap_err();
        assert!(matches!(error, DatabaseError::Refused { .. }), "{sql}: {error}");
    }
    assert_eq!(crate::support::refunds(&database).await, 0);
}

#[tokio::test]
async fn full_text_search_works_on_both_handles() {
    let folder = Folder::seeded(
        "CREATE VIRTUAL TABLE notes USING fts5(body); INSERT INTO notes VALUES ('red lamp');",
    );
    let database = folder.open().unwrap();
    run(&database.writable(), |c| c.execute("INSERT INTO notes VALUES ('red chair')", []))
        .await
        .unwrap();
    let found: u32 = run(&database.read_only(), |c| {
        c.query_row("SELECT count(*) FROM notes WHERE notes MATCH 'red'", [], |row| row.get(0))
    })
    .await
    .unwrap();
    assert_eq!(found, 2);
}
