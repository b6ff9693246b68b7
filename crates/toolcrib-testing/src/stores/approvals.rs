//! Parked calls are decided once and closed once, and their arguments are deleted.

use std::{collections::HashSet, sync::Arc, thread};

use serde_json::json;
use toolcrib_core::{
    ApprovalGrant, ApprovalState, ApprovalStore, ApprovalStoreError, Digest, ParkedCall,
    SecretReference, SessionOwner, SessionStore, SessionStoreError, Settlement, StoredArguments,
};
use uuid::Uuid;

use super::{LONG, StoreViolations, began, new, outcome, owner, write};

/// The end of a wait that does not expire during the suite.
const NEVER_MS: u64 = 1 << 50;

/// The number of callers at the same time, and of the rounds that they race.
const CALLERS: usize = 8;
const ROUNDS: usize = 4;

/// The number of calls that may wait during the suite.
const LIMIT: usize = 1_000;

/// Tests a store of approvals, which is the store of the sessions too. Pass a store that contains
/// nothing of value.
///
/// # Errors
/// All violations.
pub fn check_approval_store(
    store: &(impl ApprovalStore + SessionStore),
) -> Result<(), StoreViolations> {
    let mut broken = StoreViolations::default();
    let parts = [
        ("parking", parking(store, &mut broken)),
        ("settling", settling(store, &mut broken)),
        ("races", races(store, &mut broken)),
        ("sessions", sessions(store, &mut broken)),
        ("grants", grants(store, &mut broken)),
        ("pruning", pruning(store, &mut broken)),
    ];
    outcome(broken, parts)
}

type CheckResult = Result<(), ApprovalStoreError>;

/// A call that no other part of the suite parks.
fn call(owner: &SessionOwner) -> ParkedCall {
    let value = json!({ "amount": 0.1 + 0.2, "huge": 1e300, "text": "a\u{0}b\n", "n": u64::MAX });
    let secret = SecretReference { pointer: "/text".into(), at: 3, name: "token".into() };
    ParkedCall {
        owner: owner.clone(),
        session: None,
        call_id: None,
        tool: "pay\0".into(),
        origin: "host\0".into(),
        definition: Digest::of("definition"),
        arguments: Some(StoredArguments::new(value, vec![secret])),
        binding: Digest::of(Uuid::new_v4().to_string()),
        rule: "rule 1\0".into(),
        reason: Some("money\0".into()),
        expires_ms: NEVER_MS,
    }
}

fn settlement(is_approved: bool) -> Settlement {
    Settlement {
        is_approved,
        reason: (!is_approved).then(|| "not today\0".into()),
        settled_ms: 7,
        until_ms: NEVER_MS,
        seal: "5eal".into(),
    }
}

fn parking(store: &impl ApprovalStore, broken: &mut StoreViolations) -> CheckResult {
    let call = call(&owner());
    let parked = store.park(&call, LIMIT)?;
    broken.unless(parked.call == call, "a parked call must be returned as it was written");
    broken.unless(
        store.approval(&parked.id)? == parked,
        "a parked call must be read as it was written, to the last bit of a number",
    );
    broken.unless(
        store.park(&call, LIMIT)?.id == parked.id,
        "a call that is open must not be parked twice",
    );
    let listed = store.approvals(false)?.into_iter().filter(|one| one.id == parked.id).count();
    broken.unless(listed == 1, "an open call must be listed");
    let unknown = store.approval("000000000000");
    let is_unknown = matches!(unknown, Err(ApprovalStoreError::Unknown { .. }));
    broken.unless(is_unknown, "an id that was never given must be unknown");
    let expired = ParkedCall { expires_ms: 1, binding: Digest::of("expired"), ..call.clone() };
    let (first, second) = (store.park(&expired, LIMIT)?, store.park(&expired, LIMIT)?);
    broken.unless(first.id != second.id, "an expired call must be parked again");
    let other = ParkedCall { binding: Digest::of(Uuid::new_v4().to_string()), ..call.clone() };
    let full = store.park(&other, 1);
    let is_full = matches!(full, Err(ApprovalStoreError::TooMany { limit: 1 }));
    broken.unless(is_full, "no more calls than the limit must wait");
    Ok(())
}

fn settling(
    store: &(impl ApprovalStore + SessionStore),
    broken: &mut StoreViolations,
) -> CheckResult {
    for is_approved in [true, false] {
        let parked = store.park(&call(&owner()), LIMIT)?;
        let settled = settlement(is_approved);
        store.settle(&parked.id, &settled)?;
        let found = store.approval(&parked.id)?;
        broken.unless(
            found.state == ApprovalState::Settled(settled.clone()),
            "a settlement must be read as it was written",
        );
        broken.unless(
            found.call.arguments.is_some() == is_approved,
            "arguments must be deleted with a denial, and kept with an approval",
        );
        let again = store.settle(&parked.id, &settlement(!is_approved));
        let is_refused = matches!(again, Err(ApprovalStoreError::NotOpen { .. }));
        broken.unless(is_refused, "a settled call must not be settled again");
        let closed: usize = thread::scope(|scope| {
            let close = || scope.spawn(|| store.close(&parked.id, "used"));
            let closing: Vec<_> = (0..4).map(|_| close()).collect();
            let closed = closing.into_iter().filter_map(|one| one.join().ok());
            closed.filter(|one| matches!(one, Ok(true))).count()
        });
        broken.unless(closed == 1, "of several that close a call, one must get `true`");
        let found = store.approval(&parked.id)?;
        broken.unless(
            matches!(&found.state, ApprovalState::Closed { how, .. } if **how == *"used")
                && found.call.arguments.is_none(),
            "a closed call must say how, and have no arguments",
        );
        let is_listed = |with_closed| {
            let listed = store.approvals(with_closed)?;
            Ok::<_, ApprovalStoreError>(listed.iter().any(|one| one.id == parked.id))
        };
        broken.unless(
            is_listed(true)? && !is_listed(false)?,
            "a closed call must be listed only on request",
        );
        let late = store.settle(&parked.id, &settlement(true));
        let is_refused = matches!(late, Err(ApprovalStoreError::NotOpen { .. }));
        broken.unless(is_refused, "a closed call must not be settled");
    }
    Ok(())
}

/// Of several callers at the same time, one decides, and one row waits.
fn races(store: &(impl ApprovalStore + SessionStore), broken: &mut StoreViolations) -> CheckResult {
    for _ in 0..ROUNDS {
        let call = call(&owner());
        let parked: HashSet<_> = thread::scope(|scope| {
            let park = || scope.spawn(|| store.park(&call, LIMIT));
            let parking: Vec<_> = (0..CALLERS).map(|_| park()).collect();
            let parked = parking.into_iter().filter_map(|one| one.join().ok()?.ok());
            parked.map(|parked| parked.id).collect()
        });
        broken.unless(parked.len() == 1, "of several that park one call, all must get one row");
        let Some(id) = parked.iter().next() else { return Ok(()) };
        let settled: usize = thread::scope(|scope| {
            let settle =
                |number| scope.spawn(move || store.settle(id, &settlement(number % 2 == 0)));
            let settling: Vec<_> = (0..CALLERS).map(settle).collect();
            settling.into_iter().filter_map(|one| one.join().ok()?.ok()).count()
        });
        broken.unless(settled == 1, "of several that settle a call, one must succeed");
        store.close(id, "withdrawn")?;
    }
    Ok(())
}

fn sessions(
    store: &(impl ApprovalStore + SessionStore),
    broken: &mut StoreViolations,
) -> CheckResult {
    let owner = owner();
    let session = store.create(&new(&owner, None))?.id;
    let call = ParkedCall {
        session: Some(Arc::clone(&session)),
        call_id: Some("call_1".into()),
        ..call(&owner)
    };
    let parked = store.park(&call, LIMIT)?;
    broken.unless(parked.call == call, "a parked call must keep its session and id");
    for wrong in [
        ParkedCall { owner: self::owner(), ..call.clone() },
        ParkedCall { session: Some("0123456789ab".into()), ..call.clone() },
    ] {
        let unknown = store.park(&wrong, LIMIT);
        let is_unknown =
            matches!(unknown, Err(ApprovalStoreError::Store(SessionStoreError::Unknown { .. })));
        broken.unless(is_unknown, "a call must not be parked in a session of another owner");
    }
    let lease = store.acquire(&owner, &session, LONG)?;
    write(store, &lease, &[began()])?;
    store.release(&lease)?;
    let waits = store.claim(Some(&owner), LONG)?.is_none();
    broken.unless(waits, "a session whose call waits must not be claimed");
    store.settle(&parked.id, &settlement(true))?;
    let claimed = store.claim(Some(&owner), LONG)?;
    if let Some(claimed) = &claimed {
        store.release(&claimed.lease)?;
    }
    let is_once = claimed.is_some() && store.claim(Some(&owner), LONG)?.is_none();
    broken.unless(is_once, "a session whose call is settled must be claimed once");
    store.remove(&owner, &session)?;
    let gone = matches!(store.approval(&parked.id), Err(ApprovalStoreError::Unknown { .. }));
    broken.unless(gone, "a removed session must not leave approvals");
    Ok(())
}

fn grants(store: &impl ApprovalStore, broken: &mut StoreViolations) -> CheckResult {
    let grant = ApprovalGrant {
        id: "aaaabbbbcccc".into(),
        owner: owner(),
        tool: "pay\0".into(),
        origin: "host\0".into(),
        scope: r#"{"where":["amount<=0.30000000000000004"]}"#.into(),
        created_ms: 5,
        until_ms: NEVER_MS,
        seal: "5eal".into(),
    };
    store.add_grant(&grant)?;
    broken.unless(
        store.grants()?.contains(&grant),
        "a grant must be read as it was written, to the byte",
    );
    broken.unless(store.remove_grant(&grant.id)?, "a grant must be removed");
    broken.unless(!store.remove_grant(&grant.id)?, "a removed grant must not be removed again");
    broken.unless(!store.grants()?.contains(&grant), "a removed grant must be gone");
    Ok(())
}

fn pruning(store: &impl ApprovalStore, broken: &mut StoreViolations) -> CheckResult {
    let open = store.park(&call(&owner()), LIMIT)?;
    let expired = store.park(&ParkedCall { expires_ms: 10, ..call(&owner()) }, LIMIT)?;
    let settled = store.park(&ParkedCall { expires_ms: 10, ..call(&owner()) }, LIMIT)?;
    store.settle(&settled.id, &settlement(true))?;
    store.prune_approvals(11)?;
    let is_kept = |id: &str| store.approval(id).is_ok();
    broken.unless(
        is_kept(&open.id) && is_kept(&settled.id),
        "calls that wait and decisions that are valid must not be pruned",
    );
    broken.unless(!is_kept(&expired.id), "expired calls must be pruned");
    store.close(&open.id, "withdrawn")?;
    store.prune_approvals(NEVER_MS)?;
    broken.unless(!is_kept(&open.id), "closed calls must be pruned");
    Ok(())
}
