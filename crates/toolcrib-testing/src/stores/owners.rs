//! Owners are isolated, and names are unique for each.

use toolcrib_core::{SessionOwner, SessionStore, SessionStoreError};

use super::{LONG, StoreViolations, began, ended, leased, new, owner, write};

pub(super) fn check(
    store: &dyn SessionStore,
    broken: &mut StoreViolations,
) -> Result<(), SessionStoreError> {
    isolation(store, broken)?;
    names(store, broken)?;
    listing(store, broken)
}

fn isolation(
    store: &dyn SessionStore,
    broken: &mut StoreViolations,
) -> Result<(), SessionStoreError> {
    let mine = owner();
    let others = [
        SessionOwner { tenant: None, ..mine.clone() },
        SessionOwner { principal: None, ..mine.clone() },
        SessionOwner { tenant: mine.principal.clone(), principal: mine.tenant.clone() },
        SessionOwner::default(),
    ];
    let info = store.create(&new(&mine, Some("mine")))?;
    let lease = store.acquire(&mine, &info.id, LONG)?;
    write(store, &lease, &[began(), ended()])?;
    store.release(&lease)?;
    for other in &others {
        let is_unknown = |result: Result<(), SessionStoreError>| {
            matches!(result, Err(SessionStoreError::Unknown { .. }))
        };
        let all_unknown = is_unknown(store.find(other, &info.id).map(drop))
            && is_unknown(store.find(other, "mine").map(drop))
            && is_unknown(store.read(other, &info.id).map(drop))
            && is_unknown(store.events(other, &info.id, 1).map(drop))
            && is_unknown(store.acquire(other, &info.id, LONG).map(drop))
            && is_unknown(store.remove(other, &info.id))
            && store.list(other, 1_000)?.iter().all(|listed| listed.id != info.id)
            && store.runs(other, 1_000)?.iter().all(|run| run.session != info.id);
        broken.unless(all_unknown, &format!("a session of one owner must be unknown to {other:?}"));
    }
    broken.unless(
        store.find(&mine, "mine")?.id == info.id,
        "a session of one owner must not be removed by another",
    );
    Ok(())
}

fn names(store: &dyn SessionStore, broken: &mut StoreViolations) -> Result<(), SessionStoreError> {
    let (mine, other) = (owner(), owner());
    let info = store.create(&new(&mine, Some("work")))?;
    broken.unless(store.find(&mine, "work")?.id == info.id, "a session must be found by its name");
    let again = store.create(&new(&mine, Some("work")));
    let is_taken = matches!(again, Err(SessionStoreError::NameTaken { .. }));
    broken.unless(is_taken, "an owner must not have two sessions of one name");
    let theirs = store.create(&new(&other, Some("work")))?;
    broken.unless(theirs.id != info.id, "two owners may use the same name");
    let long = "a".repeat(65);
    for name in ["", "-a", ".a", "a b", "a/b", "\u{fc}", "0123456789ab", &long] {
        let invalid = store.create(&new(&mine, Some(name)));
        let refused = matches!(invalid, Err(SessionStoreError::InvalidName { .. }));
        broken.unless(refused, &format!("`{name}` must not be a valid name"));
    }
    store.remove(&mine, &info.id)?;
    let removed = matches!(store.find(&mine, "work"), Err(SessionStoreError::Unknown { .. }));
    broken.unless(removed, "a removed session must be unknown");
    let again = store.create(&new(&mine, Some("work")));
    broken.unless(again.is_ok(), "the name of a removed session must be free");
    Ok(())
}

fn listing(
    store: &dyn SessionStore,
    broken: &mut StoreViolations,
) -> Result<(), SessionStoreError> {
    let owner = owner();
    let mut ids = Vec::new();
    for _ in 0..3 {
        let (info, lease) = leased(store, &owner)?;
        write(store, &lease, &[began(), ended()])?;
        store.release(&lease)?;
        // The order is by milliseconds.
        std::thread::sleep(std::time::Duration::from_millis(5));
        ids.insert(0, info.id);
    }
    let listed = |limit| {
        let listed = store.list(&owner, limit)?;
        Ok::<_, SessionStoreError>(listed.into_iter().map(|info| info.id).collect::<Vec<_>>())
    };
    broken.unless(listed(10)? == ids, "sessions must be listed from the last used to the first");
    broken.unless(listed(1)?.len() == 1, "a list must respect its limit");
    Ok(())
}
