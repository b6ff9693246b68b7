//! The store in PostgreSQL, on a server that the tests start.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use toolcrib_core::{
    ApprovalMark, CallIntent, MarkStore as _, Message, NewSession, SessionLease, SessionOwner,
    SessionRecord, SessionStore as _, SessionStoreError, Store as _,
};
use toolcrib_store::{PostgresMarks, PostgresStore};
use toolcrib_testbed::PostgresServer;
use toolcrib_testing::stores::{
    check_approval_store, check_artifact_store, check_kv_store, check_limit_store, check_machines,
    check_session_store, check_start, check_usage_store,
};

/// The URL of a new database.
pub(crate) fn url() -> Option<String> {
    let server = PostgresServer::shared()?;
    let name = server.database("").unwrap();
    Some(server.url("owner", &name))
}

#[test]
fn the_store_obeys_the_contracts() {
    let Some(url) = url() else { return };
    let store = PostgresStore::connect(&url).unwrap().accept_loss(true);
    check_session_store(&store).unwrap();
    check_approval_store(&store).unwrap();
    check_usage_store(&store).unwrap();
    check_kv_store(&store).unwrap();
    check_limit_store(&store).unwrap();
    let artifacts = store.artifacts(Duration::from_hours(1)).unwrap();
    check_artifact_store(&*artifacts).unwrap();
}

#[test]
fn replicas_start_at_the_same_time() {
    let Some(url) = url() else { return };
    check_start(move || PostgresStore::connect(&url), Duration::from_secs(60)).unwrap();
}

#[test]
fn machines_follow_the_servers_clock() {
    let Some(url) = url() else { return };
    let store = Arc::new(PostgresStore::connect(&url).unwrap());
    check_machines(&*store, &*store).unwrap();
}

fn owner() -> SessionOwner {
    SessionOwner { tenant: None, principal: Some("ann".into()) }
}

fn leased(store: &PostgresStore) -> (Arc<str>, SessionLease) {
    let new = NewSession { owner: owner(), name: None, personality: "default".into() };
    let id = store.create(&new).unwrap().id;
    let lease = store.acquire(&owner(), &id, Duration::from_hours(1)).unwrap();
    (id, lease)
}

fn began() -> SessionRecord {
    SessionRecord::TurnBegan { model: "m".into(), title: "title".into(), skills: Vec::new() }
}

fn said(text: &str) -> SessionRecord {
    SessionRecord::Message(Message::user(text))
}

#[test]
fn a_newer_format_is_refused() {
    let Some(url) = url() else { return };
    drop(PostgresStore::connect(&url).unwrap());
    let server = PostgresServer::shared().unwrap();
    let name = url.rsplit('=').next().unwrap();
    server.psql(name, "UPDATE toolcrib.format SET version = 99").unwrap();
    let error = PostgresStore::connect(&url).unwrap_err();
    assert!(matches!(error, SessionStoreError::NewerSchema { found: 99, .. }), "{error}");
}

#[test]
fn a_failed_connection_does_not_tell_the_password() {
    let url = "postgres://ann:geheim@localhost:1/db?sslmode=disable";
    let error = PostgresStore::connect(url).unwrap_err().to_string();
    assert!(error.starts_with("localhost/db cannot be opened: "), "{error}");
    assert!(!error.contains("geheim"), "{error}");
    let error = PostgresStore::connect("postgres://ann:geheim@[").unwrap_err().to_string();
    assert!(error.contains("the URL is invalid") && !error.contains("geheim"), "{error}");
}

/// The server of the tests has no `fsync`.
#[test]
fn an_intent_that_can_vanish_is_refused_unless_the_loss_is_accepted() {
    let Some(url) = url() else { return };
    let store = PostgresStore::connect(&url).unwrap();
    let (_, lease) = leased(&store);
    let intent = |is_idempotent| {
        SessionRecord::Intent(CallIntent {
            call_id: "a".into(),
            tool: "pay".into(),
            arguments: json!({}),
            read_only: false,
            idempotent: is_idempotent,
        })
    };
    store.write(&lease, 0, &[began(), intent(true)]).unwrap();
    let refused = store.write(&lease, 0, &[intent(false)]).unwrap_err();
    assert!(matches!(refused, SessionStoreError::NotDurable { .. }), "{refused}");
    store.clone().accept_loss(true).write(&lease, 0, &[intent(false)]).unwrap();
}

#[test]
fn the_inspection_names_what_the_role_may_not_do() {
    let Some(url) = url() else { return };
    let problems = |store: &PostgresStore| -> Vec<&'static str> {
        let found = store.inspect().unwrap();
        found.into_iter().filter(|one| one.problem.is_some()).map(|one| one.name).collect()
    };
    assert_eq!(problems(&PostgresStore::connect(&url).unwrap()), ["fsync"]);
    let server = PostgresServer::shared().unwrap();
    let name = url.rsplit('=').next().unwrap();
    let grants = format!(
        "CREATE ROLE reader_{name} LOGIN; GRANT USAGE ON SCHEMA toolcrib TO reader_{name};
        GRANT SELECT ON ALL TABLES IN SCHEMA toolcrib TO reader_{name};
        ALTER ROLE reader_{name} SET synchronous_commit = off"
    );
    server.psql(name, &grants).unwrap();
    let reader = PostgresStore::connect(&server.url(&format!("reader_{name}"), name)).unwrap();
    assert_eq!(problems(&reader), ["fsync", "synchronous_commit", "rights"]);
}

/// An older program has created the tables, and one writes while a newer one migrates them.
#[test]
fn a_migration_adds_to_the_tables_of_an_older_program() {
    let Some(url) = url() else { return };
    let server = PostgresServer::shared().unwrap();
    let name = url.rsplit('=').next().unwrap();
    server.psql(name, include_str!("../../src/postgres/schema.sql")).unwrap();
    server.psql(name, "UPDATE toolcrib.format SET version = 1").unwrap();
    let older = "INSERT INTO toolcrib.sessions (id, owner, personality, created_ms, used_ms)
        VALUES ('aaaabbbbcccc', '[null,\"ann\"]', 'default', 1, 1)";
    server.psql(name, older).unwrap();
    let stores: Vec<_> = std::thread::scope(|scope| {
        let open = || scope.spawn(|| PostgresStore::connect(&url).unwrap());
        let opening: Vec<_> = (0..4).map(|_| open()).collect();
        opening.into_iter().map(|one| one.join().unwrap()).collect()
    });
    stores[0].submit(&owner(), "aaaabbbbcccc", "Go").unwrap();
    let claimed = stores[1].claim(None, Duration::from_secs(60)).unwrap().unwrap();
    assert_eq!(&*claimed.submitted.unwrap().text, "Go");
}

#[test]
fn a_write_is_one_round_trip() {
    let Some(url) = url() else { return };
    let store = PostgresStore::connect(&url).unwrap();
    let (_, lease) = leased(&store);
    let before = store.round_trips();
    let seen = store.write(&lease, 0, &[began(), said("one")]).unwrap();
    store.write(&lease, seen, &[said("two"), said("three")]).unwrap();
    assert_eq!(store.round_trips() - before, 2);
}

/// A copy of a database as it was, in place of the present one.
#[test]
fn a_server_that_was_set_back_tells_the_writer_of_a_lost_write() {
    let Some(url) = url() else { return };
    let store = PostgresStore::connect(&url).unwrap();
    let (id, lease) = leased(&store);
    let seen = store.write(&lease, 0, &[began(), said("kept")]).unwrap();
    let server = PostgresServer::shared().unwrap();
    let name = url.rsplit('=').next().unwrap();
    server.psql(name, "CREATE TABLE kept AS SELECT * FROM toolcrib.sessions").unwrap();
    let seen = store.write(&lease, seen, &[said("lost")]).unwrap();
    let back = "DELETE FROM toolcrib.sessions; INSERT INTO toolcrib.sessions SELECT * FROM kept;
        DELETE FROM toolcrib.records WHERE body LIKE '%lost%'";
    server.psql(name, back).unwrap();
    let error = store.write(&lease, seen, &[said("after")]).unwrap_err();
    assert!(matches!(error, SessionStoreError::WritesLost { .. }), "{error}");
    let messages = store.read(&owner(), &id).unwrap().messages;
    assert_eq!(messages.len(), 1);
}

#[test]
fn a_mark_is_made_once_also_by_a_role_that_only_inserts() {
    let Some(url) = url() else { return };
    let owners = PostgresMarks::connect(&url).unwrap();
    let server = PostgresServer::shared().unwrap();
    let name = url.rsplit('=').next().unwrap();
    let grants = format!(
        "CREATE ROLE marker_{name} LOGIN; GRANT USAGE ON SCHEMA toolcrib_marks TO marker_{name};
        GRANT SELECT, INSERT ON toolcrib_marks.marks TO marker_{name}"
    );
    server.psql(name, &grants).unwrap();
    let role = format!("marker_{name}");
    let marks = PostgresMarks::connect(&server.url(&role, name)).unwrap();
    assert!(marks.mark(ApprovalMark::Used, "aaaabbbbcccc", 1).unwrap());
    assert!(!owners.mark(ApprovalMark::Used, "aaaabbbbcccc", 1).unwrap());
    let ids = ["aaaabbbbcccc", "000000000000"];
    assert_eq!(marks.marked(ApprovalMark::Used, &ids).unwrap(), ["aaaabbbbcccc"]);
    assert!(marks.marked(ApprovalMark::Revoked, &ids).unwrap().is_empty());
}
