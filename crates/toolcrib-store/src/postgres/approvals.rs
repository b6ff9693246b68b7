//! Calls that wait for approval, and grants.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio_postgres::Row;
use toolcrib_core::{
    ApprovalGrant, ApprovalState, ApprovalStore, ApprovalStoreError, Digest, ParkedCall,
    SessionOwner, SessionStoreError, Settlement, StoredApproval,
};

use super::{PostgresStore, now, params, signed, unsigned, unsynced};
use crate::{
    frozen::{FrozenError, freeze_arguments, thaw_arguments},
    session::{ID_ATTEMPTS, new_id, owner_key},
};

/// A parked call as stored, without what has a column.
#[derive(Serialize, Deserialize)]
struct FrozenCall {
    tenant: Option<Arc<str>>,
    principal: Option<Arc<str>>,
    call_id: Option<Arc<str>>,
    tool: Arc<str>,
    origin: Arc<str>,
    definition: Digest,
    binding: Digest,
    rule: Arc<str>,
    reason: Option<Arc<str>>,
}

/// A settlement as stored.
#[derive(Serialize, Deserialize)]
struct FrozenSettlement {
    is_approved: bool,
    reason: Option<Arc<str>>,
    settled_ms: u64,
    until_ms: u64,
    seal: Arc<str>,
}

/// A grant as stored.
#[derive(Serialize, Deserialize)]
struct FrozenGrant {
    tenant: Option<Arc<str>>,
    principal: Option<Arc<str>>,
    tool: Arc<str>,
    origin: Arc<str>,
    scope: Arc<str>,
    created_ms: u64,
    until_ms: u64,
    seal: Arc<str>,
}

/// The columns of [`stored`].
macro_rules! approvals_of {
    ($condition:literal) => {
        concat!(
            "SELECT id, session, call, arguments, created_ms, expires_ms, settlement, closed, closed_ms
                FROM toolcrib.approvals ",
            $condition
        )
    };
}

fn stored(row: &Row) -> Result<StoredApproval, FrozenError> {
    let call: FrozenCall = serde_json::from_str(row.get(2))?;
    let settlement: Option<&str> = row.get(6);
    let state = match (row.get::<_, Option<&str>>(7), settlement) {
        (Some(how), _) => ApprovalState::Closed { how: how.into(), at_ms: unsigned(row, 8) },
        (None, Some(settlement)) => {
            let FrozenSettlement { is_approved, reason, settled_ms, until_ms, seal } =
                serde_json::from_str(settlement)?;
            ApprovalState::Settled(Settlement { is_approved, reason, settled_ms, until_ms, seal })
        }
        (None, None) => ApprovalState::Open,
    };
    let (session, arguments): (Option<&str>, Option<&str>) = (row.get(1), row.get(3));
    Ok(StoredApproval {
        id: row.get::<_, &str>(0).into(),
        call: ParkedCall {
            owner: SessionOwner { tenant: call.tenant, principal: call.principal },
            session: session.map(Arc::from),
            call_id: call.call_id,
            tool: call.tool,
            origin: call.origin,
            definition: call.definition,
            arguments: arguments.map(thaw_arguments).transpose()?,
            binding: call.binding,
            rule: call.rule,
            reason: call.reason,
            expires_ms: unsigned(row, 5),
        },
        created_ms: unsigned(row, 4),
        state,
    })
}

impl PostgresStore {
    fn freeze<T: Serialize>(&self, value: &T) -> Result<String, SessionStoreError> {
        serde_json::to_string(value).map_err(|error| self.database.frozen(&error.into()))
    }

    fn thaw(&self, row: &Row) -> Result<StoredApproval, ApprovalStoreError> {
        Ok(stored(row).map_err(|error| self.database.frozen(&error))?)
    }
}

impl ApprovalStore for PostgresStore {
    fn park(&self, call: &ParkedCall, limit: usize) -> Result<StoredApproval, ApprovalStoreError> {
        let frozen = self.freeze(&FrozenCall {
            tenant: call.owner.tenant.clone(),
            principal: call.owner.principal.clone(),
            call_id: call.call_id.clone(),
            tool: Arc::clone(&call.tool),
            origin: Arc::clone(&call.origin),
            definition: call.definition,
            binding: call.binding,
            rule: Arc::clone(&call.rule),
            reason: call.reason.clone(),
        })?;
        let arguments = call.arguments.as_ref().map(freeze_arguments).transpose();
        let arguments = arguments.map_err(|error| self.database.frozen(&error))?;
        let park = concat!("SELECT toolcrib.park($1, $2, $3, $4, $5, $6, $7, $8), ", unsynced!());
        let session = call.session.as_deref().map(str::to_owned);
        for _ in 0..ID_ATTEMPTS {
            let values = params![
                new_id().to_string(),
                owner_key(&call.owner),
                session.clone(),
                call.binding.to_string(),
                frozen.clone(),
                arguments.clone(),
                signed(call.expires_ms),
                signed(limit as u64),
            ];
            let rows = self.written(park, values)?;
            match rows.first().map(|row| row.get::<_, &str>(0)) {
                Some("unknown") => {
                    let session = call.session.clone().unwrap_or_default();
                    return Err(SessionStoreError::Unknown { session }.into());
                }
                Some("full") => return Err(ApprovalStoreError::TooMany { limit }),
                Some("taken") | None => {}
                Some(id) => return self.approval(id),
            }
        }
        Err(self.damaged("no unused id was found").into())
    }

    fn approval(&self, id: &str) -> Result<StoredApproval, ApprovalStoreError> {
        let rows = self.read(approvals_of!("WHERE id = $1"), params![id.to_owned()])?;
        let row = rows.first().ok_or_else(|| ApprovalStoreError::Unknown { id: id.into() })?;
        self.thaw(row)
    }

    fn approvals(&self, with_closed: bool) -> Result<Vec<StoredApproval>, ApprovalStoreError> {
        let all = match with_closed {
            true => approvals_of!("ORDER BY created_ms, id"),
            false => approvals_of!("WHERE closed IS NULL ORDER BY created_ms, id"),
        };
        self.read(all, params![])?.iter().map(|row| self.thaw(row)).collect()
    }

    fn settle(&self, id: &str, settlement: &Settlement) -> Result<(), ApprovalStoreError> {
        let Settlement { is_approved, reason, settled_ms, until_ms, seal } = settlement;
        let frozen = self.freeze(&FrozenSettlement {
            is_approved: *is_approved,
            reason: reason.clone(),
            settled_ms: *settled_ms,
            until_ms: *until_ms,
            seal: Arc::clone(seal),
        })?;
        // Synced: a person does not decide twice.
        let settle = "SELECT toolcrib.settle($1, $2, $3, $4)";
        let values = params![id.to_owned(), frozen, *is_approved, signed(*until_ms)];
        if self.written(settle, values)?.iter().any(|row| row.get(0)) {
            return Ok(());
        }
        let found = self.approval(id)?;
        let (id, state) = (found.id, found.state.as_str().into());
        Err(ApprovalStoreError::NotOpen { id, state })
    }

    fn close(&self, id: &str, how: &str) -> Result<bool, ApprovalStoreError> {
        // Synced: a decision that was used must not come back.
        let close = concat!(
            "UPDATE toolcrib.approvals SET closed = $2, closed_ms = ",
            now!(),
            ", arguments = NULL WHERE id = $1 AND closed IS NULL RETURNING id"
        );
        if !self.written(close, params![id.to_owned(), how.to_owned()])?.is_empty() {
            return Ok(true);
        }
        self.approval(id).map(|_| false)
    }

    fn add_grant(&self, grant: &ApprovalGrant) -> Result<(), ApprovalStoreError> {
        let frozen = self.freeze(&FrozenGrant {
            tenant: grant.owner.tenant.clone(),
            principal: grant.owner.principal.clone(),
            tool: Arc::clone(&grant.tool),
            origin: Arc::clone(&grant.origin),
            scope: Arc::clone(&grant.scope),
            created_ms: grant.created_ms,
            until_ms: grant.until_ms,
            seal: Arc::clone(&grant.seal),
        })?;
        let add = "INSERT INTO toolcrib.grants (id, granted, created_ms, until_ms)
            VALUES ($1, $2, $3, $4)";
        let times = [grant.created_ms, grant.until_ms].map(signed);
        let values = params![grant.id.to_string(), frozen, times[0], times[1]];
        Ok(self.written(add, values).map(drop)?)
    }

    fn grants(&self) -> Result<Vec<ApprovalGrant>, ApprovalStoreError> {
        let all = "SELECT id, granted FROM toolcrib.grants ORDER BY created_ms, id";
        let grant = |row: &Row| -> Result<ApprovalGrant, ApprovalStoreError> {
            let frozen: FrozenGrant = serde_json::from_str(row.get(1))
                .map_err(|error| self.database.frozen(&error.into()))?;
            let FrozenGrant { tenant, principal, tool, origin, scope, created_ms, until_ms, seal } =
                frozen;
            let (id, owner) = (row.get::<_, &str>(0).into(), SessionOwner { tenant, principal });
            Ok(ApprovalGrant { id, owner, tool, origin, scope, created_ms, until_ms, seal })
        };
        self.read(all, params![])?.iter().map(grant).collect()
    }

    fn remove_grant(&self, id: &str) -> Result<bool, ApprovalStoreError> {
        let remove = "DELETE FROM toolcrib.grants WHERE id = $1 RETURNING id";
        Ok(!self.written(remove, params![id.to_owned()])?.is_empty())
    }

    fn prune_approvals(&self, before_ms: u64) -> Result<usize, ApprovalStoreError> {
        let prune = concat!(
            "WITH calls AS (
                DELETE FROM toolcrib.approvals
                WHERE coalesce(closed_ms, greatest(coalesce(until_ms, 0), expires_ms)) < $1 RETURNING 1
            ), grants AS (
                DELETE FROM toolcrib.grants WHERE until_ms < $1 RETURNING 1
            )
            SELECT (SELECT count(*) FROM calls) + (SELECT count(*) FROM grants), ",
            unsynced!()
        );
        let rows = self.written(prune, params![signed(before_ms)])?;
        let removed = rows.first().map_or(0, |row| unsigned(row, 0));
        Ok(usize::try_from(removed).unwrap_or(usize::MAX))
    }
}
