//! Writes are numbered, and a store that has lost some says so.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

use toolcrib_core::{Message, SessionRecord, SessionStore, SessionStoreError};

use super::{LONG, StoreViolations, began, leased, new, owner};

/// The number of concurrent writers, and the number of writes of each.
const THREADS: usize = 8;
const EACH: usize = 10;

pub(super) fn check(
    store: &dyn SessionStore,
    broken: &mut StoreViolations,
) -> Result<(), SessionStoreError> {
    lost(store, broken)?;
    at_the_same_time(store, broken)
}

fn lost(store: &dyn SessionStore, broken: &mut StoreViolations) -> Result<(), SessionStoreError> {
    let owner = owner();
    let info = store.create(&new(&owner, None))?;
    let lease = store.acquire(&owner, &info.id, LONG)?;
    let first = store.write(&lease, 0, &[began()])?;
    let message = [SessionRecord::Message(Message::user("second"))];
    let second = store.write(&lease, first, &message)?;
    broken.unless((first, second) == (1, 2), "writes must be numbered from 1");
    let ahead = store.write(&lease, second + 1, &message);
    let is_told = matches!(ahead, Err(SessionStoreError::WritesLost { .. }));
    broken.unless(is_told, "a writer that has seen more writes than there are must learn it");
    let messages = store.read(&owner, &info.id)?.messages.len();
    broken.unless(messages == 1, "a write with a number that is ahead must change nothing");
    let next = store.write(&lease, second, &message)?;
    broken.unless(next == 3, "a write that is refused must have no number");
    store.release(&lease)?;
    let later = store.acquire(&owner, &info.id, LONG)?;
    let next = store.write(&later, 0, &message)?;
    broken.unless(next == 4, "the numbers must go on with the next lease");
    store.release(&later)
}

/// The calls of one response write at the same time.
fn at_the_same_time(
    store: &dyn SessionStore,
    broken: &mut StoreViolations,
) -> Result<(), SessionStoreError> {
    let owner = owner();
    let (info, lease) = leased(store, &owner)?;
    let seen = AtomicU64::new(store.write(&lease, 0, &[began()])?);
    let written: Vec<Result<u64, SessionStoreError>> = thread::scope(|scope| {
        let write = |_| {
            let message = SessionRecord::Message(Message::user("go"));
            let number = store.write(&lease, seen.load(Ordering::Acquire), &[message]);
            number.inspect(|number| {
                seen.fetch_max(*number, Ordering::AcqRel);
            })
        };
        let writer = |_| scope.spawn(move || (0..EACH).map(write).collect::<Vec<_>>());
        let writers: Vec<_> = (0..THREADS).map(writer).collect();
        writers.into_iter().filter_map(|writer| writer.join().ok()).flatten().collect()
    });
    let all = THREADS * EACH;
    let failed = written.iter().find_map(|one| one.as_ref().err());
    let error = failed.map(ToString::to_string).unwrap_or_default();
    broken.unless(failed.is_none(), &format!("concurrent writes must not fail: {error}"));
    let numbers: BTreeSet<_> = written.iter().flatten().copied().collect();
    let expected: BTreeSet<_> = (2..).take(all).collect();
    broken.unless(numbers == expected, "each of several concurrent writes must have its number");
    let messages = store.read(&owner, &info.id)?.messages.len();
    broken.unless(messages == all, "a store must keep each write that it has acknowledged");
    store.release(&lease)
}
