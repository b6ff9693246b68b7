//! Machines whose clocks differ agree on one store.

use std::{sync::Arc, thread, time::Duration};

use toolcrib_core::{SessionStore, SessionStoreError};

use super::{LONG, StoreViolations, began, ended, new, outcome, owner, write};

/// A lease that is shorter than the difference of the clocks.
const SHORT: Duration = Duration::from_mins(1);

/// Tests a store that several machines share: `here` and `ahead` are one store, and the clock of the
/// machine that uses `ahead` is an hour ahead of the other, or more. A store for the processes of one
/// machine need not pass it.
///
/// # Errors
/// All violations.
pub fn check_machines(
    here: &dyn SessionStore,
    ahead: &dyn SessionStore,
) -> Result<(), StoreViolations> {
    let mut broken = StoreViolations::default();
    let parts =
        [("leases", leases(here, ahead, &mut broken)), ("order", order(here, ahead, &mut broken))];
    outcome(broken, parts)
}

fn leases(
    here: &dyn SessionStore,
    ahead: &dyn SessionStore,
    broken: &mut StoreViolations,
) -> Result<(), SessionStoreError> {
    let owner = owner();
    let info = here.create(&new(&owner, None))?;
    let lease = here.acquire(&owner, &info.id, SHORT)?;
    let second = ahead.acquire(&owner, &info.id, SHORT);
    let is_in_use = matches!(second, Err(SessionStoreError::InUse { .. }));
    broken.unless(is_in_use, "a machine whose clock is ahead must not take a lease over");
    here.release(&lease)?;
    let other = ahead.create(&new(&owner, None))?;
    let lease = ahead.acquire(&owner, &other.id, Duration::from_millis(1))?;
    thread::sleep(Duration::from_millis(20));
    let taken = here.acquire(&owner, &other.id, LONG);
    broken.unless(taken.is_ok(), "a lease of a machine whose clock is ahead must expire in time");
    ahead.release(&lease)
}

/// The order of sessions follows one clock.
fn order(
    here: &dyn SessionStore,
    ahead: &dyn SessionStore,
    broken: &mut StoreViolations,
) -> Result<(), SessionStoreError> {
    let owner = owner();
    let mut used: Vec<Arc<str>> = Vec::new();
    for store in [ahead, here] {
        let info = store.create(&new(&owner, None))?;
        let lease = store.acquire(&owner, &info.id, LONG)?;
        write(store, &lease, &[began(), ended()])?;
        store.release(&lease)?;
        thread::sleep(Duration::from_millis(5));
        used.insert(0, info.id);
    }
    let listed: Vec<_> = here.list(&owner, 10)?.into_iter().map(|info| info.id).collect();
    broken.unless(listed == used, "sessions of all machines must be listed by one clock");
    Ok(())
}
