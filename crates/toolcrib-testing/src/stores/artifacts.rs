//! Artifacts are read as they were written, by their owner only.

use std::{sync::Arc, thread};

use toolcrib_core::{
    ArtifactEntry, ArtifactMeta, ArtifactStore, ArtifactStoreError, CommitError, Digest, Identity,
    LineIndex, OnConflict, StoredBytes, TextOrigin,
};
use uuid::Uuid;

use super::StoreViolations;

/// The number of concurrent writers, and the number of artifacts of each.
const THREADS: usize = 8;
const EACH: usize = 10;

/// Tests a store of artifacts. It uses separate owners, and leaves only artifacts that it could not
/// remove.
///
/// # Errors
/// All violations.
pub fn check_artifact_store(store: &dyn ArtifactStore) -> Result<(), StoreViolations> {
    let mut broken = StoreViolations::default();
    contents(store, &mut broken);
    commits(store, &mut broken);
    owners(store, &mut broken);
    removals(store, &mut broken);
    at_the_same_time(store, &mut broken);
    broken.into_result()
}

/// Written content is readable.
fn contents(store: &dyn ArtifactStore, broken: &mut StoreViolations) {
    let owner = owner();
    let large: Vec<u8> = (0..300_000_u32).map(|n| (n % 251) as u8).collect();
    let all: [(&str, &[u8]); 7] = [
        ("empty", b""),
        ("text", b"a\nb\n"),
        ("crlf", b"a\r\nb\r\n"),
        ("no-feed", "ende ohne \u{fc}".as_bytes()),
        ("binary", b"\0\xff\xfe\n\0"),
        ("../../etc/passwd", b"a path is an id as any other"),
        ("large", &large),
    ];
    for (id, content) in all {
        let kept = keep(store, &owner, id, content, OnConflict::Fail);
        let Ok(entry) = kept else {
            broken.unless(false, &format!("{id}: it must be stored, but was not: {kept:?}"));
            continue;
        };
        let opened = store.open(&owner, id);
        let Ok(stored) = opened else {
            broken.unless(false, &format!("{id}: it must be found, but was not: {opened:?}"));
            continue;
        };
        let mut clause = |satisfied, what| broken.unless(satisfied, &format!("{id}: {what}"));
        clause(stored.entry == entry, "the opened artifact must equal the committed one");
        clause(entry.bytes == content.len() as u64, "its length must equal the written length");
        clause(entry.digest == Digest::of(content), "its digest must match its bytes");
        clause(entry.note == note(), "its metadata must be stored with it");
        clause(*stored.lines == LineIndex::of(content), "its line index must match its bytes");
        clause(entry.lines == stored.lines.lines(), "its number of lines must match its index");
        clause(read(&stored).as_deref() == Ok(content), "its bytes must be read back unchanged");
        let mut buffer = [0; 64];
        let ranges = [0, 1, 63, 64, 65_536, 299_999, 300_000, u64::MAX];
        let in_ranges = ranges.iter().all(|offset| {
            let from = usize::try_from(*offset).unwrap_or(usize::MAX).min(content.len());
            let expected = content.get(from..).unwrap_or_default();
            let expected = expected.get(..buffer.len()).unwrap_or(expected);
            let count = stored.reader.read_at(*offset, &mut buffer);
            count.is_ok_and(|count| buffer.get(..count) == Some(expected))
        });
        clause(in_ranges, "a range must have the bytes of that range, fewer only at the end");
    }
    let listed = store.entries(&owner).unwrap_or_default();
    let ids: Vec<_> = listed.iter().map(|entry| &*entry.id).collect();
    broken
        .unless(ids == all.map(|(id, _)| id), "entries must be listed in the order they were made");
    let unknown = store.open(&owner, "never");
    let is_unknown =
        matches!(&unknown, Err(ArtifactStoreError::Unknown { id }) if **id == *"never");
    broken.unless(is_unknown, "an id that was never stored must be unknown");
}

/// A commit is atomic.
fn commits(store: &dyn ArtifactStore, broken: &mut StoreViolations) {
    let owner = owner();
    match store.create(&owner) {
        Ok(mut writer) => {
            let written = writer.write(b"half").is_ok();
            let unseen = store.entries(&owner).is_ok_and(|entries| entries.is_empty());
            broken.unless(written && unseen, "uncommitted content must not be visible");
        }
        Err(error) => broken.unless(false, &format!("it must be possible to write: {error}")),
    }
    let unseen = store.entries(&owner).is_ok_and(|entries| entries.is_empty());
    broken.unless(unseen, "a dropped writer must leave no content");
    let kept = keep(store, &owner, "one", b"old", OnConflict::Fail).is_ok();
    let before = store.open(&owner, "one");
    let taken = keep(store, &owner, "one", b"new", OnConflict::Fail);
    let is_taken = kept && matches!(&taken, Err(CommitError::Taken { id, .. }) if **id == *"one");
    broken.unless(is_taken, "a commit under a taken id must fail with `Taken`");
    let satisfied =
        store.open(&owner, "one").is_ok_and(|kept| read(&kept).as_deref() == Ok(b"old"));
    broken.unless(satisfied, "a commit that fails must change nothing");
    let under_another = match taken {
        Err(CommitError::Taken { writer, .. }) => {
            writer.commit("two", note(), OnConflict::Fail).is_ok()
        }
        _ => false,
    };
    let whole = store.open(&owner, "two").is_ok_and(|kept| read(&kept).as_deref() == Ok(b"new"));
    let moved = under_another && whole && store.remove(&owner, "two").is_ok();
    broken.unless(moved, "the content must be committed under another id if the first is taken");
    let replaced = keep(store, &owner, "one", b"new and longer", OnConflict::Replace).is_ok()
        && store
            .open(&owner, "one")
            .is_ok_and(|kept| read(&kept).as_deref() == Ok(b"new and longer"));
    broken.unless(replaced, "a replacing commit must replace the content of the id");
    let one = store.entries(&owner).is_ok_and(|entries| entries.len() == 1);
    broken.unless(one, "an overwritten id must be listed once");
    let satisfied = before.is_ok_and(|before| read(&before).as_deref() == Ok(b"old"));
    broken.unless(satisfied, "content opened before must stay unchanged");
}

/// Owners are isolated.
fn owners(store: &dyn ArtifactStore, broken: &mut StoreViolations) {
    let mine = Identity {
        tenant: Some("t".into()),
        principal: Some("p".into()),
        conversation: Uuid::new_v4().to_string().into(),
    };
    let others = [
        Identity { tenant: None, ..mine.clone() },
        Identity { tenant: Some("u".into()), ..mine.clone() },
        Identity { principal: None, ..mine.clone() },
        Identity { principal: Some("q".into()), ..mine.clone() },
        Identity { tenant: Some("p".into()), principal: Some("t".into()), ..mine.clone() },
        Identity { conversation: Uuid::new_v4().to_string().into(), ..mine.clone() },
    ];
    let kept = keep(store, &mine, "secret", b"mine", OnConflict::Fail).is_ok();
    for other in &others {
        let unknown =
            matches!(store.open(other, "secret"), Err(ArtifactStoreError::Unknown { .. }));
        let unlisted = store.entries(other).is_ok_and(|entries| entries.is_empty());
        let unmoved = store.remove(other, "secret").is_ok();
        broken.unless(
            kept && unknown && unlisted && unmoved,
            &format!("artifacts of one owner must be unknown to {other:?}"),
        );
    }
    let satisfied =
        store.open(&mine, "secret").is_ok_and(|kept| read(&kept).as_deref() == Ok(b"mine"));
    broken.unless(satisfied, "artifacts of one owner must not be removed by another");
}

/// Removal affects only the given id.
fn removals(store: &dyn ArtifactStore, broken: &mut StoreViolations) {
    let owner = owner();
    let kept =
        ["a", "b"].iter().all(|id| keep(store, &owner, id, b"the same", OnConflict::Fail).is_ok());
    let before = store.open(&owner, "a");
    let removed = store.remove(&owner, "a").is_ok()
        && matches!(store.open(&owner, "a"), Err(ArtifactStoreError::Unknown { .. }));
    broken.unless(kept && removed, "a removed artifact must be unknown");
    let satisfied = before.is_ok_and(|before| read(&before).as_deref() == Ok(b"the same"));
    broken.unless(satisfied, "content opened before its removal must stay readable");
    let satisfied =
        store.open(&owner, "b").is_ok_and(|kept| read(&kept).as_deref() == Ok(b"the same"));
    broken.unless(satisfied, "another id with the same bytes must stay");
    broken.unless(store.remove(&owner, "a").is_ok(), "removing a missing id must succeed");

    let other = self::owner();
    let kept = keep(store, &other, "b", b"the same", OnConflict::Fail).is_ok();
    let forgotten = store.forget(&owner).is_ok()
        && store.entries(&owner).is_ok_and(|entries| entries.is_empty())
        && matches!(store.open(&owner, "b"), Err(ArtifactStoreError::Unknown { .. }));
    broken.unless(forgotten, "forgetting an owner must remove all its artifacts");
    let satisfied =
        store.open(&other, "b").is_ok_and(|kept| read(&kept).as_deref() == Ok(b"the same"));
    broken.unless(kept && satisfied, "forgetting an owner must not affect other owners");
    broken
        .unless(store.forget(&owner).is_ok(), "forgetting an owner without artifacts must succeed");
    let begun_anew = keep(store, &owner, "b", b"new", OnConflict::Fail).is_ok();
    broken.unless(begun_anew, "an owner must be able to store artifacts after being forgotten");
}

/// Concurrent writes.
fn at_the_same_time(store: &dyn ArtifactStore, broken: &mut StoreViolations) {
    let owner = owner();
    let won: usize = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let owner = &owner;
                scope.spawn(move || {
                    for n in 0..EACH {
                        let content = format!("{thread} {n}").repeat(100);
                        let id = format!("{thread}-{n}");
                        let _ = keep(store, owner, &id, content.as_bytes(), OnConflict::Fail);
                    }
                    let content = thread.to_string();
                    keep(store, owner, "race", content.as_bytes(), OnConflict::Fail).is_ok()
                })
            })
            .collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).filter(|won| *won).count()
    });
    broken.unless(won == 1, "exactly one of several concurrent writers must get an id");
    let whole =
        (0..THREADS).flat_map(|thread| (0..EACH).map(move |n| (thread, n))).all(|(thread, n)| {
            let expected = format!("{thread} {n}").repeat(100);
            store
                .open(&owner, &format!("{thread}-{n}"))
                .is_ok_and(|kept| read(&kept).as_deref() == Ok(expected.as_bytes()))
        });
    broken.unless(whole, "all concurrent writes must be stored completely");
}

fn owner() -> Identity {
    Identity::conversation(Uuid::new_v4().to_string())
}

fn note() -> ArtifactMeta {
    ArtifactMeta {
        kind: "text".into(),
        tool: "conformance".into(),
        call_id: "call \u{fc}\n\"1\"".into(),
        turn_id: "run".into(),
        untrusted: true,
        text_origin: TextOrigin::Project,
        chars: 0,
    }
}

/// Writes in pieces.
fn keep(
    store: &dyn ArtifactStore,
    owner: &Identity,
    id: &str,
    content: &[u8],
    on_conflict: OnConflict,
) -> Result<ArtifactEntry, CommitError> {
    let mut writer = store.create(owner)?;
    for piece in content.chunks(70_000) {
        writer.write(piece)?;
    }
    writer.commit(id, note(), on_conflict)
}

/// Reads all bytes in pieces.
fn read(stored: &StoredBytes) -> Result<Vec<u8>, Arc<str>> {
    let mut all = Vec::new();
    let mut buffer = vec![0; 50_000];
    loop {
        let count = stored.reader.read_at(all.len() as u64, &mut buffer);
        match count.map_err(|error| Arc::<str>::from(error.to_string()))? {
            0 => return Ok(all),
            count => all.extend_from_slice(buffer.get(..count).unwrap_or_default()),
        }
    }
}
