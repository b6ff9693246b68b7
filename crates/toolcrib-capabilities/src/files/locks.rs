//! Locks of paths, for a comparison and the change after it.

use std::{
    hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher},
    path::Path,
};

use parking_lot::{Mutex, MutexGuard};

/// Locks for the comparison and the write after it, of all folders of the process. Two paths may
/// share a lock; one path always has the same.
static LOCKS: [Mutex<()>; 64] = [const { Mutex::new(()) }; 64];

/// The lock of a resolved path.
pub(super) fn lock(path: &Path) -> MutexGuard<'static, ()> {
    lock_at(place_of(path))
}

/// The locks of two resolved paths, in an order that is the same for all callers; one if they share it.
pub(super) fn lock_both(
    one: &Path,
    other: &Path,
) -> (MutexGuard<'static, ()>, Option<MutexGuard<'static, ()>>) {
    let (one, other) = (place_of(one), place_of(other));
    (lock_at(one.min(other)), (one != other).then(|| lock_at(one.max(other))))
}

fn place_of(path: &Path) -> usize {
    let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(path);
    usize::try_from(hash % LOCKS.len() as u64).unwrap_or_default()
}

fn lock_at(place: usize) -> MutexGuard<'static, ()> {
    let [first, ..] = &LOCKS;
    LOCKS.get(place).unwrap_or(first).lock()
}
