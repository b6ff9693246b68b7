//! Tests of stores against the contracts of their ports, for everybody who writes a store. Independent
//! of any test runner: call them from a test, and `unwrap` shows the violations.
//!
//! ```
//! use toolcrib_store::SqliteStore;
//! use toolcrib_testing::stores::check_session_store;
//!
//! check_session_store(&SqliteStore::in_memory()?)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod approvals;
mod artifacts;
mod contents;
mod kv;
mod leases;
mod limits;
mod machines;
mod owners;
mod retention;
mod search;
mod start;
mod usage;
mod violations;
mod work;
mod writes;

use std::{fmt, time::Duration};

pub use self::{
    approvals::check_approval_store, artifacts::check_artifact_store, kv::check_kv_store,
    limits::check_limit_store, machines::check_machines, start::check_start,
    usage::check_usage_store, violations::StoreViolations,
};
use toolcrib_core::{
    NewSession, SessionInfo, SessionLease, SessionOwner, SessionRecord, SessionStore,
    SessionStoreError, Usage,
};
use uuid::Uuid;

/// A lease that does not expire during the suite.
const LONG: Duration = Duration::from_hours(1);

/// Tests a store of sessions. It uses its own owners, but prunes sessions of all owners: pass a
/// store that contains nothing of value.
///
/// # Errors
/// All violations.
pub fn check_session_store(store: &dyn SessionStore) -> Result<(), StoreViolations> {
    let mut broken = StoreViolations::default();
    let parts = [
        ("contents", contents::check(store, &mut broken)),
        ("owners", owners::check(store, &mut broken)),
        ("leases", leases::check(store, &mut broken)),
        ("writes", writes::check(store, &mut broken)),
        ("work", work::check(store, &mut broken)),
        ("search", search::check(store, &mut broken)),
        ("retention", retention::check(store, &mut broken)),
    ];
    outcome(broken, parts)
}

/// The result of a suite, with the unexpected errors of its parts.
fn outcome<E: fmt::Display, const N: usize>(
    mut broken: StoreViolations,
    parts: [(&str, Result<(), E>); N],
) -> Result<(), StoreViolations> {
    for (part, result) in parts {
        if let Err(error) = result {
            broken.unless(false, &format!("{part}: unexpected error: {error}"));
        }
    }
    broken.into_result()
}

/// An owner that no other part of the suite uses.
fn owner() -> SessionOwner {
    SessionOwner {
        tenant: Some("conformance".into()),
        principal: Some(Uuid::new_v4().to_string().into()),
    }
}

fn new(owner: &SessionOwner, name: Option<&str>) -> NewSession {
    NewSession { owner: owner.clone(), name: name.map(Into::into), personality: "default".into() }
}

/// A session without a name, with a lease.
fn leased(
    store: &dyn SessionStore,
    owner: &SessionOwner,
) -> Result<(SessionInfo, SessionLease), SessionStoreError> {
    let info = store.create(&new(owner, None))?;
    let lease = store.acquire(owner, &info.id, LONG)?;
    Ok((info, lease))
}

/// Writes as a writer that has seen no write yet.
fn write(
    store: &dyn SessionStore,
    lease: &SessionLease,
    records: &[SessionRecord],
) -> Result<(), SessionStoreError> {
    store.write(lease, 0, records).map(drop)
}

fn began() -> SessionRecord {
    let (model, title) = ("m".into(), "first words".into());
    SessionRecord::TurnBegan { model, title, skills: vec!["billing".into()] }
}

fn ended() -> SessionRecord {
    SessionRecord::TurnEnded { stopped: "answered".into(), error: None, usage: Usage::NOTHING }
}
