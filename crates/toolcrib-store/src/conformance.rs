//! Tests a store against the contract of [`SessionStore`]. Independent of any test runner: call it
//! from a test, and `unwrap` shows the violations.
//!
//! ```
//! # use toolcrib_store::{SqliteStore, conformance::check_session_store};
//! check_session_store(&SqliteStore::in_memory()?)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod approvals;
mod contents;
mod kv;
mod leases;
mod owners;
mod retention;
mod search;
mod usage;

use std::{fmt, time::Duration};

pub use self::{approvals::check_approval_store, kv::check_kv_store, usage::check_usage_store};

use toolcrib_core::{
    NewSession, SessionInfo, SessionLease, SessionOwner, SessionRecord, SessionStore,
    SessionStoreError, Usage,
};
use uuid::Uuid;

/// The violations of the contract, as text. `Debug` is readable too.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Violations(Vec<String>);

impl Violations {
    /// The violations, in the order in which they were found.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    fn unless(&mut self, satisfied: bool, clause: &str) {
        if !satisfied {
            self.0.push(clause.to_owned());
        }
    }

    /// Records an unexpected error of a part of the suite.
    fn ran(&mut self, part: &str, result: Result<(), SessionStoreError>) {
        if let Err(error) = result {
            self.0.push(format!("{part}: unexpected error: {error}"));
        }
    }
}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the store breaks its contract:")?;
        self.0.iter().try_for_each(|violation| write!(f, "\n- {violation}"))
    }
}

impl fmt::Debug for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Violations {}

/// A lease that does not expire during the suite.
const LONG: Duration = Duration::from_hours(1);

/// Tests a store. It uses its own owners, but prunes sessions of all owners: pass a store that
/// contains nothing of value.
///
/// # Errors
/// All violations.
pub fn check_session_store(store: &dyn SessionStore) -> Result<(), Violations> {
    let mut broken = Violations::default();
    let parts: [(&str, Part); 5] = [
        ("contents", contents::check),
        ("owners", owners::check),
        ("leases", leases::check),
        ("search", search::check),
        ("retention", retention::check),
    ];
    for (name, part) in parts {
        let result = part(store, &mut broken);
        broken.ran(name, result);
    }
    if broken.0.is_empty() { Ok(()) } else { Err(broken) }
}

type Part = fn(&dyn SessionStore, &mut Violations) -> Result<(), SessionStoreError>;

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

fn began() -> SessionRecord {
    let (model, title) = ("m".into(), "first words".into());
    SessionRecord::TurnBegan { model, title, skills: vec!["billing".into()] }
}

fn ended() -> SessionRecord {
    SessionRecord::TurnEnded { stopped: "answered".into(), error: None, usage: Usage::NOTHING }
}
