//! Storing results as artifacts: ids, handles, quotas, streams, secrets, full disks.

use std::{
    collections::HashSet,
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use proptest::prelude::*;
use toolcrib_artifacts::{
    ArtifactLimits, ArtifactSource, Artifacts, FileStore, MemoryStore, TurnArtifacts,
};
use toolcrib_core::{
    ArtifactEntry, ArtifactMeta, ArtifactStore, ArtifactStoreError, CommitError, Identity,
    OnConflict, Redact, StoreWriter, StoredBytes,
};
use toolcrib_engine::Redactor;

use crate::support::{keep, keep_as, turn, turn_of};

fn source(id: &str) -> ArtifactSource {
    ArtifactSource::of("tests", id)
}

#[test]
fn a_handle_says_what_it_is_and_how_it_begins() {
    let turn = turn();
    let log: String = (1..=9).map(|n| format!("line {n}\r\n")).collect();
    let mut text = keep_as(&turn, "log", log).handle();
    text += "\n\n";
    text += &keep_as(&turn, "rows", "{\"a\": 1}\n{\"a\": 2}").handle();
    text += "\n\n";
    text += &keep_as(&turn, "wide", "x".repeat(500)).handle();
    text += "\n\n";
    text += &keep_as(&turn, "nothing", "").handle();
    insta::assert_snapshot!(text.replace(&"x".repeat(120), "x…x"), @r#"
    [artifact log: text, 72 bytes, 10 lines; read on with artifact_read, artifact_search or artifact_query]
    line 1
    line 2
    line 3
    line 4
    line 5
    …

    [artifact rows: jsonl, 17 bytes, 2 lines; read on with artifact_read, artifact_search or artifact_query]
    {"a": 1}
    {"a": 2}

    [artifact wide: text, 500 bytes, 1 line; read on with artifact_read, artifact_search or artifact_query]
    x…x…

    [artifact nothing: text, 0 bytes, 0 lines; read on with artifact_read, artifact_search or artifact_query]
    "#);
}

#[test]
fn a_calls_id_is_the_artifacts_where_it_can_be_and_none_is_used_twice() {
    let turn = turn();
    assert_eq!(&**keep_as(&turn, "call_1", "a").id(), "call_1");
    assert_eq!(&**keep_as(&turn, "call_1", "b").id(), "call_1.2");
    assert_eq!(&**keep_as(&turn, "call_1", "c").id(), "call_1.3");
    let made = keep_as(&turn, "../../etc/passwd", "d").id().to_string();
    assert!(made.starts_with("a_") && made.len() == 14, "{made}");
    assert!(keep_as(&turn, "", "e").id().starts_with("a_"));
    assert!(keep_as(&turn, &"x".repeat(33), "f").id().starts_with("a_"));
    assert!(keep_as(&turn, "] obey [", "g").id().starts_with("a_"));
    // A later turn of the session does not overwrite an artifact of an earlier one.
    let later = turn.artifacts().turn(Arc::new(Identity::conversation("c1")), "run-2");
    assert_eq!(&**keep_as(&later, "call_1", "h").id(), "call_1.4");
    assert_eq!(later.get("call_1").unwrap().entry().bytes, 1);
    assert_eq!(turn.live().unwrap().len(), 8);
}

#[test]
fn taint_and_provenance_stay_with_an_artifact() {
    let folder = tempfile::tempdir().unwrap();
    let write = Artifacts::new(FileStore::new(folder.path()));
    let owner = Arc::new(Identity::conversation("c1"));
    let turn = write.turn(Arc::clone(&owner), "run-7");
    turn.keep(source("call_1"), b"x").unwrap();
    turn.keep(source("call_2").trusted().kind("jsonl"), b"y").unwrap();
    let read = Artifacts::new(FileStore::new(folder.path())).turn(owner, "run-8");
    let note = &read.get("call_1").unwrap().entry().note.clone();
    assert_eq!((&*note.tool, &*note.call_id, &*note.turn_id), ("tests", "call_1", "run-7"));
    assert!(note.untrusted);
    let other = read.get("call_2").unwrap();
    assert!(!other.entry().note.untrusted);
    assert_eq!(other.kind().name(), "jsonl");
}

#[test]
fn a_kind_that_nobody_knows_is_told_by_the_content() {
    let turn = turn();
    let artifact = turn.keep(source("a").kind("no-such-kind"), b"{}").unwrap();
    assert_eq!(&*artifact.entry().note.kind, "json");
}

fn limited(turn_bytes: u64, session_bytes: u64) -> Artifacts {
    let limits = ArtifactLimits { turn_bytes, session_bytes, ..ArtifactLimits::default() };
    Artifacts::with(Arc::new(MemoryStore::new()), Vec::new(), limits)
}

#[test]
fn a_turn_and_a_session_keep_no_more_than_they_may() {
    let artifacts = limited(10, 15);
    let turn = |run: &str| artifacts.turn(Arc::new(Identity::conversation("c1")), run);
    assert!(turn("1").keep(source("a"), &[b'x'; 10]).is_ok());
    let error = turn("1").keep(source("b"), b"x").unwrap_err().to_string();
    assert_eq!(error, "it exceeds the limit of 10 bytes per turn");
    assert!(turn("2").keep(source("c"), &[b'x'; 5]).is_ok(), "another turn has its own");
    let error = turn("2").keep(source("d"), b"x").unwrap_err().to_string();
    assert_eq!(error, "it exceeds the limit of 15 bytes per session");
    let other = artifacts.turn(Arc::new(Identity::conversation("c2")), "3");
    assert!(other.keep(source("e"), &[b'x'; 10]).is_ok(), "and so has another session");
    assert_eq!(turn("2").live().unwrap().len(), 2, "nothing is left of what was refused");
}

#[test]
fn what_another_process_has_kept_counts_for_the_session() {
    let store = MemoryStore::new();
    let limits = ArtifactLimits { session_bytes: 15, ..ArtifactLimits::default() };
    let turn = || turn_of(&Artifacts::with(Arc::new(store.clone()), Vec::new(), limits), "c1");
    keep_as(&turn(), "a", [b'x'; 10]);
    let later = turn();
    let error = later.keep(source("b"), &[b'x'; 6]).unwrap_err();
    assert!(matches!(error, ArtifactStoreError::Quota { limit: 15, whose: "session" }), "{error}");
    keep_as(&later, "c", [b'x'; 5]);
    assert!(later.keep(source("d"), b"x").is_err(), "it is counted once");
}

#[test]
fn what_a_turn_has_kept_is_remembered_until_256_others_were_used() {
    let artifacts = limited(10, 1_000);
    let turn =
        |run: usize| artifacts.turn(Arc::new(Identity::conversation("c1")), &run.to_string());
    turn(0).keep(source("a"), &[b'x'; 10]).unwrap();
    (1..256).for_each(|run| drop(turn(run)));
    assert!(turn(0).keep(source("b"), b"x").is_err());
    (256..512).for_each(|run| drop(turn(run)));
    assert!(turn(0).keep(source("c"), b"x").is_ok(), "it counts anew");
}

#[test]
fn two_writers_of_one_turn_share_its_quota() {
    let turn = turn_of(&limited(10, 100), "c1");
    let mut one = turn.writer(source("a"), None).unwrap();
    let mut two = turn.writer(source("b"), None).unwrap();
    one.write(&[b'x'; 8]);
    two.write(&[b'x'; 8]);
    assert!(one.finish().is_ok());
    assert!(matches!(two.finish().unwrap_err().error, ArtifactStoreError::Quota { limit: 10, .. }));
}

#[test]
fn what_is_being_written_counts_and_what_is_let_go_does_not() {
    let turn = turn_of(&limited(10, 100), "c1");
    let mut one = turn.writer(source("a"), None).unwrap();
    one.write(&[b'x'; 8]);
    assert!(turn.keep(source("b"), &[b'x'; 3]).is_err(), "8 of 10 are being written");
    assert!(turn.keep(source("c"), &[b'x'; 2]).is_ok());
    drop(one);
    assert!(turn.keep(source("d"), &[b'x'; 8]).is_ok(), "they were let go");
    assert!(turn.keep(source("e"), b"x").is_err());
}

#[test]
fn a_session_that_was_forgotten_gets_nothing_more_from_turns_of_its_past() {
    let store = MemoryStore::new();
    let artifacts = Artifacts::new(store.clone());
    let owner = Arc::new(Identity::conversation("c1"));
    let turn = artifacts.turn(Arc::clone(&owner), "1");
    let mut begun = turn.writer(source("late"), None).unwrap();
    begun.write(b"late");
    turn.keep(source("a"), b"kept").unwrap();
    artifacts.forget(&owner).unwrap();
    assert!(turn.live().unwrap().is_empty());
    assert!(matches!(begun.finish().unwrap_err().error, ArtifactStoreError::Over));
    assert!(matches!(turn.keep(source("b"), b"x").unwrap_err(), ArtifactStoreError::Over));
    let again = artifacts.turn(Arc::clone(&owner), "1");
    assert!(again.writer(source("c"), None).is_err(), "asked for anew it is the same turn");
    assert!(store.entries(&owner).unwrap().is_empty());
    // A conversation may have the name of one that has ended.
    let new = artifacts.turn(Arc::clone(&owner), "2");
    new.keep(source("d"), b"new").unwrap();
    assert_eq!(store.entries(&owner).unwrap().len(), 1);
}

#[test]
fn many_turns_that_want_one_id_get_one_each() {
    let artifacts = Artifacts::new(MemoryStore::new());
    let owner = Arc::new(Identity::conversation("c1"));
    let long = "x".repeat(32);
    let mut ids = HashSet::new();
    for n in 0..60 {
        let turn = artifacts.turn(Arc::clone(&owner), &n.to_string());
        let kept = turn.keep(source(&long), b"x").unwrap();
        assert!(kept.id().starts_with(&*long) && kept.id().len() <= 38, "{}", kept.id());
        assert!(ids.insert(kept.id().to_string()));
    }
    assert!(ids.contains(&format!("{long}.2")) && !ids.contains(&format!("{long}.40")));
}

#[test]
fn turns_of_one_session_at_the_same_time_share_its_quota() {
    let artifacts = limited(100, 15);
    let turn = |run: &str| artifacts.turn(Arc::new(Identity::conversation("c1")), run);
    let (one, two) = (turn("1"), turn("2"));
    assert!(one.keep(source("a"), &[b'x'; 5]).is_ok());
    assert!(two.keep(source("b"), &[b'x'; 9]).is_ok());
    assert!(one.keep(source("c"), b"xx").is_err(), "of 15 one is left");
    assert!(one.keep(source("d"), b"x").is_ok() && two.keep(source("e"), b"x").is_err());
    assert!(two.keep(source("f"), b"").is_ok(), "nothing takes nothing");
    // Concurrent writes, each within the limit but not all of them.
    let artifacts = limited(1_000, 1_000);
    let kept: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|run| {
                let turn = artifacts.turn(Arc::new(Identity::conversation("c1")), &run.to_string());
                scope.spawn(move || {
                    let kept = (0..50).filter(|_| turn.keep(source("a"), &[b'x'; 10]).is_ok());
                    kept.count()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(kept, 100);
}

/// A disk with this much space.
pub(crate) struct Disk {
    store: MemoryStore,
    left: Arc<AtomicU64>,
}

struct DiskWriter {
    writer: Box<dyn StoreWriter>,
    left: Arc<AtomicU64>,
}

impl StoreWriter for DiskWriter {
    fn write(&mut self, bytes: &[u8]) -> Result<(), ArtifactStoreError> {
        let takes = bytes.len() as u64;
        let room = self
            .left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(takes));
        if room.is_err() {
            return Err(ArtifactStoreError::of_io("written", io::ErrorKind::StorageFull.into()));
        }
        self.writer.write(bytes)
    }

    fn commit(
        self: Box<Self>,
        id: &str,
        note: ArtifactMeta,
        on_conflict: OnConflict,
    ) -> Result<ArtifactEntry, CommitError> {
        self.writer.commit(id, note, on_conflict)
    }
}

impl ArtifactStore for Disk {
    fn create(&self, owner: &Identity) -> Result<Box<dyn StoreWriter>, ArtifactStoreError> {
        let writer = self.store.create(owner)?;
        Ok(Box::new(DiskWriter { writer, left: Arc::clone(&self.left) }))
    }

    fn open(&self, owner: &Identity, id: &str) -> Result<StoredBytes, ArtifactStoreError> {
        self.store.open(owner, id)
    }

    fn entries(&self, owner: &Identity) -> Result<Vec<ArtifactEntry>, ArtifactStoreError> {
        self.store.entries(owner)
    }

    fn remove(&self, owner: &Identity, id: &str) -> Result<(), ArtifactStoreError> {
        self.store.remove(owner, id)
    }
}

pub(crate) fn disk_of(bytes: u64) -> Disk {
    Disk { store: MemoryStore::new(), left: Arc::new(AtomicU64::new(bytes)) }
}

fn on_disk_of(bytes: u64) -> TurnArtifacts {
    turn_of(&Artifacts::new(disk_of(bytes)), "c1")
}

#[test]
fn when_the_disk_is_full_beginning_and_end_of_a_result_survive() {
    let turn = on_disk_of(50_000);
    let mut writer = turn.writer(source("a"), None).unwrap();
    assert!(writer.is_keeping());
    for n in 1..=20_000 {
        writer.write(format!("line {n}\n").as_bytes());
    }
    assert!(!writer.is_keeping());
    let unkept = writer.finish().unwrap_err();
    assert_eq!(unkept.to_string(), "the result was not kept: the disk is full");
    let text = unkept.text();
    assert!(text.starts_with("line 1\nline 2\n"), "{text}");
    assert!(text.ends_with("line 19999\nline 20000\n"), "{text}");
    assert!(text.contains("bytes are missing here and were not kept: the disk is full]"));
    assert!(text.len() < 10_000);
    assert!(turn.live().unwrap().is_empty());
}

#[test]
fn a_short_result_survives_whole_on_a_full_disk() {
    for length in [0, 1, 4_095, 4_096, 4_097, 8_000, 8_192] {
        let turn = on_disk_of(0);
        let content: String = ('a'..='z').cycle().take(length).collect();
        let mut writer = turn.writer(source("a"), None).unwrap();
        content.as_bytes().chunks(100).for_each(|piece| writer.write(piece));
        if length > 0 {
            assert_eq!(writer.finish().unwrap_err().text(), content, "{length}");
        } else {
            assert!(writer.finish().is_ok());
        }
    }
}

#[test]
fn a_writer_that_is_dropped_keeps_nothing() {
    let turn = turn();
    let mut writer = turn.writer(source("a"), None).unwrap();
    writer.write(b"half");
    drop(writer);
    assert!(turn.live().unwrap().is_empty());
}

/// A character of a secret may be split across two pieces, and invalid bytes may end one.
#[test]
fn a_secret_is_found_in_whatever_pieces_its_characters_come() {
    let redact: Arc<dyn Redact> = Arc::new(Redactor::new(["hünter2€hünter2".to_owned()]));
    let turn = turn();
    let mut writer = turn.writer(source("a"), Some(redact)).unwrap();
    let content = [b"\xff", "hünter2€hünter2".as_bytes(), b"\xffh\xc3"].concat();
    content.iter().for_each(|byte| writer.write(&[*byte]));
    let artifact = writer.finish().unwrap();
    assert_eq!(artifact.content().read(0..100).unwrap(), b"\xff[redacted]\xffh\xc3");
}

#[test]
fn runs_of_one_session_at_the_same_time_do_not_take_each_others_ids() {
    let folder = tempfile::tempdir().unwrap();
    let artifacts = Artifacts::new(FileStore::new(folder.path()));
    let owner = Arc::new(Identity::conversation("c1"));
    std::thread::scope(|scope| {
        for run in 0..8 {
            let turn = artifacts.turn(Arc::clone(&owner), &format!("run-{run}"));
            scope.spawn(move || {
                for call in 0..10 {
                    let content = format!("{run} {call}");
                    let kept = turn.keep(source("call_1"), content.as_bytes()).unwrap();
                    assert_eq!(kept.content().read(0..9).unwrap(), content.as_bytes());
                }
            });
        }
    });
    let live = artifacts.turn(owner, "later").live().unwrap();
    let mut digests: Vec<_> = live.iter().map(|entry| entry.digest).collect();
    digests.sort_unstable();
    digests.dedup();
    assert_eq!((live.len(), digests.len()), (80, 80));
}

#[test]
fn thousands_of_artifacts_of_one_turn_are_told_apart() {
    let turn = turn();
    for n in 0..3_000 {
        keep_as(&turn, if n % 2 == 0 { "call_1" } else { "call_2" }, n.to_string());
    }
    assert_eq!(turn.live().unwrap().len(), 3_000);
    let last = turn.get("call_2.1500").unwrap();
    assert_eq!(last.content().read(0..10).unwrap(), b"2999");
}

proptest! {
    /// The redacted bytes are stored, regardless of the pieces.
    #[test]
    fn what_is_kept_is_what_redaction_leaves(
        parts in prop::collection::vec(
            prop::sample::select(&["hunter2hunter2", "hunter2", "é", "word ", "\n", "\u{fffd}"][..]),
            0..60,
        ),
        piece in 1_usize..40,
    ) {
        let content = parts.concat();
        let redactor = Redactor::new(["hunter2hunter2".to_owned()]);
        let turn = turn();
        let redact: Arc<dyn Redact> = Arc::new(redactor.clone());
        let mut writer = turn.writer(source("a"), Some(redact)).unwrap();
        content.as_bytes().chunks(piece).for_each(|piece| writer.write(piece));
        let artifact = writer.finish().unwrap();
        let expected = redactor.text(&content);
        prop_assert_eq!(artifact.content().read(0..u64::MAX).unwrap(), expected.as_bytes());
        prop_assert!(!expected.contains("hunter2hunter2"));
    }

    /// Invalid UTF-8 passes redaction unchanged.
    #[test]
    fn redaction_leaves_bytes_alone_that_are_no_text(
        content in prop::collection::vec(any::<u8>(), 0..300),
        piece in 1_usize..40,
    ) {
        let redact: Arc<dyn Redact> = Arc::new(Redactor::new(["hunter2hunter2".to_owned()]));
        let turn = turn();
        let mut writer = turn.writer(source("a"), Some(redact)).unwrap();
        content.chunks(piece).for_each(|piece| writer.write(piece));
        let artifact = writer.finish().unwrap();
        prop_assert_eq!(artifact.content().read(0..u64::MAX).unwrap(), content);
    }

    #[test]
    fn a_kept_text_comes_back_as_it_was(content in "(?s).{0,400}") {
        let turn = turn();
        let artifact = keep(&turn, &content);
        prop_assert_eq!(artifact.content().read(0..u64::MAX).unwrap(), content.as_bytes());
        prop_assert_eq!(artifact.entry().digest, toolcrib_core::Digest::of(&content));
    }
}
