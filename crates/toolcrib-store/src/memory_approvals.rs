//! Calls that wait for approval, and grants, in memory.

use std::sync::Arc;

use toolcrib_core::{
    ApprovalGrant, ApprovalState, ApprovalStore, ApprovalStoreError, ParkedCall, SessionStoreError,
    Settlement, StoredApproval,
};

use crate::{
    memory::MemoryStore,
    session::{new_id, now_ms},
};

/// The approvals of a store.
#[derive(Debug, Default)]
pub(crate) struct HeldApprovals {
    pub(crate) calls: Vec<StoredApproval>,
    grants: Vec<ApprovalGrant>,
}

impl HeldApprovals {
    fn get(&mut self, id: &str) -> Result<&mut StoredApproval, ApprovalStoreError> {
        let unknown = || ApprovalStoreError::Unknown { id: id.into() };
        self.calls.iter_mut().find(|stored| *stored.id == *id).ok_or_else(unknown)
    }
}

impl ApprovalStore for MemoryStore {
    fn park(&self, call: &ParkedCall, limit: usize) -> Result<StoredApproval, ApprovalStoreError> {
        if let Some(session) = &call.session
            && !self.has_session(&call.owner, session)
        {
            let session = Arc::clone(session);
            return Err(SessionStoreError::Unknown { session }.into());
        }
        let mut held = self.held_approvals();
        let now = now_ms();
        let open: Vec<_> = held
            .calls
            .iter()
            .filter(|one| one.state == ApprovalState::Open && one.call.expires_ms > now)
            .collect();
        if let Some(same) = open.iter().find(|one| one.call.binding == call.binding) {
            return Ok((*same).clone());
        }
        if open.len() >= limit {
            return Err(ApprovalStoreError::TooMany { limit });
        }
        let (id, call, state) = (new_id(), call.clone(), ApprovalState::Open);
        let parked = StoredApproval { id, call, created_ms: now, state };
        held.calls.push(parked.clone());
        Ok(parked)
    }

    fn approval(&self, id: &str) -> Result<StoredApproval, ApprovalStoreError> {
        self.held_approvals().get(id).cloned()
    }

    fn approvals(&self, with_closed: bool) -> Result<Vec<StoredApproval>, ApprovalStoreError> {
        let is_closed = |one: &StoredApproval| matches!(one.state, ApprovalState::Closed { .. });
        let held = self.held_approvals();
        Ok(held.calls.iter().filter(|one| with_closed || !is_closed(one)).cloned().collect())
    }

    fn settle(&self, id: &str, settlement: &Settlement) -> Result<(), ApprovalStoreError> {
        let mut held = self.held_approvals();
        let found = held.get(id)?;
        if found.state != ApprovalState::Open {
            let (id, state) = (Arc::clone(&found.id), found.state.as_str().into());
            return Err(ApprovalStoreError::NotOpen { id, state });
        }
        found.state = ApprovalState::Settled(settlement.clone());
        if !settlement.is_approved {
            found.call.arguments = None;
        }
        Ok(())
    }

    fn close(&self, id: &str, how: &str) -> Result<bool, ApprovalStoreError> {
        let mut held = self.held_approvals();
        let found = held.get(id)?;
        if matches!(found.state, ApprovalState::Closed { .. }) {
            return Ok(false);
        }
        found.state = ApprovalState::Closed { how: how.into(), at_ms: now_ms() };
        found.call.arguments = None;
        Ok(true)
    }

    fn add_grant(&self, grant: &ApprovalGrant) -> Result<(), ApprovalStoreError> {
        self.held_approvals().grants.push(grant.clone());
        Ok(())
    }

    fn grants(&self) -> Result<Vec<ApprovalGrant>, ApprovalStoreError> {
        Ok(self.held_approvals().grants.clone())
    }

    fn remove_grant(&self, id: &str) -> Result<bool, ApprovalStoreError> {
        let mut held = self.held_approvals();
        let before = held.grants.len();
        held.grants.retain(|grant| *grant.id != *id);
        Ok(held.grants.len() < before)
    }

    fn prune_approvals(&self, before_ms: u64) -> Result<usize, ApprovalStoreError> {
        let mut held = self.held_approvals();
        let before = held.calls.len() + held.grants.len();
        held.calls.retain(|stored| {
            let over_ms = match &stored.state {
                ApprovalState::Closed { at_ms, .. } => *at_ms,
                ApprovalState::Settled(settled) => settled.until_ms.max(stored.call.expires_ms),
                _ => stored.call.expires_ms,
            };
            over_ms >= before_ms
        });
        held.grants.retain(|grant| grant.until_ms >= before_ms);
        Ok(before - held.calls.len() - held.grants.len())
    }
}
