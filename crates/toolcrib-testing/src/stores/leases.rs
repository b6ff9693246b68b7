//! A session has one writer.

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use toolcrib_core::{SessionLease, SessionStore, SessionStoreError};

use super::{LONG, StoreViolations, began, ended, leased, new, owner, write};

/// A lease that expires during the suite.
const SHORT: Duration = Duration::from_millis(20);

/// The limit of a wait for its end, on a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The number of concurrent claims.
const THREADS: usize = 8;

pub(super) fn check(
    store: &dyn SessionStore,
    broken: &mut StoreViolations,
) -> Result<(), SessionStoreError> {
    exclusion(store, broken)?;
    expiry(store, broken)?;
    at_the_same_time(store, broken)
}

fn exclusion(
    store: &dyn SessionStore,
    broken: &mut StoreViolations,
) -> Result<(), SessionStoreError> {
    let owner = owner();
    let (info, lease) = leased(store, &owner)?;
    let is_in_use = |result: Result<(), SessionStoreError>| {
        matches!(result, Err(SessionStoreError::InUse { .. }))
    };
    let second = store.acquire(&owner, &info.id, LONG).map(drop);
    broken.unless(is_in_use(second), "a leased session must not be leased again");
    let removal = store.remove(&owner, &info.id);
    broken.unless(is_in_use(removal), "a leased session must not be removed");
    broken.unless(store.read(&owner, &info.id).is_ok(), "a leased session must be readable");
    let forged = SessionLease { token: "forged".into(), ..lease.clone() };
    let lost = |result: Result<(), SessionStoreError>| {
        matches!(result, Err(SessionStoreError::LeaseLost { .. }))
    };
    broken.unless(lost(write(store, &forged, &[began()])), "a write must require the lease");
    let renewed = store.renew(&forged, LONG).map(drop);
    broken.unless(lost(renewed), "a renewal must require the lease");
    store.release(&forged)?;
    let kept = write(store, &lease, &[began(), ended()]);
    broken.unless(kept.is_ok(), "a lease must not be ended by another");
    store.release(&lease)?;
    broken.unless(lost(write(store, &lease, &[began()])), "a released lease must permit no write");
    let again = store.acquire(&owner, &info.id, LONG);
    broken.unless(again.is_ok(), "a released session must be free");
    Ok(())
}

fn expiry(store: &dyn SessionStore, broken: &mut StoreViolations) -> Result<(), SessionStoreError> {
    let owner = owner();
    let info = store.create(&new(&owner, None))?;
    let expiring = store.acquire(&owner, &info.id, SHORT)?;
    thread::sleep(2 * SHORT);
    let late = store.renew(&expiring, SHORT);
    broken.unless(late.is_ok(), "an expired lease that was not taken over must be renewable");
    let start = Instant::now();
    let taken = loop {
        match store.acquire(&owner, &info.id, LONG) {
            Err(SessionStoreError::InUse { .. }) if start.elapsed() < PATIENCE => {
                thread::sleep(SHORT);
            }
            result => break result,
        }
    };
    broken.unless(taken.is_ok(), "a session must be free once its lease has expired");
    let lost =
        matches!(write(store, &expiring, &[began()]), Err(SessionStoreError::LeaseLost { .. }))
            && matches!(store.renew(&expiring, LONG), Err(SessionStoreError::LeaseLost { .. }));
    broken.unless(lost, "a lease that was taken over must permit nothing");
    if let Ok(lease) = taken {
        broken.unless(write(store, &lease, &[began()]).is_ok(), "the new lease must permit writes");
    }
    Ok(())
}

fn at_the_same_time(
    store: &dyn SessionStore,
    broken: &mut StoreViolations,
) -> Result<(), SessionStoreError> {
    let owner = owner();
    let info = store.create(&new(&owner, None))?;
    let won = thread::scope(|scope| {
        let claims: Vec<_> = (0..THREADS)
            .map(|_| {
                let (owner, id) = (&owner, Arc::clone(&info.id));
                scope.spawn(move || store.acquire(owner, &id, LONG).is_ok())
            })
            .collect();
        claims.into_iter().filter_map(|claim| claim.join().ok()).filter(|won| *won).count()
    });
    broken.unless(won == 1, "exactly one of several concurrent claims must get the lease");
    let created = thread::scope(|scope| {
        let creations: Vec<_> = (0..THREADS)
            .map(|_| {
                let owner = &owner;
                scope.spawn(move || store.create(&new(owner, Some("race"))).is_ok())
            })
            .collect();
        creations.into_iter().filter_map(|one| one.join().ok()).filter(|created| *created).count()
    });
    broken.unless(created == 1, "exactly one of several concurrent creations must get the name");
    Ok(())
}
