//! Holds a store to what [`SpoolStore`] promises. It depends on no test runner: call it from a test,
//! and `unwrap` shows what is broken.
//!
//! ```
//! # use toolcrib_artifacts::{MemoryStore, conformance::check_spool_store};
//! check_spool_store(&MemoryStore::new())?;
//! # Ok::<(), toolcrib_artifacts::conformance::Violations>(())
//! ```

use std::{fmt, sync::Arc, thread};

use toolcrib_core::{
    CommitError, Digest, Identity, IfTaken, LineIndex, SpoolEntry, SpoolError, SpoolNote,
    SpoolStore, Spooled,
};
use uuid::Uuid;

/// What a store breaks of its contract, each in words. `Debug` is readable too.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Violations(Vec<String>);

impl Violations {
    /// Each, in the order in which they were found.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    fn unless(&mut self, holds: bool, clause: &str) {
        if !holds {
            self.0.push(clause.to_owned());
        }
    }
}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the store breaks its contract:")?;
        self.0.iter().try_for_each(|violation| write!(f, "\n- {violation}"))
    }
}

impl fmt::Debug for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Violations {}

/// How many threads write at the same time, and how much each.
const THREADS: usize = 8;
const EACH: usize = 10;

/// Holds a store to its contract. It works under owners of its own, and leaves what it could not remove.
///
/// # Errors
/// All that is broken.
pub fn check_spool_store(store: &dyn SpoolStore) -> Result<(), Violations> {
    let mut broken = Violations::default();
    contents(store, &mut broken);
    commits(store, &mut broken);
    owners(store, &mut broken);
    removals(store, &mut broken);
    at_the_same_time(store, &mut broken);
    if broken.0.is_empty() { Ok(()) } else { Err(broken) }
}

/// Whatever is written is read.
fn contents(store: &dyn SpoolStore, broken: &mut Violations) {
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
        let kept = keep(store, &owner, id, content, IfTaken::Fail);
        let Ok(entry) = kept else {
            broken.0.push(format!("{id}: it must be kept, and was not: {kept:?}"));
            continue;
        };
        let opened = store.open(&owner, id);
        let Ok(spooled) = opened else {
            broken.0.push(format!("{id}: it must be found, and was not: {opened:?}"));
            continue;
        };
        let mut clause = |holds, what| broken.unless(holds, &format!("{id}: {what}"));
        clause(spooled.entry == entry, "what is opened must be what was committed");
        clause(entry.bytes == content.len() as u64, "its length must be that of what was written");
        clause(entry.digest == Digest::of(content), "its digest must be that of its bytes");
        clause(entry.note == note(), "what was said of it must stay with it");
        clause(
            *spooled.lines == LineIndex::of(content),
            "its line index must be that of its bytes",
        );
        clause(entry.lines == spooled.lines.lines(), "its lines must be those of its index");
        clause(read(&spooled).as_deref() == Ok(content), "its bytes must come back");
        let mut buffer = [0; 64];
        let ranges = [0, 1, 63, 64, 65_536, 299_999, 300_000, u64::MAX];
        let in_ranges = ranges.iter().all(|offset| {
            let from = usize::try_from(*offset).unwrap_or(usize::MAX).min(content.len());
            let expected = content.get(from..).unwrap_or_default();
            let expected = expected.get(..buffer.len()).unwrap_or(expected);
            let count = spooled.reader.read_at(*offset, &mut buffer);
            count.is_ok_and(|count| buffer.get(..count) == Some(expected))
        });
        clause(in_ranges, "a range must have the bytes of that range, fewer only at the end");
    }
    let listed = store.entries(&owner).unwrap_or_default();
    let ids: Vec<_> = listed.iter().map(|entry| &*entry.id).collect();
    broken
        .unless(ids == all.map(|(id, _)| id), "entries must be listed in the order they were made");
    let unknown = store.open(&owner, "never");
    let is_unknown = matches!(&unknown, Err(SpoolError::Unknown { id }) if **id == *"never");
    broken.unless(is_unknown, "an id that was never kept must be unknown");
}

/// A commit is all or nothing.
fn commits(store: &dyn SpoolStore, broken: &mut Violations) {
    let owner = owner();
    match store.create(&owner) {
        Ok(mut writer) => {
            let written = writer.write(b"half").is_ok();
            let unseen = store.entries(&owner).is_ok_and(|entries| entries.is_empty());
            broken.unless(written && unseen, "what is not committed must not be seen");
        }
        Err(error) => broken.0.push(format!("it must be possible to write: {error}")),
    }
    let unseen = store.entries(&owner).is_ok_and(|entries| entries.is_empty());
    broken.unless(unseen, "a writer that is dropped must leave nothing behind");
    let kept = keep(store, &owner, "one", b"old", IfTaken::Fail).is_ok();
    let before = store.open(&owner, "one");
    let taken = keep(store, &owner, "one", b"new", IfTaken::Fail);
    let is_taken = kept && matches!(&taken, Err(CommitError::Taken { id, .. }) if **id == *"one");
    broken.unless(is_taken, "a commit under an id that is taken must fail as taken");
    let holds = store.open(&owner, "one").is_ok_and(|kept| read(&kept).as_deref() == Ok(b"old"));
    broken.unless(holds, "a commit that fails must change nothing");
    let under_another = match taken {
        Err(CommitError::Taken { writer, .. }) => {
            writer.commit("two", note(), IfTaken::Fail).is_ok()
        }
        _ => false,
    };
    let whole = store.open(&owner, "two").is_ok_and(|kept| read(&kept).as_deref() == Ok(b"new"));
    let moved = under_another && whole && store.remove(&owner, "two").is_ok();
    broken.unless(moved, "what was written must be kept under another id when the first is taken");
    let replaced = keep(store, &owner, "one", b"new and longer", IfTaken::Replace).is_ok()
        && store
            .open(&owner, "one")
            .is_ok_and(|kept| read(&kept).as_deref() == Ok(b"new and longer"));
    broken.unless(replaced, "a commit that replaces must take the id's place");
    let one = store.entries(&owner).is_ok_and(|entries| entries.len() == 1);
    broken.unless(one, "an id that is written again must be listed once");
    let holds = before.is_ok_and(|before| read(&before).as_deref() == Ok(b"old"));
    broken.unless(holds, "what was opened before must still be what it was");
}

/// Nobody finds what is another's.
fn owners(store: &dyn SpoolStore, broken: &mut Violations) {
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
    let kept = keep(store, &mine, "secret", b"mine", IfTaken::Fail).is_ok();
    for other in &others {
        let unknown = matches!(store.open(other, "secret"), Err(SpoolError::Unknown { .. }));
        let unlisted = store.entries(other).is_ok_and(|entries| entries.is_empty());
        let unmoved = store.remove(other, "secret").is_ok();
        broken.unless(
            kept && unknown && unlisted && unmoved,
            &format!("what one owner keeps must be unknown to {other:?}"),
        );
    }
    let holds = store.open(&mine, "secret").is_ok_and(|kept| read(&kept).as_deref() == Ok(b"mine"));
    broken.unless(holds, "what one owner keeps must not be removed by another");
}

/// What is removed is gone, and nothing else.
fn removals(store: &dyn SpoolStore, broken: &mut Violations) {
    let owner = owner();
    let kept =
        ["a", "b"].iter().all(|id| keep(store, &owner, id, b"the same", IfTaken::Fail).is_ok());
    let before = store.open(&owner, "a");
    let removed = store.remove(&owner, "a").is_ok()
        && matches!(store.open(&owner, "a"), Err(SpoolError::Unknown { .. }));
    broken.unless(kept && removed, "what is removed must be unknown");
    let holds = before.is_ok_and(|before| read(&before).as_deref() == Ok(b"the same"));
    broken.unless(holds, "what was opened before it was removed must still be readable");
    let holds = store.open(&owner, "b").is_ok_and(|kept| read(&kept).as_deref() == Ok(b"the same"));
    broken.unless(holds, "another id with the same bytes must stay");
    broken.unless(store.remove(&owner, "a").is_ok(), "to remove what is not there must be fine");

    let other = self::owner();
    let kept = keep(store, &other, "b", b"the same", IfTaken::Fail).is_ok();
    let forgotten = store.forget(&owner).is_ok()
        && store.entries(&owner).is_ok_and(|entries| entries.is_empty())
        && matches!(store.open(&owner, "b"), Err(SpoolError::Unknown { .. }));
    broken.unless(forgotten, "nothing may be left of an owner who is forgotten");
    let holds = store.open(&other, "b").is_ok_and(|kept| read(&kept).as_deref() == Ok(b"the same"));
    broken.unless(kept && holds, "what others have must stay when an owner is forgotten");
    broken.unless(store.forget(&owner).is_ok(), "to forget an owner who has nothing must be fine");
    let begun_anew = keep(store, &owner, "b", b"new", IfTaken::Fail).is_ok();
    broken.unless(begun_anew, "an owner who was forgotten may keep something again");
}

/// Many write at once.
fn at_the_same_time(store: &dyn SpoolStore, broken: &mut Violations) {
    let owner = owner();
    let won: usize = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let owner = &owner;
                scope.spawn(move || {
                    for n in 0..EACH {
                        let content = format!("{thread} {n}").repeat(100);
                        let id = format!("{thread}-{n}");
                        let _ = keep(store, owner, &id, content.as_bytes(), IfTaken::Fail);
                    }
                    let content = thread.to_string();
                    keep(store, owner, "race", content.as_bytes(), IfTaken::Fail).is_ok()
                })
            })
            .collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).filter(|won| *won).count()
    });
    broken.unless(won == 1, "of writers that want one id at the same time, one must get it");
    let whole =
        (0..THREADS).flat_map(|thread| (0..EACH).map(move |n| (thread, n))).all(|(thread, n)| {
            let expected = format!("{thread} {n}").repeat(100);
            store
                .open(&owner, &format!("{thread}-{n}"))
                .is_ok_and(|kept| read(&kept).as_deref() == Ok(expected.as_bytes()))
        });
    broken.unless(whole, "what many write at the same time must all be there, each in whole");
}

fn owner() -> Identity {
    Identity::conversation(Uuid::new_v4().to_string())
}

fn note() -> SpoolNote {
    SpoolNote {
        kind: "text".into(),
        tool: "conformance".into(),
        call_id: "call \u{fc}\n\"1\"".into(),
        run_id: "run".into(),
        untrusted: true,
        chars: 0,
    }
}

/// Written in pieces.
fn keep(
    store: &dyn SpoolStore,
    owner: &Identity,
    id: &str,
    content: &[u8],
    if_taken: IfTaken,
) -> Result<SpoolEntry, CommitError> {
    let mut writer = store.create(owner)?;
    for piece in content.chunks(70_000) {
        writer.write(piece)?;
    }
    writer.commit(id, note(), if_taken)
}

/// All bytes, read in pieces.
fn read(spooled: &Spooled) -> Result<Vec<u8>, Arc<str>> {
    let mut all = Vec::new();
    let mut buffer = vec![0; 50_000];
    loop {
        let count = spooled.reader.read_at(all.len() as u64, &mut buffer);
        match count.map_err(|error| Arc::<str>::from(error.to_string()))? {
            0 => return Ok(all),
            count => all.extend_from_slice(buffer.get(..count).unwrap_or_default()),
        }
    }
}
