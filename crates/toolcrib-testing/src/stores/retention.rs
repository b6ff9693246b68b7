//! Sessions are removed by age and size.

use std::{thread, time::Duration};

use toolcrib_core::{
    Message, SessionOwner, SessionRecord, SessionRetention, SessionStore, SessionStoreError,
};

use super::{LONG, StoreViolations, began, ended, leased, owner, write};

/// Longer than the clock's resolution, so that sessions have an order.
const TICK: Duration = Duration::from_millis(5);

pub(super) fn check(
    store: &dyn SessionStore,
    broken: &mut StoreViolations,
) -> Result<(), SessionStoreError> {
    let forever = SessionRetention { keep_for: 24 * 365 * LONG, max_bytes: u64::MAX };
    let (mine, other) = (owner(), owner());
    let ids = [filled(store, &mine)?, filled(store, &other)?, filled(store, &mine)?];
    let is_there = |owner: &SessionOwner, id: &str| store.find(owner, id).is_ok();
    store.prune(&forever)?;
    let [oldest, middle, newest] = &ids;
    let all = is_there(&mine, oldest) && is_there(&other, middle) && is_there(&mine, newest);
    broken.unless(all, "sessions within the retention must stay");

    let size = store.find(&mine, newest)?.bytes;
    let removed = store.prune(&SessionRetention { max_bytes: 2 * size, ..forever })?;
    let satisfied = !is_there(&mine, oldest) && is_there(&other, middle) && is_there(&mine, newest);
    broken.unless(satisfied, "beyond the size, the least recently used must be removed");
    broken.unless(removed >= 1, "the number of removed sessions must be returned");

    let lease = store.acquire(&other, middle, LONG)?;
    thread::sleep(TICK);
    store.prune(&SessionRetention { keep_for: Duration::ZERO, ..forever })?;
    broken.unless(!is_there(&mine, newest), "expired sessions must be removed");
    broken.unless(is_there(&other, middle), "a leased session must stay");
    store.prune(&SessionRetention { max_bytes: 0, ..forever })?;
    broken.unless(is_there(&other, middle), "a leased session must stay, whatever its size");
    store.release(&lease)
}

/// A session with a message.
fn filled(
    store: &dyn SessionStore,
    owner: &SessionOwner,
) -> Result<std::sync::Arc<str>, SessionStoreError> {
    let (info, lease) = leased(store, owner)?;
    let message = Message::user("x".repeat(1_000));
    write(store, &lease, &[began(), SessionRecord::Message(message.clone()), ended()])?;
    store.release(&lease)?;
    thread::sleep(TICK);
    Ok(info.id)
}
