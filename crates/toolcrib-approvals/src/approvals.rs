//! Parked calls, decisions on them, and grants.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use toolcrib_core::{
    __internal::{millis, now_ms},
    ApprovalGrant, ApprovalMark, ApprovalState, ApprovalStore, ApprovalStoreError,
    SessionStoreError, Settlement, StoredApproval, StoredArguments,
};

use crate::{
    binding::digest_of,
    error::ApprovalError,
    grant::GrantScope,
    key::{ApprovalKey, ApprovalKeys},
    parking::ParkingApprover,
};

/// The default time for which a parked call waits, and then for which a decision is valid.
const EXPIRE_AFTER: Duration = Duration::from_hours(24);

/// The time for which closed calls are kept for inspection, without their arguments.
const KEEP_CLOSED: Duration = Duration::from_hours(30 * 24);

/// Calls that wait for approval in a store, and the user's decisions on them.
///
/// A decision is about one call: its owner, session, tool, definition and arguments. It is sealed with
/// the user's key, counts once, and expires. All methods but [`approver`](Self::approver) block.
#[derive(Clone)]
pub struct Approvals {
    pub(crate) store: Arc<dyn ApprovalStore>,
    pub(crate) keys: ApprovalKeys,
    place: Arc<str>,
    pub(crate) expire_after: Duration,
}

/// A parked call with the decision that counts.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Review {
    /// The call, as stored.
    pub stored: StoredApproval,
    /// The state as one word: `open`, `approved`, `denied`, `expired`, `invalid` for a decision whose
    /// seal is not the user's, or how it was closed.
    pub state: Arc<str>,
}

impl Approvals {
    /// Approvals in a store, settled with a key. The place is the project, such as its folder: a
    /// decision made at one place counts at no other, although the user's key is the same.
    pub fn new(
        store: Arc<dyn ApprovalStore>,
        keys: ApprovalKeys,
        place: impl Into<Arc<str>>,
    ) -> Self {
        Self { store, keys, place: place.into(), expire_after: EXPIRE_AFTER }
    }

    /// Sets the time for which a parked call waits, and then for which a decision is valid. Default:
    /// 24 hours.
    #[must_use]
    pub fn expire_after(mut self, time: Duration) -> Self {
        self.expire_after = time;
        self
    }

    /// An approver that parks calls: of a session, whose run is resumed after the decision, or of
    /// none, where the caller makes the same call again.
    pub fn approver(&self, session: Option<Arc<str>>) -> ParkingApprover {
        ParkingApprover::new(self.clone(), session)
    }

    /// The parked calls, the oldest first. Closed ones only on request.
    ///
    /// # Errors
    /// [`ApprovalError`].
    pub fn list(&self, with_closed: bool) -> Result<Vec<Review>, ApprovalError> {
        let key = self.keys.read()?;
        let all = self.store.approvals(with_closed)?;
        Ok(all.into_iter().map(|stored| self.review(stored, key.as_ref())).collect())
    }

    /// The parked call of an id.
    ///
    /// # Errors
    /// [`ApprovalError`].
    pub fn get(&self, id: &str) -> Result<Review, ApprovalError> {
        let key = self.keys.read()?;
        Ok(self.review(self.store.approval(id)?, key.as_ref()))
    }

    fn review(&self, stored: StoredApproval, key: Option<&ApprovalKey>) -> Review {
        let now = now_ms();
        let state = match &stored.state {
            ApprovalState::Open if stored.call.expires_ms <= now => "expired",
            ApprovalState::Settled(settled) if !self.is_sealed(key, &stored, settled) => "invalid",
            ApprovalState::Settled(settled) if settled.until_ms <= now => "expired",
            state => state.as_str(),
        };
        Review { state: state.into(), stored }
    }

    /// Approves a call, once. Creates the user's key if there is none.
    ///
    /// # Errors
    /// [`ApprovalError`]; nothing is approved then.
    pub fn approve(&self, id: &str) -> Result<StoredApproval, ApprovalError> {
        self.settle(id, true, None)
    }

    /// Denies a call, with a reason for the model.
    ///
    /// # Errors
    /// [`ApprovalError`].
    pub fn deny(
        &self,
        id: &str,
        reason: Option<Arc<str>>,
    ) -> Result<StoredApproval, ApprovalError> {
        self.settle(id, false, reason)
    }

    fn settle(
        &self,
        id: &str,
        is_approved: bool,
        reason: Option<Arc<str>>,
    ) -> Result<StoredApproval, ApprovalError> {
        let stored = self.undecided(id)?;
        let key = self.keys.read_or_create()?;
        let now = now_ms();
        self.keys.forget_before(now);
        let mut settlement = Settlement {
            is_approved,
            reason,
            settled_ms: now,
            until_ms: now.saturating_add(millis(self.expire_after)),
            seal: "".into(),
        };
        settlement.seal = key.seal(&self.settled(&stored, &settlement)).into();
        self.store.settle(id, &settlement)?;
        Ok(stored)
    }

    /// An open call that is as it was parked.
    fn undecided(&self, id: &str) -> Result<StoredApproval, ApprovalError> {
        let stored = self.store.approval(id)?;
        let id = || Arc::clone(&stored.id);
        if stored.state != ApprovalState::Open {
            let state = stored.state.as_str().into();
            return Err(ApprovalStoreError::NotOpen { id: id(), state }.into());
        }
        if stored.call.expires_ms <= now_ms() {
            return Err(ApprovalError::Expired { id: id() });
        }
        if digest_of(&stored.call) != Some(stored.call.binding) {
            return Err(ApprovalError::Changed { id: id() });
        }
        Ok(stored)
    }

    /// The scope of a grant that is made from an open call: conditions, and its other arguments as
    /// they are, or any.
    ///
    /// # Errors
    /// [`ApprovalError`], also if the scope would not cover the call.
    pub fn check_grant(&self, id: &str, scope: &GrantScope) -> Result<(), ApprovalError> {
        let stored = self.undecided(id)?;
        let arguments = self.grantable(&stored)?;
        match scope.unmet(&arguments.value) {
            Some(condition) => Err(ApprovalError::NotCovered { condition }),
            None => Ok(()),
        }
    }

    fn grantable<'a>(
        &self,
        stored: &'a StoredApproval,
    ) -> Result<&'a StoredArguments, ApprovalError> {
        let changed = || ApprovalError::Changed { id: Arc::clone(&stored.id) };
        let arguments = stored.call.arguments.as_ref().ok_or_else(changed)?;
        match arguments.secrets.is_empty() {
            true => Ok(arguments),
            false => Err(ApprovalError::GrantOfSecret { id: Arc::clone(&stored.id) }),
        }
    }

    /// Grants calls like an open one, of the same owner and tool, for a time, and approves the call
    /// itself.
    ///
    /// # Errors
    /// [`ApprovalError`]; nothing is granted then.
    pub fn grant(
        &self,
        id: &str,
        scope: &GrantScope,
        time: Duration,
    ) -> Result<(StoredApproval, ApprovalGrant), ApprovalError> {
        self.check_grant(id, scope)?;
        let stored = self.approve(id)?;
        let key = self.keys.read_or_create()?;
        let now = now_ms();
        let scope = serde_json::to_string(scope).map_err(|error| {
            let (store, problem) = ("the grant".to_owned(), error.to_string());
            ApprovalStoreError::from(SessionStoreError::Damaged { store, problem })
        })?;
        let mut grant = ApprovalGrant {
            id: Arc::clone(&stored.id),
            owner: stored.call.owner.clone(),
            tool: Arc::clone(&stored.call.tool),
            origin: Arc::clone(&stored.call.origin),
            scope: scope.into(),
            created_ms: now,
            until_ms: now.saturating_add(millis(time)),
            seal: "".into(),
        };
        grant.seal = key.seal(&self.granted(&grant)).into();
        self.store.add_grant(&grant)?;
        Ok((stored, grant))
    }

    /// The grants that are valid, the oldest first.
    ///
    /// # Errors
    /// [`ApprovalError`].
    pub fn grants(&self) -> Result<Vec<ApprovalGrant>, ApprovalError> {
        let Some(key) = self.keys.read()? else { return Ok(Vec::new()) };
        let mut valid = self.store.grants()?;
        valid.retain(|grant| {
            grant.until_ms > now_ms() && key.is_seal(&self.granted(grant), &grant.seal)
        });
        let ids: Vec<_> = valid.iter().map(|grant| &*grant.id).collect();
        let revoked = self.keys.marked(ApprovalMark::Revoked, &ids)?;
        valid.retain(|grant| !revoked.contains(&*grant.id));
        Ok(valid)
    }

    /// Revokes a grant by its id. It stays revoked if the store is set back to an earlier state.
    ///
    /// # Errors
    /// [`ApprovalError`], such as [`Unknown`](ApprovalStoreError::Unknown).
    pub fn revoke(&self, id: &str) -> Result<ApprovalGrant, ApprovalError> {
        let unknown = || ApprovalStoreError::Unknown { id: id.into() };
        let grant =
            self.grants()?.into_iter().find(|grant| *grant.id == *id).ok_or_else(unknown)?;
        self.keys.mark(ApprovalMark::Revoked, id, grant.until_ms)?;
        self.store.remove_grant(id)?;
        Ok(grant)
    }

    /// Closes what waits for a session whose turn is over without it.
    ///
    /// # Errors
    /// [`ApprovalError`].
    pub fn withdraw(&self, session: &str) -> Result<usize, ApprovalError> {
        let mut withdrawn = 0;
        for stored in self.store.approvals(false)? {
            if stored.call.session.as_deref() == Some(session)
                && self.store.close(&stored.id, "withdrawn")?
            {
                withdrawn += 1;
            }
        }
        Ok(withdrawn)
    }

    /// Removes what has been over for 30 days.
    ///
    /// # Errors
    /// [`ApprovalError`].
    pub fn prune(&self) -> Result<usize, ApprovalError> {
        let before = now_ms().saturating_sub(millis(KEEP_CLOSED));
        Ok(self.store.prune_approvals(before)?)
    }

    /// Whether a settlement has the seal of the user's key, and is about the call of its row.
    pub(crate) fn is_sealed(
        &self,
        key: Option<&ApprovalKey>,
        stored: &StoredApproval,
        settlement: &Settlement,
    ) -> bool {
        key.is_some_and(|key| key.is_seal(&self.settled(stored, settlement), &settlement.seal))
    }

    /// The text that the seal of a settlement is over.
    fn settled(&self, stored: &StoredApproval, settlement: &Settlement) -> String {
        let Settlement { is_approved, reason, settled_ms, until_ms, seal: _ } = settlement;
        let (place, id, binding) = (&self.place, &stored.id, stored.call.binding);
        let form = "toolcrib-settlement-1";
        json!([form, place, id, binding, is_approved, reason, settled_ms, until_ms]).to_string()
    }

    /// The text that the seal of a grant is over.
    fn granted(&self, grant: &ApprovalGrant) -> String {
        let ApprovalGrant { id, owner, tool, origin, scope, created_ms, until_ms, seal: _ } = grant;
        let (place, tenant, principal) = (&self.place, &owner.tenant, &owner.principal);
        let form = "toolcrib-grant-1";
        json!([form, place, id, tenant, principal, tool, origin, scope, created_ms, until_ms])
            .to_string()
    }
}

toolcrib_core::__internal::debug_fields!(Approvals { keys, .. });
