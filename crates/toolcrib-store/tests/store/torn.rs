//! A write-ahead log that is cut off or damaged anywhere, as after a loss of power.

use std::{fs, path::Path, time::Duration};

use serde_json::json;
use toolcrib_core::{
    CallIntent, CallOutcome, Message, NewSession, SessionOwner, SessionRecord, SessionStore as _,
    SessionStoreError, StoredSession, Usage,
};
use toolcrib_store::SqliteStore;

/// Of SQLite's format of the log: <https://www.sqlite.org/fileformat2.html#walformat>.
const LOG_HEADER: usize = 32;
const FRAME_HEADER: usize = 24;

fn writes() -> Vec<Vec<SessionRecord>> {
    let (model, title) = ("m".into(), "t".into());
    let call = |id: &str| CallIntent {
        call_id: id.into(),
        tool: "pay".into(),
        arguments: json!({ "amount": 1 }),
        read_only: false,
        idempotent: id == "b",
    };
    let ended = |id: &str| SessionRecord::Outcome {
        call_id: id.into(),
        outcome: CallOutcome::Succeeded,
        result: Some(Message::user("result ".repeat(2_000))),
    };
    let usage = Usage { input_tokens: 5, ..Usage::NOTHING };
    vec![
        vec![
            SessionRecord::TurnBegan { model, title, skills: Vec::new() },
            SessionRecord::Message(Message::user("Pay")),
        ],
        vec![
            SessionRecord::Message(Message::assistant("x".repeat(9_000), [])),
            SessionRecord::Used(usage),
        ],
        vec![SessionRecord::Intent(call("a"))],
        vec![SessionRecord::Intent(call("b"))],
        vec![ended("a")],
        vec![ended("b")],
        vec![SessionRecord::TurnEnded { stopped: "answered".into(), error: None, usage }],
    ]
}

/// The number of writes that the store of these two files has, which must be whole.
fn survived(folder: &Path, file: &[u8], log: &[u8], states: &[StoredSession]) -> usize {
    let path = folder.join("sessions.db");
    for name in ["sessions.db-shm", "sessions.db-wal"] {
        let _ = fs::remove_file(folder.join(name));
    }
    fs::write(&path, file).unwrap();
    fs::write(folder.join("sessions.db-wal"), log).unwrap();
    let store = SqliteStore::open(&path).unwrap();
    let owner = SessionOwner::default();
    let found = match store.find(&owner, "torn") {
        Err(SessionStoreError::Unknown { .. }) => 0,
        found => {
            let id = found.unwrap().id;
            let read = store.read(&owner, &id).unwrap();
            let state = states.iter().position(|state| *state == read);
            let state = state.ok_or(read).unwrap();
            // It can be used.
            let lease = store.acquire(&owner, &id, Duration::ZERO).unwrap();
            store.renew(&lease, Duration::ZERO).unwrap();
            state + 1
        }
    };
    drop(store);
    found
}

#[test]
fn a_torn_log_loses_whole_writes_at_its_end_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let store = SqliteStore::open(&path).unwrap();
    let owner = SessionOwner::default();
    let name = Some("torn".into());
    let new = NewSession { owner: owner.clone(), name, personality: "default".into() };
    let id = store.create(&new).unwrap().id;
    let mut states = vec![store.read(&owner, &id).unwrap()];
    let lease = store.acquire(&owner, &id, Duration::ZERO).unwrap();
    for records in writes() {
        store.write(&lease, 0, &records).unwrap();
        states.push(store.read(&owner, &id).unwrap());
    }
    let (file, log) =
        (fs::read(&path).unwrap(), fs::read(folder.path().join("sessions.db-wal")).unwrap());
    drop(store);
    let page = u32::from_be_bytes(log[8..12].try_into().unwrap());
    let frame = FRAME_HEADER + usize::try_from(page).unwrap();
    let frames = (log.len() - LOG_HEADER) / frame;
    assert!(frames > 20, "{frames} frames");

    let torn = tempfile::tempdir().unwrap();
    let state = |log: &[u8]| survived(torn.path(), &file, log, &states);
    assert_eq!(state(&log), states.len());
    let mut last = 0;
    for number in 0..frames {
        let begin = LOG_HEADER + number * frame;
        for cut in [begin, begin + frame / 2] {
            let now = state(&log[..cut]);
            assert!(now >= last, "frame {number}: {now} writes, after {last}");
            last = now;
        }
        let damaged = if number % 2 == 0 { 3 } else { FRAME_HEADER + number * 7 };
        let mut log = log.clone();
        log[begin + damaged] ^= 0x40;
        assert_eq!(state(&log), last, "frame {number}: all writes before it, and none after");
    }
    assert!(last >= states.len() - 1);
}
