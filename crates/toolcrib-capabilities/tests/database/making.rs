//! Opening a database: what it creates, refuses and leaves unchanged.

use std::{fs, thread};

use tokio_util::sync::CancellationToken;
use toolcrib_capabilities::database::{Database, DatabaseError, SIDE_FILES};

use crate::support::{ENDLESS, Folder, mark, refunds, run};

const FILE: &str = "desk #1?.db";
const LOCK: &str = "desk #1?.db.lock";

#[tokio::test]
async fn a_missing_file_is_made_once_and_then_used() {
    let folder = Folder::new();
    let first = folder.open().unwrap();
    assert!(first.was_made());
    assert_eq!((first.name(), first.file()), ("desk", folder.spec.file.as_path()));
    let made = mark(&first).await;
    drop(first);
    let second = folder.open().unwrap();
    assert!(!second.was_made());
    assert_eq!(mark(&second).await, made);
}

#[tokio::test]
async fn fresh_makes_it_anew_and_takes_nothing_of_the_old_one_along() {
    let folder = Folder::new();
    let old = folder.open().unwrap();
    let old_mark = mark(&old).await;
    run(&old.writable(), |c| c.execute("INSERT INTO refunds VALUES (1, 1)", [])).await.unwrap();
    drop(old);
    let new = folder.open_fresh().unwrap();
    assert!(new.was_made());
    assert_ne!(mark(&new).await, old_mark);
    assert_eq!(refunds(&new).await, 0);
}

#[tokio::test]
async fn fresh_is_refused_at_once_while_anybody_has_it_open() {
    let folder = Folder::new();
    let database = folder.open().unwrap();
    let made = mark(&database).await;
    let refused = folder.open_fresh().unwrap_err();
    assert!(matches!(refused, DatabaseError::InUse { .. }), "{refused}");
    assert!(refused.to_string().contains("`desk` is in use"), "{refused}");
    // A tool's handle alone keeps it, too.
    let handle = database.read_only();
    drop(database);
    assert!(matches!(folder.open_fresh(), Err(DatabaseError::InUse { .. })));
    drop(handle);
    assert_ne!(mark(&folder.open_fresh().unwrap()).await, made);
}

#[tokio::test]
async fn what_is_claimed_is_unchanged_and_nobody_else_s_until_it_is_made_or_given_up() {
    let folder = Folder::new();
    let made = mark(&folder.open().unwrap()).await;
    let claim = Database::claim(&folder.spec).unwrap();
    assert!(matches!(Database::claim(&folder.spec), Err(DatabaseError::InUse { .. })));
    drop(claim);
    assert_eq!(mark(&folder.open().unwrap()).await, made);
    let new = Database::claim(&folder.spec).unwrap().make_anew(&CancellationToken::new()).unwrap();
    assert_ne!(mark(&new).await, made);
}

#[tokio::test]
async fn only_declared_files_lie_beside_a_database() {
    let folder = Folder::new();
    let database = folder.open().unwrap();
    run(&database.writable(), |c| c.execute("INSERT INTO refunds VALUES (1, 1)", []))
        .await
        .unwrap();
    let names = folder.names();
    assert!(names.len() > 2, "{names:?}");
    for name in names {
        let beside = name.strip_prefix(FILE).unwrap();
        assert!(beside.is_empty() || SIDE_FILES.contains(&beside), "{name}");
    }
}

#[test]
fn a_failing_seed_says_where_and_leaves_nothing_behind() {
    for (seed, line, problem) in [
        ("CREATE TABLE a (x);\n\nCREATE TABEL b (x);", Some(3), "near \"TABEL\": syntax error"),
        (
            "CREATE TABLE a (x UNIQUE);\nINSERT INTO a VALUES (1); -- one\n\n/* and\n again */\n\
             INSERT INTO a VALUES (1);\nCREATE TABLE b (x);",
            Some(6),
            "UNIQUE constraint failed: a.x",
        ),
        ("CREATE TABLE a (x);\nINSERT INTO a\nVALUES (1, 2);", Some(2), "table a has 1 columns"),
        ("CREATE TABLE a (x);\nSELECT \"y\" FROM a;", Some(2), "no such column: \"y\""),
        ("CREATE TABLE a (x);\nATTACH 'b.db' AS b;", Some(2), "remove ATTACH and VACUUM"),
        ("CREATE TABLE a (x);\nVACUUM INTO 'b.db';", Some(2), "remove ATTACH and VACUUM"),
        ("BEGIN;\nCREATE TABLE a (x);", None, "it leaves a transaction open; add COMMIT"),
        (
            "CREATE TABLE a (x PRIMARY KEY);\nCREATE TABLE b (x REFERENCES a);\n\
             INSERT INTO b VALUES (1);",
            Some(3),
            "FOREIGN KEY constraint failed",
        ),
    ] {
        let folder = Folder::seeded(seed);
        let error = folder.open().unwrap_err();
        let text = error.to_string();
        let DatabaseError::Seed { line: found, .. } = error else { panic!("{text}") };
        assert_eq!(found, line, "{text}");
        assert!(text.contains(problem), "{text}");
        assert!(text.contains("fails at seed.sql"), "{text}");
        assert_eq!(folder.names(), [LOCK], "{seed}");
        let inspected = folder.inspect().unwrap_err();
        assert_eq!(inspected.to_string(), text, "inspecting says the same");
    }
}

#[tokio::test]
async fn a_failing_seed_does_not_cost_the_database_that_was_there() {
    let mut folder = Folder::new();
    let made = mark(&folder.open().unwrap()).await;
    folder.spec.seed.sql = "CREATE TABEL a (x);".into();
    assert!(matches!(folder.open_fresh(), Err(DatabaseError::Seed { .. })));
    assert_eq!(mark(&folder.open().unwrap()).await, made);
}

#[test]
fn a_seed_that_does_not_end_is_cancelled_and_leaves_nothing_behind() {
    let folder = Folder::seeded(ENDLESS);
    let cancel = CancellationToken::new();
    let canceller = cancel.clone();
    let error = thread::scope(|scope| {
        let opening = scope.spawn(|| Database::open(&folder.spec, &cancel));
        while !folder.names().iter().any(|name| name.ends_with(".new")) {
            assert!(!opening.is_finished(), "it ended before its cancellation");
            thread::yield_now();
        }
        canceller.cancel();
        opening.join().unwrap().unwrap_err()
    });
    assert!(matches!(error, DatabaseError::Cancelled { .. }), "{error}");
    assert_eq!(folder.names(), [LOCK]);
    let error = Database::inspect(&folder.spec, &cancel).unwrap_err();
    assert!(matches!(error, DatabaseError::Cancelled { .. }), "{error}");
}

#[test]
fn what_is_no_database_is_reported_and_never_overwritten() {
    let page_of_text = "not a database ".repeat(400);
    for content in ["", "hello", &page_of_text] {
        let folder = Folder::new();
        fs::write(&folder.spec.file, content).unwrap();
        for error in [folder.open().unwrap_err(), folder.inspect().unwrap_err()] {
            assert!(matches!(error, DatabaseError::Unreadable { .. }), "{error}");
            assert!(error.to_string().contains("desk #1?.db of database `desk`"), "{error}");
        }
        assert_eq!(fs::read_to_string(&folder.spec.file).unwrap(), content);
        assert!(matches!(folder.open_fresh(), Err(DatabaseError::NotOurs { .. })));
        assert_eq!(fs::read_to_string(&folder.spec.file).unwrap(), content);
    }
    let folder = Folder::new();
    fs::create_dir(&folder.spec.file).unwrap();
    assert!(matches!(folder.open(), Err(DatabaseError::Unreadable { .. })));
}

#[test]
fn a_folder_that_is_missing_is_named() {
    let mut folder = Folder::new();
    folder.spec.file = folder.dir.path().join("gone").join(FILE);
    let error = folder.open().unwrap_err();
    assert!(matches!(error, DatabaseError::File { action: "open", .. }), "{error}");
    assert!(error.to_string().contains("gone"), "{error}");
}

#[tokio::test]
async fn leftover_files_of_a_killed_maker_are_removed() {
    let folder = Folder::new();
    let beside = |suffix: &str| folder.dir.path().join(format!("{FILE}{suffix}"));
    // A draft, and the log of a database whose file was removed by the maker that was killed.
    for suffix in [".new", ".new-journal", "-wal", "-shm"] {
        fs::write(beside(suffix), "left behind").unwrap();
    }
    let database = folder.open().unwrap();
    assert_eq!(refunds(&database).await, 0);
    assert!(!beside(".new").exists() && !beside(".new-journal").exists());
    drop(database);
    assert_eq!(mark(&folder.open().unwrap()).await.len(), 32);
}

#[test]
fn a_file_that_is_gone_under_its_user_is_an_error_and_is_not_waited_for_forever() {
    let folder = Folder::new();
    let user = folder.open().unwrap();
    fs::remove_file(&folder.spec.file).unwrap();
    assert!(matches!(folder.open(), Err(DatabaseError::InUse { .. })));
    drop(user);
    assert!(folder.open().unwrap().was_made());
}
