use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
    sync::Arc,
    time::Duration,
};

use serde_json::json;
use toolcrib_core::{
    CallIntent, Digest, KvArea, KvStore as _, KvWrite, Message, NewSession, SentPart, SessionLease,
    SessionOwner, SessionRecord, SessionSearch, SessionStore as _, SessionStoreError, ToolCall,
    Usage, UsageEntry, UsageSource, UsageStore as _,
};
use toolcrib_store::SqliteStore;

const LEASE: Duration = Duration::from_hours(1);

fn began() -> SessionRecord {
    SessionRecord::TurnBegan { model: "m".into(), title: "t".into(), skills: Vec::new() }
}

fn ended() -> SessionRecord {
    SessionRecord::TurnEnded { stopped: "answered".into(), error: None, usage: Usage::NOTHING }
}

fn begin(store: &SqliteStore) -> (Arc<str>, SessionLease) {
    let owner = SessionOwner::default();
    let new = NewSession { owner: owner.clone(), name: None, personality: "default".into() };
    let id = store.create(&new).unwrap().id;
    let lease = store.acquire(&owner, &id, LEASE).unwrap();
    (id, lease)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn only_the_user_can_read_the_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let store = SqliteStore::open(&path).unwrap();
    let (_, lease) = begin(&store);
    store.write(&lease, 0, &[began()]).unwrap();
    let files: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.len() >= 2, "{files:?}");
    assert!(files.iter().all(|file| mode(file) == 0o600), "{files:?}");
    drop(store);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    drop(SqliteStore::open(&path).unwrap());
    assert_eq!(mode(&path), 0o600);
}

#[test]
fn another_connection_sees_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let store = SqliteStore::open(&path).unwrap();
    let (id, lease) = begin(&store);
    let message = Message::user("hello");
    store.write(&lease, 0, &[began(), SessionRecord::Message(message.clone())]).unwrap();
    let other = SqliteStore::open(&path).unwrap();
    let owner = SessionOwner::default();
    assert_eq!(other.read(&owner, &id).unwrap().messages[0].message, message);
    let refused = other.acquire(&owner, &id, LEASE).unwrap_err();
    assert!(matches!(refused, SessionStoreError::InUse { .. }), "{refused}");
}

#[test]
fn several_connections_open_a_new_file_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    std::thread::scope(|scope| {
        let open = || begin(&SqliteStore::open(&path).unwrap());
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
        threads.into_iter().for_each(|thread| drop(thread.join().unwrap()));
    });
}

#[test]
fn a_newer_format_is_refused_and_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    drop(SqliteStore::open(&path).unwrap());
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", 14).unwrap();
    drop(connection);
    let error = SqliteStore::open(&path).unwrap_err();
    assert!(
        matches!(error, SessionStoreError::NewerSchema { found: 14, known: 13, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("was written by a newer Toolcrib"), "{error}");
}

#[test]
fn files_of_others_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let open = || SqliteStore::open(&path).unwrap_err();
    fs::write(
        &path,
        "This is a text, and long enough to be read as the head of a database.\n".repeat(20),
    )
    .unwrap();
    assert!(matches!(open(), SessionStoreError::Damaged { .. }), "{}", open());
    fs::remove_file(&path).unwrap();
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("CREATE TABLE notes (text TEXT)").unwrap();
    drop(other);
    assert!(open().to_string().contains("a database of another program"), "{}", open());
    fs::remove_file(&path).unwrap();
    let target = folder.path().join("target.db");
    fs::write(&target, "").unwrap();
    symlink(&target, &path).unwrap();
    assert!(open().to_string().contains("it is not a file"), "{}", open());
    assert_eq!(fs::read(&target).unwrap(), b"");
}

#[test]
fn removed_content_is_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let store = SqliteStore::open(&path).unwrap();
    let (id, lease) = begin(&store);
    let message = Message::user("a very recognizable text ".repeat(1_000));
    store.write(&lease, 0, &[began(), SessionRecord::Message(message.clone()), ended()]).unwrap();
    store.release(&lease).unwrap();
    let is_in_files = || {
        fs::read_dir(folder.path()).unwrap().any(|file| {
            let bytes = fs::read(file.unwrap().path()).unwrap();
            String::from_utf8_lossy(&bytes).contains("recognizable")
        })
    };
    assert!(is_in_files());
    store.remove(&SessionOwner::default(), &id).unwrap();
    assert!(!is_in_files());
}

#[test]
fn the_intent_of_a_call_that_may_not_be_repeated_is_synced() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("sessions.db")).unwrap();
    let (id, lease) = begin(&store);
    let arguments = json!({});
    let intent = |call_id: &str, idempotent| {
        SessionRecord::Intent(CallIntent {
            call_id: call_id.into(),
            tool: "t".into(),
            arguments: arguments.clone(),
            read_only: false,
            idempotent,
        })
    };
    // Both modes, in both directions, on one connection.
    store.write(&lease, 0, &[began(), intent("a", true)]).unwrap();
    store.write(&lease, 0, &[intent("b", false)]).unwrap();
    store.write(&lease, 0, &[intent("c", true), ended()]).unwrap();
    let session = store.read(&SessionOwner::default(), &id).unwrap();
    assert_eq!(session.calls.len(), 3);
}

#[test]
fn a_hundred_turns_are_read_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("sessions.db")).unwrap();
    let (id, lease) = begin(&store);
    for turn in 1..=100 {
        let message = Message::user(turn.to_string());
        store
            .write(&lease, 0, &[began(), SessionRecord::Message(message.clone()), ended()])
            .unwrap();
    }
    let session = store.read(&SessionOwner::default(), &id).unwrap();
    let expected: Vec<_> = (1..=100).map(|turn| Message::user(turn.to_string())).collect();
    let read: Vec<_> = session.messages.into_iter().map(|stored| stored.message).collect();
    assert_eq!(read, expected);
    assert_eq!(session.info.turns, 100);
}

#[test]
fn a_file_of_an_older_format_is_converted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let store = SqliteStore::open(&path).unwrap();
    let owner = SessionOwner::default();
    let new = NewSession { owner: owner.clone(), name: None, personality: "default".into() };
    let session = store.create(&new).unwrap();
    let lease = store.acquire(&owner, &session.id, Duration::from_secs(9)).unwrap();
    store.write(&lease, 0, &[began(), SessionRecord::Message(Message::user("kept"))]).unwrap();
    let result = |untrusted| Message::Tool {
        call_id: "c1".into(),
        name: "t".into(),
        text: "result".into(),
        blocks: Arc::default(),
        is_error: false,
        untrusted,
    };
    let called = Message::assistant("", [ToolCall::new("c1", "t", json!({}))]);
    let more = [called, result(true), Message::assistant("More.", [])];
    let more = more.map(SessionRecord::Message).into_iter();
    let more: Vec<_> = more.chain([SessionRecord::LeftOut(vec![1, 2]), ended()]).collect();
    store.write(&lease, 0, &more).unwrap();
    let history = store.history(&owner, &session.id).unwrap();
    assert_eq!((&*history.left_out_calls[0], history.left_out_untrusted), ("c1", true));
    drop(store);
    let connection = rusqlite::Connection::open(&path).unwrap();
    let to_tenth_format = "DROP TABLE left_out_calls; DROP INDEX messages_of_requests;
        DROP TABLE limits; ALTER TABLE sessions DROP COLUMN writes;
        DROP INDEX sessions_submitted; DROP INDEX turns_that_run;
        ALTER TABLE sessions DROP COLUMN submitted; ALTER TABLE sessions DROP COLUMN taken;
        ALTER TABLE sessions DROP COLUMN is_due; ALTER TABLE sessions DROP COLUMN cancelled_turn;
        ALTER TABLE sessions DROP COLUMN left_out_untrusted; PRAGMA user_version = 10";
    connection.execute_batch(to_tenth_format).unwrap();
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(store.history(&owner, &session.id).unwrap(), history);
    drop(store);
    connection.execute_batch(to_tenth_format).unwrap();
    let to_first_format = "ALTER TABLE turns DROP COLUMN skills;
        ALTER TABLE calls DROP COLUMN cut_off; ALTER TABLE calls DROP COLUMN result;
        ALTER TABLE turns DROP COLUMN title; DROP TABLE events;
        DROP TABLE approvals; DROP TABLE grants; DROP TABLE sent; DROP TABLE parts; DROP TABLE kv;
        DROP TRIGGER messages_added; DROP TABLE texts; DROP TABLE texts_index;
        ALTER TABLE messages DROP COLUMN left_out;
        ALTER TABLE turns DROP COLUMN cache_write_tokens; DROP TABLE usage; DROP TABLE offered; DROP TABLE definitions;
        DROP INDEX calls_by_turn; ALTER TABLE sessions DROP COLUMN calls;
        PRAGMA user_version = 1";
    connection.execute_batch(to_first_format).unwrap();
    drop(connection);
    let store = SqliteStore::open(&path).unwrap();
    let words = vec!["kept".into()];
    let search = SessionSearch { words, without: None, limit: 9 };
    assert_eq!(store.search(&owner, &search).unwrap().len(), 1);
    let read = store.read(&owner, &session.id).unwrap();
    assert_eq!(read.messages[0].message, Message::user("kept"));
    assert!(read.turns[0].skills.is_empty());
}

#[test]
fn nothing_of_a_removed_session_stays_in_the_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let store = SqliteStore::open(&path).unwrap();
    let owner = SessionOwner::default();
    let new = |name: &str| NewSession {
        owner: owner.clone(),
        name: Some(name.into()),
        personality: "default".into(),
    };
    for (name, text) in [("gone", "zebrafinch zebrafinch"), ("stays", "a blackbird")] {
        let session = store.create(&new(name)).unwrap();
        let lease = store.acquire(&owner, &session.id, Duration::from_secs(9)).unwrap();
        store.write(&lease, 0, &[began(), SessionRecord::Message(Message::user(text))]).unwrap();
        store.release(&lease).unwrap();
        let area = KvArea::Session { owner: owner.clone(), conversation: name.into() };
        let (expected, lives_for) = (None, Duration::from_secs(99));
        store.put(&area, KvWrite { key: "todo", value: Some(text), expected, lives_for }).unwrap();
    }
    let gone = store.find(&owner, "gone").unwrap();
    store.remove(&owner, &gone.id).unwrap();
    for name in ["sessions.db", "sessions.db-wal"] {
        let bytes = std::fs::read(folder.path().join(name)).unwrap_or_default();
        let has = |word: &[u8]| bytes.windows(word.len()).any(|part| part == word);
        assert!(!has(b"zebrafinch"), "{name}");
        assert!(name.ends_with("wal") || has(b"blackbird"));
    }
}

#[test]
fn sessions_with_the_same_tools_share_the_texts_about_them() {
    const TOOLS: u64 = 1_000;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let store = SqliteStore::open(&path).unwrap();
    let owner = SessionOwner::default();
    let connection = rusqlite::Connection::open(&path).unwrap();
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    let size = || number("PRAGMA page_count") * number("PRAGMA page_size");
    let part =
        |json: String| SessionRecord::Sent(SentPart { key: Digest::of("menu"), json: json.into() });
    let menu = format!("[{}]", "{\"name\":\"look_up\"},".repeat(10_000));
    let definitions = |bytes: u64| {
        let entry = |tool: u64| {
            let mut entry = UsageEntry::new(UsageSource::Tool(format!("tool_{tool:04}").into()));
            entry.definition_bytes = bytes;
            entry
        };
        (0..TOOLS).map(entry).collect::<Vec<_>>()
    };
    let run = || {
        let (id, lease) = begin(&store);
        store.write(&lease, 0, &[began(), part(menu.clone()), ended()]).unwrap();
        store.release(&lease).unwrap();
        store.add_usage(&owner, Some(&id), &definitions(200)).unwrap();
        id
    };
    let mut sessions = vec![run()];
    let before = size();
    sessions.extend((0..20).map(|_| run()));
    assert!(size() - before <= 20 * 10_000, "{} bytes for 20 sessions", size() - before);
    for id in &sessions {
        assert_eq!(&*store.sent(&owner, id).unwrap()[0].json, &*menu);
    }

    // A tool's definitions of all menus are one sum.
    store.add_usage(&owner, Some(&sessions[0]), &definitions(200)).unwrap();
    store.add_usage(&owner, Some(&sessions[0]), &definitions(300)).unwrap();
    let mut called = UsageEntry::new(UsageSource::Tool("tool_0007".into())).used(&Usage::NOTHING);
    called.definition_bytes = 1;
    store.add_usage(&owner, Some(&sessions[0]), &[called]).unwrap();
    let sums = store.usage_since(0).unwrap();
    let first = sums.iter().filter(|sum| sum.session.as_ref() == Some(&sessions[0]));
    let bytes: Vec<_> = first.map(|sum| sum.entry.definition_bytes).collect();
    assert_eq!((bytes.len() as u64, bytes[6], bytes[7]), (TOOLS, 700, 701));

    // A part that no session has any more is removed, when it is replaced too.
    let lease = store.acquire(&owner, &sessions[0], LEASE).unwrap();
    store.write(&lease, 0, &[began(), part("[1]".into()), part("[2]".into())]).unwrap();
    store.release(&lease).unwrap();
    assert_eq!(number("SELECT count(*) FROM parts"), 2);
    for id in &sessions {
        store.remove(&owner, id).unwrap();
    }
    assert_eq!(number("SELECT count(*) FROM parts"), 0);
}
