//! Submitted messages, open turns without a process, and cancellation: each is found by one claim.

use std::{collections::HashSet, sync::Arc, thread, time::Duration};

use toolcrib_core::{
    ClaimedSession, MAX_SUBMITTED, Message, SessionLease, SessionOwner, SessionRecord,
    SessionRetention, SessionStore, SessionStoreError,
};

use super::{LONG, StoreViolations, began, ended, leased, new, owner, write};

/// The number of sessions that are claimed at the same time, and of the threads that do.
const SESSIONS: usize = 12;
const THREADS: usize = 6;

pub(super) fn check(
    store: &dyn SessionStore,
    broken: &mut StoreViolations,
) -> Result<(), SessionStoreError> {
    submitted(store, broken)?;
    in_order(store, broken)?;
    refused(store, broken)?;
    interrupted(store, broken)?;
    cancelled(store, broken)?;
    at_the_same_time(store, broken)
}

fn claim(
    store: &dyn SessionStore,
    owner: &SessionOwner,
) -> Result<Option<ClaimedSession>, SessionStoreError> {
    store.claim(Some(owner), LONG)
}

/// The number and the text of the message of a claim.
fn message(claimed: Option<&ClaimedSession>) -> Option<(u64, &str)> {
    let submitted = claimed?.submitted.as_ref()?;
    Some((submitted.number, &*submitted.text))
}

fn begins(
    store: &dyn SessionStore,
    lease: &SessionLease,
    number: u64,
) -> Result<(), SessionStoreError> {
    let message = SessionRecord::Message(Message::user("go"));
    write(store, lease, &[SessionRecord::Taken(number), began(), message])
}

fn submitted(
    store: &dyn SessionStore,
    broken: &mut StoreViolations,
) -> Result<(), SessionStoreError> {
    let owner = owner();
    broken.unless(claim(store, &owner)?.is_none(), "an owner without work must have no claim");
    let info = store.create(&new(&owner, None))?;
    store.submit(&owner, &info.id, "first\0\n\"é")?;
    store.submit(&owner, &info.id, "second")?;
    let info = store.find(&owner, &info.id)?;
    let is_listed = store.list(&owner, 9)?.contains(&info);
    broken
        .unless(info.submitted == 2 && is_listed, "submitted messages must be counted and listed");
    let all = SessionRetention { keep_for: Duration::ZERO, max_bytes: 0 };
    thread::sleep(Duration::from_millis(2));
    store.prune(&all)?;
    broken.unless(
        store.find(&owner, &info.id).is_ok(),
        "a session with a message must not be pruned",
    );
    let other = claim(store, &super::owner())?;
    broken.unless(other.is_none(), "a session of one owner must not be claimed for another");

    let first = claim(store, &owner)?;
    let is_first = message(first.as_ref()) == Some((1, "first\0\n\"é"));
    broken.unless(is_first, "a submitted message must be claimed as it was written");
    let Some(ClaimedSession { lease, info: claimed, is_cancelled, .. }) = first else {
        return Ok(());
    };
    broken.unless(claimed == info && !is_cancelled, "a claim must return its session");
    broken.unless(claim(store, &owner)?.is_none(), "a claimed session must not be claimed again");
    let out_of_order =
        matches!(begins(store, &lease, 2), Err(SessionStoreError::OutOfOrder { .. }));
    broken.unless(out_of_order, "a turn must not take a message before its time");
    store.renew(&lease, Duration::ZERO)?;
    let again = claim(store, &owner)?;
    let is_first = message(again.as_ref()).is_some_and(|(number, _)| number == 1);
    broken.unless(is_first, "a message whose turn has not begun must be claimed again");
    let Some(ClaimedSession { lease, .. }) = again else { return Ok(()) };
    begins(store, &lease, 1)?;
    write(store, &lease, &[ended()])?;
    store.release(&lease)?;
    let second = claim(store, &owner)?;
    let is_second = message(second.as_ref()) == Some((2, "second"));
    broken.unless(is_second, "a message that was taken must not be claimed again");
    let Some(ClaimedSession { lease, .. }) = second else { return Ok(()) };
    begins(store, &lease, 2)?;
    write(store, &lease, &[ended()])?;
    store.release(&lease)?;
    broken.unless(claim(store, &owner)?.is_none(), "a session without work must not be claimed");
    Ok(())
}

/// A second message does not move a session behind those that were submitted to in the meantime.
fn in_order(
    store: &dyn SessionStore,
    broken: &mut StoreViolations,
) -> Result<(), SessionStoreError> {
    let owner = owner();
    let (first, other) = (store.create(&new(&owner, None))?, store.create(&new(&owner, None))?);
    for id in [&first.id, &other.id, &first.id] {
        thread::sleep(Duration::from_millis(2));
        store.submit(&owner, id, "go")?;
    }
    let claimed = claim(store, &owner)?;
    let is_first = claimed.is_some_and(|claimed| claimed.info.id == first.id);
    broken.unless(is_first, "the session whose work has waited longest must be claimed first");
    store.cancel(&owner, &first.id)?;
    store.cancel(&owner, &other.id).map(drop)
}

fn refused(
    store: &dyn SessionStore,
    broken: &mut StoreViolations,
) -> Result<(), SessionStoreError> {
    let owner = owner();
    let info = store.create(&new(&owner, None))?;
    let unknown = |result: Result<(), SessionStoreError>| {
        matches!(result, Err(SessionStoreError::Unknown { .. }))
    };
    let others = super::owner();
    let is_unknown = unknown(store.submit(&others, &info.id, "go"))
        && unknown(store.cancel(&others, &info.id).map(drop));
    broken.unless(is_unknown, "a session must take messages and cancellations of its owner only");
    for _ in 0..MAX_SUBMITTED {
        store.submit(&owner, &info.id, "go")?;
    }
    let refused = store.submit(&owner, &info.id, "go");
    let is_refused = matches!(refused, Err(SessionStoreError::TooManySubmitted { .. }));
    broken.unless(is_refused, "a session must not take more messages than the limit");
    store.cancel(&owner, &info.id).map(drop)
}

/// An open turn is claimed when its lease has expired, and not while it waits.
fn interrupted(
    store: &dyn SessionStore,
    broken: &mut StoreViolations,
) -> Result<(), SessionStoreError> {
    let owner = owner();
    let (info, lease) = leased(store, &owner)?;
    write(store, &lease, &[began()])?;
    store.submit(&owner, &info.id, "later")?;
    broken.unless(claim(store, &owner)?.is_none(), "a turn with a lease must not be claimed");
    store.renew(&lease, Duration::ZERO)?;
    let found = claim(store, &owner)?;
    let is_open = found.as_ref().is_some_and(|found| found.submitted.is_none());
    broken.unless(is_open, "a turn whose lease has expired must be claimed before a message");
    let Some(ClaimedSession { lease: taken, .. }) = found else { return Ok(()) };
    let is_lost =
        matches!(write(store, &lease, &[ended()]), Err(SessionStoreError::LeaseLost { .. }));
    broken.unless(is_lost, "a claim must end the expired lease");
    store.release(&taken)?;
    broken.unless(claim(store, &owner)?.is_none(), "a turn whose lease was released must wait");
    store.cancel(&owner, &info.id).map(drop)
}

fn cancelled(
    store: &dyn SessionStore,
    broken: &mut StoreViolations,
) -> Result<(), SessionStoreError> {
    let owner = owner();
    let (info, lease) = leased(store, &owner)?;
    broken.unless(!store.cancel(&owner, &info.id)?, "without work there is nothing to cancel");
    store.submit(&owner, &info.id, "go")?;
    broken.unless(store.cancel(&owner, &info.id)?, "a submitted message can be cancelled");
    let gone = begins(store, &lease, 1).is_err() && store.find(&owner, &info.id)?.submitted == 0;
    broken.unless(gone, "a cancelled message must not be run");
    write(store, &lease, &[began()])?;
    broken.unless(!store.renew(&lease, LONG)?, "a new turn must not be cancelled");
    broken.unless(store.cancel(&owner, &info.id)?, "a running turn can be cancelled");
    broken.unless(store.renew(&lease, LONG)?, "a renewal must tell of a cancellation");
    store.release(&lease)?;
    let found = claim(store, &owner)?;
    let is_told = found.as_ref().is_some_and(|found| found.is_cancelled);
    broken.unless(is_told, "a turn that waits and is cancelled must be claimed");
    let Some(ClaimedSession { lease, .. }) = found else { return Ok(()) };
    write(store, &lease, &[ended()])?;
    broken.unless(!store.renew(&lease, LONG)?, "a cancellation must end with its turn");
    write(store, &lease, &[began()])?;
    broken.unless(!store.renew(&lease, LONG)?, "a cancellation must be of one turn");
    store.release(&lease)
}

fn at_the_same_time(
    store: &dyn SessionStore,
    broken: &mut StoreViolations,
) -> Result<(), SessionStoreError> {
    let owner = owner();
    for _ in 0..SESSIONS {
        let info = store.create(&new(&owner, None))?;
        store.submit(&owner, &info.id, "go")?;
    }
    let claimed: Vec<Arc<str>> = thread::scope(|scope| {
        let all = || {
            let next = || claim(store, &owner).ok().flatten();
            // One more than there are: a store that claims one twice ends too.
            std::iter::from_fn(next)
                .take(SESSIONS + 1)
                .map(|found| found.info.id)
                .collect::<Vec<_>>()
        };
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(all)).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).flatten().collect()
    });
    let different: HashSet<_> = claimed.iter().collect();
    let is_once = different.len() == SESSIONS && claimed.len() == SESSIONS;
    broken.unless(is_once, "each of several sessions must be claimed once");
    Ok(())
}
