//! Keys and values are apart for each area, limited, and end in time.

use std::{thread, time::Duration};

use toolcrib_core::{
    KvArea, KvError, KvLimits, KvStore, KvWrite, SessionOwner, SessionStore, SessionStoreError,
};
use uuid::Uuid;

use super::{StoreViolations, new, outcome, owner};

type CheckResult = Result<(), KvError>;

/// Tests a store of keys and values, which is the store of the sessions too.
///
/// # Errors
/// All violations.
pub fn check_kv_store(store: &(impl KvStore + SessionStore)) -> Result<(), StoreViolations> {
    let mut broken = StoreViolations::default();
    let parts = [
        ("areas", areas(store, &mut broken)),
        ("limits", limits(store, &mut broken)),
        ("changes", changes(store, &mut broken)),
        ("sessions", sessions(store, &mut broken)),
    ];
    outcome(broken, parts)
}

fn set<'a>(key: &'a str, value: &'a str) -> KvWrite<'a> {
    KvWrite { key, value: Some(value), expected: None, lives_for: Duration::from_hours(1) }
}

fn tool() -> KvArea {
    KvArea::Tool { tenant: Some("conformance".into()), tool: Uuid::new_v4().to_string().into() }
}

fn areas(store: &impl KvStore, broken: &mut StoreViolations) -> CheckResult {
    let mine = owner();
    let area = KvArea::Principal { owner: mine.clone() };
    let others = [
        KvArea::Principal { owner: SessionOwner { tenant: None, ..mine.clone() } },
        KvArea::Principal { owner: SessionOwner { principal: None, ..mine.clone() } },
        KvArea::Session { owner: mine.clone(), conversation: "a".into() },
        KvArea::Conversation { owner: mine.clone(), conversation: "a".into() },
        KvArea::Tool {
            tenant: mine.tenant.clone(),
            tool: mine.principal.clone().unwrap_or_default(),
        },
    ];
    store.put(&area, set("a/1", "one \u{0}\u{1f600}\n"))?;
    store.put(&area, set("a/2", "two"))?;
    store.put(&area, set("b%_", ""))?;
    store.put(&area, set("c\0", "three"))?;
    let is_read = store.value(&area, "a/1")?.as_deref() == Some("one \u{0}\u{1f600}\n")
        && store.value(&area, "b%_")?.as_deref() == Some("")
        && store.value(&area, "c\0")?.as_deref() == Some("three");
    broken.unless(is_read, "a value must be read as it was written");
    broken.unless(store.value(&area, "a")?.is_none(), "a key that was not written has no value");
    let keys: Vec<_> = store.keys(&area, "a/")?.iter().map(ToString::to_string).collect();
    broken.unless(keys == ["a/1", "a/2"], "the keys that begin with a text must be listed, sorted");
    broken.unless(store.keys(&area, "%")?.is_empty(), "a prefix is not a pattern");
    for other in &others {
        let is_apart = store.value(other, "a/1")?.is_none() && store.keys(other, "")?.is_empty();
        broken.unless(is_apart, &format!("keys must be unknown to {other:?}"));
    }
    store.put(&area, KvWrite { value: None, ..set("a/1", "") })?;
    broken.unless(store.value(&area, "a/1")?.is_none(), "a removed key has no value");
    Ok(())
}

fn limits(store: &impl KvStore, broken: &mut StoreViolations) -> CheckResult {
    let area = tool();
    let long = "k".repeat(KvLimits::KEY_BYTES + 1);
    for key in ["", &long] {
        let refused = matches!(store.put(&area, set(key, "v")), Err(KvError::Key));
        broken.unless(refused, "an empty or long key must be refused");
    }
    let large = "v".repeat(KvLimits::VALUE_BYTES);
    let refused = matches!(store.put(&area, set("k", &format!("{large}v"))), Err(KvError::Value));
    broken.unless(refused, "a large value must be refused");
    let most = KvLimits::BYTES / KvLimits::VALUE_BYTES;
    for number in 0..most - 1 {
        store.put(&area, set(&format!("k{number}"), &large))?;
    }
    let full = matches!(store.put(&area, set("more", &large)), Err(KvError::Full));
    broken.unless(full, "an area must not have more bytes than its limit");
    store.put(&area, set("k0", &large))?;
    store.put(&area, set("k0", "small"))?;
    store.put(&area, set("more", &large))?;
    let many = tool();
    for number in 0..KvLimits::KEYS {
        store.put(&many, set(&number.to_string(), ""))?;
    }
    let full = matches!(store.put(&many, set("more", "")), Err(KvError::Full));
    broken.unless(full, "an area must not have more keys than its limit");
    store.put(&many, set("0", "again"))?;
    let brief = KvWrite { lives_for: Duration::from_millis(1), ..set("1", "brief") };
    store.put(&many, brief)?;
    thread::sleep(Duration::from_millis(20));
    let is_over = store.value(&many, "1")?.is_none()
        && store.keys(&many, "1")?.iter().all(|key| **key != *"1");
    broken.unless(is_over, "an expired value does not exist");
    store.put(&many, set("more", ""))?;
    Ok(())
}

fn changes(store: &impl KvStore, broken: &mut StoreViolations) -> CheckResult {
    let area = tool();
    let change = |expected, value| KvWrite { expected: Some(expected), ..set("n", value) };
    store.put(&area, change(None, "1"))?;
    for wrong in [None, Some("2")] {
        let refused = matches!(store.put(&area, change(wrong, "3")), Err(KvError::Changed));
        broken.unless(refused, "a write that expects another value must be refused");
    }
    store.put(&area, change(Some("1"), "2"))?;
    broken.unless(
        store.value(&area, "n")?.as_deref() == Some("2"),
        "a refused write must change nothing",
    );
    let changed: usize = thread::scope(|scope| {
        let put = || scope.spawn(|| store.put(&area, change(Some("2"), "3")));
        let changing: Vec<_> = (0..8).map(|_| put()).collect();
        changing.into_iter().filter_map(|one| one.join().ok()?.ok()).count()
    });
    broken.unless(changed == 1, "of several writes that expect one value, one must succeed");
    Ok(())
}

fn sessions(store: &(impl KvStore + SessionStore), broken: &mut StoreViolations) -> CheckResult {
    let mine = owner();
    let info = store.create(&new(&mine, Some("work")))?;
    let area = |owner: &SessionOwner, conversation: &str| KvArea::Session {
        owner: owner.clone(),
        conversation: conversation.into(),
    };
    store.put(&area(&mine, "work"), set("k", "v"))?;
    let by_id = store.value(&area(&mine, &info.id), "k")?;
    broken.unless(by_id.as_deref() == Some("v"), "a session has the same keys by name and by id");
    let other = store.value(&area(&owner(), "work"), "k")?;
    broken.unless(other.is_none(), "the keys of a session must be unknown to other owners");
    store.put(&area(&mine, "unsaved"), set("k", "v"))?;
    let unsaved = store.value(&area(&mine, "unsaved"), "k")?;
    broken.unless(unsaved.is_some(), "a conversation that is not a session has keys too");
    let shared = |owner: &SessionOwner| KvArea::Conversation {
        owner: owner.clone(),
        conversation: "work".into(),
    };
    store.put(&shared(&mine), set("k", "shared"))?;
    let is_apart = store.value(&area(&mine, "work"), "k")?.as_deref() == Some("v")
        && store.value(&shared(&mine), "k")?.as_deref() == Some("shared")
        && store.value(&shared(&owner()), "k")?.is_none();
    broken.unless(is_apart, "a conversation without a session has separate keys");
    store.remove(&mine, &info.id)?;
    store.create(&new(&mine, Some("work")))?;
    let gone = store.value(&area(&mine, "work"), "k")?.is_none()
        && matches!(store.find(&mine, &info.id), Err(SessionStoreError::Unknown { .. }));
    broken.unless(gone, "the keys of a session must end with it");
    Ok(())
}
