//! A database was replaced, and what was in it was gone.

use std::fs;

use tokio_util::sync::CancellationToken;
use toolcrib_capabilities::database::{Database, DatabaseError, rusqlite::Connection};

use crate::support::{Folder, refunds, run, spec};

#[tokio::test]
async fn rows_that_were_only_in_the_log_were_lost() {
    let folder = Folder::new();
    let old = folder.open().unwrap();
    run(&old.writable(), |c| c.execute("INSERT INTO refunds VALUES (1, 1)", [])).await.unwrap();
    // As a process leaves them that is killed: the row is in the log alone.
    let crashed = tempfile::tempdir().unwrap();
    for name in folder.names() {
        fs::copy(folder.dir.path().join(&name), crashed.path().join(&name)).unwrap();
    }
    drop(old);
    let spec = spec(crashed.path(), &folder.spec.seed.sql);
    let log = spec.file.with_file_name("desk #1?.db-wal");
    assert!(fs::metadata(log).is_ok_and(|log| log.len() > 0));
    let new = Database::claim(&spec).unwrap().make_anew(&CancellationToken::new()).unwrap();
    assert_eq!(refunds(&new).await, 0);
    let kept = Connection::open(new.kept().unwrap()).unwrap();
    let count: u32 = kept.query_row("SELECT count(*) FROM refunds", [], |row| row.get(0)).unwrap();
    assert_eq!(count, 1);
}

#[test]
fn a_database_of_somebody_else_was_replaced() {
    let folder = Folder::new();
    let own = Connection::open(&folder.spec.file).unwrap();
    own.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE mine (x);").unwrap();
    drop(own);
    let before = fs::read(&folder.spec.file).unwrap();
    assert!(matches!(folder.open_fresh(), Err(DatabaseError::NotOurs { .. })));
    assert!(fs::read(&folder.spec.file).unwrap() == before);
}

#[test]
fn a_damaged_database_that_was_made_here_could_not_be_replaced() {
    let folder = Folder::seeded("PRAGMA application_id = 7; CREATE TABLE refunds (x);");
    drop(folder.open().unwrap());
    let mut bytes = fs::read(&folder.spec.file).unwrap();
    bytes.truncate(200);
    fs::write(&folder.spec.file, bytes).unwrap();
    assert!(folder.open().is_err());
    let new = folder.open_fresh().unwrap();
    assert_eq!(fs::metadata(new.kept().unwrap()).unwrap().len(), 200);
}

#[test]
fn whether_the_seed_has_changed_was_not_known() {
    let mut folder = Folder::new();
    assert!(!folder.inspect().unwrap().seed_has_changed());
    assert!(!folder.open().unwrap().seed_has_changed());
    assert!(!folder.inspect().unwrap().seed_has_changed());
    folder.spec.seed.sql = format!("{}-- one more", folder.spec.seed.sql).into();
    assert!(folder.open().unwrap().seed_has_changed());
    assert!(folder.inspect().unwrap().seed_has_changed());
    assert!(!folder.open_fresh().unwrap().seed_has_changed());
    // A file of an earlier version has no note.
    folder.spec.seed.sql = "CREATE TABLE other (x)".into();
    fs::write(folder.dir.path().join("desk #1?.db.lock"), "").unwrap();
    assert!(!folder.inspect().unwrap().seed_has_changed());
}

/// A connection as another program opens it.
fn other_program(folder: &Folder) -> Connection {
    Connection::open(&folder.spec.file).unwrap()
}

#[test]
fn a_database_that_another_program_has_open_was_replaced() {
    let folder = Folder::new();
    drop(folder.open().unwrap());
    let write = "INSERT INTO refunds VALUES (1, 1)";
    // A reader, one that has only written before, and a writer.
    for begin in ["SELECT count(*) FROM refunds", write, "BEGIN IMMEDIATE; SELECT 1"] {
        let other = other_program(&folder);
        other.execute_batch(begin).unwrap();
        assert!(matches!(folder.open_fresh(), Err(DatabaseError::HeldByOther { .. })), "{begin}");
        // It goes on as before, and so does Toolcrib.
        other.execute_batch(write).unwrap();
        drop(other);
        drop(folder.open().unwrap());
    }
    let names = folder.names();
    assert!(names.iter().all(|name| !name.contains(".old-")), "{names:?}");
    assert!(folder.open_fresh().unwrap().kept().is_some());
}

#[test]
fn a_claim_that_was_given_up_changed_the_database() {
    let folder = Folder::new();
    drop(folder.open().unwrap());
    let claim = Database::claim(&folder.spec).unwrap();
    let other = other_program(&folder);
    let refused = other.execute_batch("INSERT INTO refunds VALUES (1, 1)").unwrap_err();
    assert!(refused.to_string().contains("locked"), "{refused}");
    drop(claim);
    other.execute_batch("INSERT INTO refunds VALUES (1, 1)").unwrap();
    let mode: String = other.query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
}
