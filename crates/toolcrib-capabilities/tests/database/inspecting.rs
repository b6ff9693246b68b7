//! Inspecting writes nothing and runs nothing.

use tokio_util::sync::CancellationToken;
use toolcrib_capabilities::database::{DatabaseError, TransactionEnd};

use crate::support::{Folder, run};

#[tokio::test]
async fn without_a_file_the_seed_is_read_and_nothing_is_written() {
    let folder = Folder::new();
    let database = folder.inspect().unwrap();
    assert!(!database.was_made());
    let statement = database.read_only().describe("SELECT id FROM mark").unwrap();
    assert_eq!(statement.columns, ["id"]);
    assert!(folder.names().is_empty());
}

#[tokio::test]
async fn a_file_at_rest_is_read_and_nothing_is_written() {
    let folder = Folder::new();
    let database = folder.open().unwrap();
    run(&database.writable(), |c| c.execute_batch("CREATE TABLE later (x)")).await.unwrap();
    drop(database);
    let before = folder.listing();
    let inspected = folder.inspect().unwrap();
    // The file is looked at, not the seed.
    inspected.read_only().describe("SELECT x FROM later").unwrap();
    assert_eq!(folder.listing(), before);
    drop(inspected);
    assert_eq!(folder.listing(), before);
}

#[tokio::test]
async fn an_inspected_database_does_not_keep_others_from_making_it() {
    let folder = Folder::new();
    let inspected = folder.inspect().unwrap();
    assert!(folder.open_fresh().unwrap().was_made());
    drop(inspected);
}

#[tokio::test]
async fn nothing_runs_on_an_inspected_database() {
    let folder = Folder::new();
    let database = folder.inspect().unwrap();
    for handle in [database.read_only(), database.writable()] {
        let error = handle
            .transaction(&CancellationToken::new(), |_| Ok(TransactionEnd::Commit(())))
            .await
            .unwrap_err();
        assert!(matches!(error, DatabaseError::InspectOnly { .. }), "{error}");
    }
}
