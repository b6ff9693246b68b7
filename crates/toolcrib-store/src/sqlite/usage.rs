//! Sums of usage.

use std::sync::Arc;

use rusqlite::{Row, Transaction, params};
use toolcrib_core::{
    BudgetUse, SessionOwner, SessionStoreError, StoreId, StoredUsage, UsageEntry, UsageSource,
    UsageStore,
};

use super::{
    Failure, SqliteStore,
    read::{all, unsigned},
    unsigned::UnsignedInt,
    write::{Durability, Shared, shared},
};
use crate::{
    session::{KEPT_DAYS, owner_key, owner_of, today},
    usage::{UsageSums, definitions_of, is_definition, sizes_of},
};

const MODEL: &str = "model";
const TOOL: &str = "tool";

impl UsageStore for SqliteStore {
    fn add_usage(
        &self,
        owner: &SessionOwner,
        session: Option<&Arc<str>>,
        entries: &[UsageEntry],
    ) -> Result<(), SessionStoreError> {
        let (owner, session) = (owner_key(owner), session.map_or("", |session| &**session));
        self.writing(Durability::Process, |transaction| {
            add_all(transaction, &owner, session, entries)
        })
    }

    fn store_id(&self) -> Option<StoreId> {
        Some(self.0.id)
    }

    fn usage_since(&self, day: u64) -> Result<Vec<StoredUsage>, SessionStoreError> {
        let usage = "SELECT day, owner, session, kind, name, count, input_tokens,
            cached_input_tokens, cache_write_tokens, output_tokens, known_cost_usd, unknown_costs,
            assumed_costs, assumed_tokens, assumed_cost_usd, definition_bytes, result_chars
            FROM usage WHERE day >= ?1";
        let definitions = "SELECT day, owner, session, times, sizes
            FROM offered JOIN definitions ON id = definitions WHERE day >= ?1";
        self.reading(|transaction| {
            let day = UnsignedInt(day);
            let mut sums = UsageSums::default();
            all(transaction, usage, params![day], |row| {
                sums.add(unsigned(row, 0)?, row.get(1)?, &row.get(2)?, to_usage(row)?);
                Ok(())
            })?;
            all(transaction, definitions, params![day], |row| {
                let (day, owner, session) = (unsigned(row, 0)?, row.get(1)?, row.get(2)?);
                let owner: String = owner;
                let offered = definitions_of(&row.get::<_, String>(4)?, unsigned(row, 3)?)?;
                offered.for_each(|entry| sums.add(day, owner.clone(), &session, entry));
                Ok(())
            })?;
            Ok(sums.into_stored(owner_of)?)
        })
    }

    fn spent_today(&self, owner: Option<&SessionOwner>) -> Result<BudgetUse, SessionStoreError> {
        // A condition on an owner that may be absent would not use the key.
        let whose = if owner.is_some() { "AND owner = ?2" } else { "AND ?2 IS NULL" };
        let spent = format!(
            "SELECT coalesce(sum(input_tokens + output_tokens + assumed_tokens), 0),
            coalesce(sum(known_cost_usd + assumed_cost_usd), 0.0),
            coalesce(sum(unknown_costs - assumed_costs), 0)
            FROM usage WHERE day = ?1 {whose}"
        );
        self.reading(|transaction| {
            let today = params![UnsignedInt(today()), owner.map(owner_key)];
            Ok(transaction.prepare_cached(&spent)?.query_row(today, |row| {
                Ok(BudgetUse {
                    tokens: unsigned(row, 0)?,
                    usd: row.get(1)?,
                    unknown_costs: unsigned(row, 2)?,
                })
            })?)
        })
    }
}

/// Adds entries to the sums of today.
pub(super) fn add_all(
    transaction: &Transaction<'_>,
    owner: &str,
    session: &str,
    entries: &[UsageEntry],
) -> Result<(), Failure> {
    let day = today();
    let (definitions, others): (Vec<_>, Vec<_>) =
        entries.iter().partition(|entry| is_definition(entry));
    others.into_iter().try_for_each(|entry| add(transaction, day, owner, session, entry))?;
    offered(transaction, day, owner, session, &definitions)
}

fn add(
    transaction: &Transaction<'_>,
    day: u64,
    owner: &str,
    session: &str,
    entry: &UsageEntry,
) -> Result<(), Failure> {
    let (kind, name) = match &entry.source {
        UsageSource::Model(name) => (MODEL, name),
        UsageSource::Tool(name) => (TOOL, name),
    };
    let add = "INSERT INTO usage VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13,
        ?14, ?15, ?16, ?17)
        ON CONFLICT (day, owner, session, kind, name) DO UPDATE SET
        count = count + excluded.count,
        input_tokens = input_tokens + excluded.input_tokens,
        cached_input_tokens = cached_input_tokens + excluded.cached_input_tokens,
        cache_write_tokens = cache_write_tokens + excluded.cache_write_tokens,
        output_tokens = output_tokens + excluded.output_tokens,
        known_cost_usd = known_cost_usd + excluded.known_cost_usd,
        unknown_costs = unknown_costs + excluded.unknown_costs,
        assumed_costs = assumed_costs + excluded.assumed_costs,
        assumed_tokens = assumed_tokens + excluded.assumed_tokens,
        assumed_cost_usd = assumed_cost_usd + excluded.assumed_cost_usd,
        definition_bytes = definition_bytes + excluded.definition_bytes,
        result_chars = result_chars + excluded.result_chars";
    transaction.prepare_cached(add)?.execute(params![
        UnsignedInt(day),
        owner,
        session,
        kind,
        name,
        UnsignedInt(entry.count),
        UnsignedInt(entry.input_tokens),
        UnsignedInt(entry.cached_input_tokens),
        UnsignedInt(entry.cache_write_tokens),
        UnsignedInt(entry.output_tokens),
        entry.known_cost_usd,
        UnsignedInt(entry.unknown_costs),
        UnsignedInt(entry.assumed_costs),
        UnsignedInt(entry.assumed_tokens),
        entry.assumed_cost_usd,
        UnsignedInt(entry.definition_bytes),
        UnsignedInt(entry.result_chars)
    ])?;
    Ok(())
}

fn invalid(what: &str) -> Failure {
    Failure::Content(format!("a row of usage lacks {what}"))
}

/// Counts definitions that were offered together. Their names and sizes are stored once for all
/// sessions with the same menu.
fn offered(
    transaction: &Transaction<'_>,
    day: u64,
    owner: &str,
    session: &str,
    definitions: &[&UsageEntry],
) -> Result<(), Failure> {
    let Some(sizes) = sizes_of(definitions)? else { return Ok(()) };
    let id = shared(transaction, Shared::Definitions, &sizes)?;
    transaction
        .prepare_cached(
            "INSERT INTO offered VALUES (?1, ?2, ?3, ?4, 1)
            ON CONFLICT (day, owner, session, definitions) DO UPDATE SET times = times + 1",
        )?
        .execute(params![UnsignedInt(day), owner, session, id])?;
    Ok(())
}

fn to_usage(row: &Row<'_>) -> Result<UsageEntry, Failure> {
    let (kind, name): (String, Arc<str>) = (row.get(3)?, row.get(4)?);
    let source = match &*kind {
        MODEL => UsageSource::Model(name),
        TOOL => UsageSource::Tool(name),
        _ => return Err(invalid("a kind of usage")),
    };
    Ok(UsageEntry {
        source,
        count: unsigned(row, 5)?,
        input_tokens: unsigned(row, 6)?,
        cached_input_tokens: unsigned(row, 7)?,
        cache_write_tokens: unsigned(row, 8)?,
        output_tokens: unsigned(row, 9)?,
        known_cost_usd: row.get(10)?,
        unknown_costs: unsigned(row, 11)?,
        assumed_costs: unsigned(row, 12)?,
        assumed_tokens: unsigned(row, 13)?,
        assumed_cost_usd: row.get(14)?,
        definition_bytes: unsigned(row, 15)?,
        result_chars: unsigned(row, 16)?,
    })
}

/// Removes old sums.
pub(super) fn prune(transaction: &Transaction<'_>) -> Result<(), Failure> {
    let before = UnsignedInt(today().saturating_sub(KEPT_DAYS));
    transaction.execute("DELETE FROM usage WHERE day < ?1", params![before])?;
    if transaction.execute("DELETE FROM offered WHERE day < ?1", params![before])? > 0 {
        let unused = "DELETE FROM definitions
            WHERE NOT EXISTS (SELECT 1 FROM offered WHERE definitions = id)";
        transaction.execute(unused, [])?;
    }
    Ok(())
}
