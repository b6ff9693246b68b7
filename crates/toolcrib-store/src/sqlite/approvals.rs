//! Calls that wait for approval, and grants.

use std::sync::Arc;

use rusqlite::{OptionalExtension as _, Row, Transaction, params};
use toolcrib_core::{
    ApprovalGrant, ApprovalState, ApprovalStore, ApprovalStoreError, Digest, ParkedCall,
    SessionStoreError, Settlement, StoredApproval,
};

use super::{Failure, SqliteStore, unknown, unsigned::UnsignedInt, write::Durability};
use crate::{
    frozen::{freeze_arguments, thaw_arguments},
    session::{ID_ATTEMPTS, new_id, now_ms, owner_key, owner_of},
};

fn digest(text: &str) -> Result<Digest, Failure> {
    text.parse().map_err(|_| Failure::Content("a digest that cannot be read".to_owned()))
}

/// The outcome of a transaction: its result, or an error of approvals, which does not concern the file.
type TransactionResult<T> = Result<Result<T, ApprovalStoreError>, Failure>;

fn flat<T>(
    result: Result<Result<T, ApprovalStoreError>, SessionStoreError>,
) -> Result<T, ApprovalStoreError> {
    result?
}

/// The columns of [`stored`].
macro_rules! approvals_of {
    ($condition:literal) => {
        concat!(
            "SELECT id, owner, session, call_id, tool, origin, definition, arguments, binding, rule,
                reason, created_ms, expires_ms, is_approved, denied_because, settled_ms, until_ms,
                seal, closed, closed_ms FROM approvals ",
            $condition
        )
    };
}

fn stored(row: &Row<'_>) -> Result<StoredApproval, Failure> {
    let arguments: Option<String> = row.get("arguments")?;
    let is_approved: Option<bool> = row.get("is_approved")?;
    let closed: Option<Arc<str>> = row.get("closed")?;
    let millis = |column| Ok::<u64, Failure>(row.get::<_, UnsignedInt>(column)?.0);
    let state = match (closed, is_approved) {
        (Some(how), _) => ApprovalState::Closed { how, at_ms: millis("closed_ms")? },
        (None, Some(is_approved)) => ApprovalState::Settled(Settlement {
            is_approved,
            reason: row.get("denied_because")?,
            settled_ms: millis("settled_ms")?,
            until_ms: millis("until_ms")?,
            seal: row.get("seal")?,
        }),
        (None, None) => ApprovalState::Open,
    };
    Ok(StoredApproval {
        id: row.get("id")?,
        call: ParkedCall {
            owner: owner_of(&row.get::<_, String>("owner")?)?,
            session: row.get("session")?,
            call_id: row.get("call_id")?,
            tool: row.get("tool")?,
            origin: row.get("origin")?,
            definition: digest(&row.get::<_, String>("definition")?)?,
            arguments: arguments.as_deref().map(thaw_arguments).transpose()?,
            binding: digest(&row.get::<_, String>("binding")?)?,
            rule: row.get("rule")?,
            reason: row.get("reason")?,
            expires_ms: millis("expires_ms")?,
        },
        created_ms: millis("created_ms")?,
        state,
    })
}

fn rows<T>(
    transaction: &Transaction<'_>,
    sql: &str,
    read: impl Fn(&Row<'_>) -> Result<T, Failure>,
) -> Result<Vec<T>, Failure> {
    let mut statement = transaction.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        all.push(read(row)?);
    }
    Ok(all)
}

fn one(transaction: &Transaction<'_>, id: &str) -> TransactionResult<StoredApproval> {
    let mut statement = transaction.prepare_cached(approvals_of!("WHERE id = ?1"))?;
    let mut rows = statement.query([id])?;
    match rows.next()? {
        Some(row) => Ok(Ok(stored(row)?)),
        None => Ok(Err(ApprovalStoreError::Unknown { id: id.into() })),
    }
}

fn park(
    transaction: &Transaction<'_>,
    call: &ParkedCall,
    limit: usize,
) -> TransactionResult<StoredApproval> {
    if let Some(session) = &call.session {
        let is_known = "SELECT 1 FROM sessions WHERE id = ?1 AND owner = ?2";
        let row = params![session, owner_key(&call.owner)];
        if transaction.query_row(is_known, row, |_| Ok(())).optional()?.is_none() {
            return Err(unknown(session));
        }
    }
    let now = now_ms();
    let waiting = approvals_of!("WHERE closed IS NULL AND is_approved IS NULL");
    let waiting = rows(transaction, waiting, stored)?;
    let mut waiting = waiting.into_iter().filter(|one| one.call.expires_ms > now);
    if let Some(same) = waiting.by_ref().find(|one| one.call.binding == call.binding) {
        return Ok(Ok(same));
    }
    let count = "SELECT count(*) FROM approvals WHERE closed IS NULL AND is_approved IS NULL
        AND expires_ms > ?1";
    let open: i64 = transaction.query_row(count, [UnsignedInt(now)], |row| row.get(0))?;
    if usize::try_from(open).unwrap_or(usize::MAX) >= limit {
        return Ok(Err(ApprovalStoreError::TooMany { limit }));
    }
    let arguments = call.arguments.as_ref().map(freeze_arguments).transpose()?;
    let insert = "INSERT INTO approvals (id, owner, session, call_id, tool, origin, definition,
        arguments, binding, rule, reason, created_ms, expires_ms)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
        ON CONFLICT (id) DO NOTHING";
    for _ in 0..ID_ATTEMPTS {
        let id = new_id();
        let row = params![
            id,
            owner_key(&call.owner),
            call.session,
            call.call_id,
            call.tool,
            call.origin,
            call.definition.to_string(),
            arguments,
            call.binding.to_string(),
            call.rule,
            call.reason,
            UnsignedInt(now),
            UnsignedInt(call.expires_ms)
        ];
        if transaction.execute(insert, row)? == 1 {
            let (call, state) = (call.clone(), ApprovalState::Open);
            return Ok(Ok(StoredApproval { id, call, created_ms: now, state }));
        }
    }
    Err(Failure::Content("no unused id was found".to_owned()))
}

impl ApprovalStore for SqliteStore {
    fn park(&self, call: &ParkedCall, limit: usize) -> Result<StoredApproval, ApprovalStoreError> {
        flat(self.writing(Durability::Process, |transaction| park(transaction, call, limit)))
    }

    fn approval(&self, id: &str) -> Result<StoredApproval, ApprovalStoreError> {
        flat(self.reading(|transaction| one(transaction, id)))
    }

    fn approvals(&self, with_closed: bool) -> Result<Vec<StoredApproval>, ApprovalStoreError> {
        let all = match with_closed {
            true => approvals_of!("ORDER BY created_ms, id"),
            false => approvals_of!("WHERE closed IS NULL ORDER BY created_ms, id"),
        };
        Ok(self.reading(|transaction| rows(transaction, all, stored))?)
    }

    fn settle(&self, id: &str, settlement: &Settlement) -> Result<(), ApprovalStoreError> {
        // Power: a person does not decide twice.
        flat(self.writing(Durability::Power, |transaction| {
            let found = match one(transaction, id)? {
                Ok(found) => found,
                Err(error) => return Ok(Err(error)),
            };
            if found.state != ApprovalState::Open {
                let (id, state) = (found.id, found.state.as_str().into());
                return Ok(Err(ApprovalStoreError::NotOpen { id, state }));
            }
            transaction.execute(
                "UPDATE approvals SET is_approved = ?2, denied_because = ?3, settled_ms = ?4,
                until_ms = ?5, seal = ?6, arguments = CASE WHEN ?2 THEN arguments END
                WHERE id = ?1",
                params![
                    id,
                    settlement.is_approved,
                    settlement.reason,
                    UnsignedInt(settlement.settled_ms),
                    UnsignedInt(settlement.until_ms),
                    settlement.seal
                ],
            )?;
            let due = "UPDATE sessions SET is_due = 1 WHERE id = ?1";
            transaction.execute(due, [found.call.session])?;
            Ok(Ok(()))
        }))
    }

    fn close(&self, id: &str, how: &str) -> Result<bool, ApprovalStoreError> {
        // Power: a decision that was used must not come back.
        flat(self.writing(Durability::Power, |transaction| {
            let close = "UPDATE approvals SET closed = ?2, closed_ms = ?3, arguments = NULL
                WHERE id = ?1 AND closed IS NULL";
            if transaction.execute(close, params![id, how, UnsignedInt(now_ms())])? == 1 {
                return Ok(Ok(true));
            }
            Ok(one(transaction, id)?.map(|_| false))
        }))
    }

    fn add_grant(&self, grant: &ApprovalGrant) -> Result<(), ApprovalStoreError> {
        Ok(self.writing(Durability::Power, |transaction| {
            transaction.execute(
                "INSERT INTO grants (id, owner, tool, origin, scope, created_ms, until_ms, seal)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                params![
                    grant.id,
                    owner_key(&grant.owner),
                    grant.tool,
                    grant.origin,
                    grant.scope,
                    UnsignedInt(grant.created_ms),
                    UnsignedInt(grant.until_ms),
                    grant.seal
                ],
            )?;
            Ok(())
        })?)
    }

    fn grants(&self) -> Result<Vec<ApprovalGrant>, ApprovalStoreError> {
        let all = "SELECT * FROM grants ORDER BY created_ms, id";
        Ok(self.reading(|transaction| {
            rows(transaction, all, |row| {
                Ok(ApprovalGrant {
                    id: row.get("id")?,
                    owner: owner_of(&row.get::<_, String>("owner")?)?,
                    tool: row.get("tool")?,
                    origin: row.get("origin")?,
                    scope: row.get("scope")?,
                    created_ms: row.get::<_, UnsignedInt>("created_ms")?.0,
                    until_ms: row.get::<_, UnsignedInt>("until_ms")?.0,
                    seal: row.get("seal")?,
                })
            })
        })?)
    }

    fn remove_grant(&self, id: &str) -> Result<bool, ApprovalStoreError> {
        let remove = "DELETE FROM grants WHERE id = ?1";
        Ok(self
            .writing(Durability::Power, |transaction| Ok(transaction.execute(remove, [id])? > 0))?)
    }

    fn prune_approvals(&self, before_ms: u64) -> Result<usize, ApprovalStoreError> {
        let calls = "DELETE FROM approvals
            WHERE coalesce(closed_ms, max(coalesce(until_ms, 0), expires_ms)) < ?1";
        let grants = "DELETE FROM grants WHERE until_ms < ?1";
        Ok(self.writing(Durability::Process, |transaction| {
            let calls = transaction.execute(calls, [UnsignedInt(before_ms)])?;
            Ok(calls + transaction.execute(grants, [UnsignedInt(before_ms)])?)
        })?)
    }
}
