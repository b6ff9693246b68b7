//! Sums of usage.

use std::{collections::BTreeMap, sync::Arc};

use toolcrib_core::{
    BudgetUse, Digest, SessionOwner, SessionStoreError, StoreId, StoredUsage, UsageEntry,
    UsageSource, UsageStore,
};

use super::{PostgresStore, now, params, signed, text, unsigned, unsynced};
use crate::{
    frozen::FrozenError,
    session::{owner_key, owner_of},
    usage::{UsageSums, definitions_of, is_definition, sizes_of},
};

/// The kinds of rows. One of definitions counts menus, whose sizes are a shared text of its name.
const MODEL: &str = "model";
const TOOL: &str = "tool";
const OFFERED: &str = "offered";

/// The numbers of counts and of costs in a row.
const COUNTS: usize = 10;
const COSTS: usize = 2;

/// The numbers of the `n`th row, of two arrays with those of all rows.
macro_rules! columns {
    ($counts:literal, $costs:literal) => {
        concat!(
            "(",
            $counts,
            "::bigint[])[n * 10 - 9 : n * 10], (",
            $costs,
            "::double precision[])[n * 2 - 1 : n * 2]"
        )
    };
}
pub(super) use columns;

/// Adds the numbers to those of an earlier row.
macro_rules! add {
    () => {
        "ON CONFLICT (day, owner, session, kind, name) DO UPDATE SET
            counts = ARRAY(SELECT a + b FROM unnest(usage.counts, excluded.counts)
                WITH ORDINALITY AS c (a, b, n) ORDER BY n),
            costs = ARRAY(SELECT a + b FROM unnest(usage.costs, excluded.costs)
                WITH ORDINALITY AS c (a, b, n) ORDER BY n)"
    };
}
pub(super) use add;

const ADD: &str = concat!(
    "WITH parts AS (
        INSERT INTO toolcrib.parts (digest, body, used_ms)
        SELECT digest, body, toolcrib.now_ms() FROM unnest($7::text[], $8::bytea[])
            AS p (digest, body)
        ON CONFLICT (digest) DO UPDATE SET used_ms = excluded.used_ms
    ), spent AS (
        INSERT INTO toolcrib.usage (day, owner, session, kind, name, counts, costs)
        SELECT toolcrib.now_ms() / 86400000, $1, $2, kind, name, ",
    columns!("$5", "$6"),
    " FROM unnest($3::text[], $4::bytea[]) WITH ORDINALITY AS u (kind, name, n) ",
    add!(),
    ") SELECT ",
    unsynced!()
);

/// Entries in the form of a statement, in one order: two writers would wait for each other otherwise.
pub(super) struct UsageRows {
    pub(super) kinds: Vec<&'static str>,
    pub(super) names: Vec<Vec<u8>>,
    /// The counts of all rows, one after the other.
    pub(super) counts: Vec<i64>,
    pub(super) costs: Vec<f64>,
    /// The shared texts, by their digests.
    pub(super) shared: BTreeMap<String, Vec<u8>>,
}

/// The rows of entries, of which each source has one.
pub(super) fn usage_rows(entries: &[UsageEntry]) -> Result<UsageRows, FrozenError> {
    let (definitions, others): (Vec<_>, Vec<_>) =
        entries.iter().partition(|entry| is_definition(entry));
    let mut sums: BTreeMap<(&'static str, Vec<u8>), UsageEntry> = BTreeMap::new();
    for entry in others {
        let key = match &entry.source {
            UsageSource::Model(name) => (MODEL, name.as_bytes().to_vec()),
            UsageSource::Tool(name) => (TOOL, name.as_bytes().to_vec()),
        };
        let new = || UsageEntry::new(entry.source.clone());
        sums.entry(key).or_insert_with(new).add(entry);
    }
    let mut shared = BTreeMap::new();
    if let Some(sizes) = sizes_of(&definitions)? {
        let digest = Digest::of(&sizes).to_string();
        let mut menu = UsageEntry::new(UsageSource::Tool("".into()));
        menu.count = 1;
        sums.insert((OFFERED, digest.clone().into_bytes()), menu);
        shared.insert(digest, sizes.into_bytes());
    }
    let mut rows =
        UsageRows { kinds: vec![], names: vec![], counts: vec![], costs: vec![], shared };
    for ((kind, name), entry) in sums {
        rows.kinds.push(kind);
        rows.names.push(name);
        let counts: [u64; COUNTS] = [
            entry.count,
            entry.input_tokens,
            entry.cached_input_tokens,
            entry.cache_write_tokens,
            entry.output_tokens,
            entry.unknown_costs,
            entry.assumed_costs,
            entry.assumed_tokens,
            entry.definition_bytes,
            entry.result_chars,
        ];
        rows.counts.extend(counts.map(signed));
        let costs: [f64; COSTS] = [entry.known_cost_usd, entry.assumed_cost_usd];
        rows.costs.extend(costs);
    }
    Ok(rows)
}

impl UsageStore for PostgresStore {
    fn add_usage(
        &self,
        owner: &SessionOwner,
        session: Option<&Arc<str>>,
        entries: &[UsageEntry],
    ) -> Result<(), SessionStoreError> {
        let (owner, session) = (owner_key(owner), session.map_or("", |session| session).to_owned());
        let UsageRows { kinds, names, counts, costs, shared } =
            usage_rows(entries).map_err(|error| self.database.frozen(&error))?;
        let (digests, bodies): (Vec<_>, Vec<_>) = shared.into_iter().unzip();
        let values = params![owner, session, kinds, names, counts, costs, digests, bodies];
        self.written(ADD, values).map(drop)
    }

    fn usage_since(&self, day: u64) -> Result<Vec<StoredUsage>, SessionStoreError> {
        let all = "SELECT day, owner, session, kind, name, counts, costs, body
            FROM toolcrib.usage LEFT JOIN toolcrib.parts
                ON kind = 'offered' AND convert_to(digest, 'UTF8') = name
            WHERE day >= $1";
        let mut sums = UsageSums::default();
        for row in self.read(all, params![signed(day)])? {
            let (day, owner, session) = (unsigned(&row, 0), row.get(1), row.get::<_, String>(2));
            let session: Arc<str> = session.into();
            let owner: String = owner;
            let mut add = |entry| sums.add(day, owner.clone(), &session, entry);
            let (kind, name): (&str, Arc<str>) = (row.get(3), text(&row, 4));
            let (counts, costs): (Vec<i64>, Vec<f64>) = (row.get(5), row.get(6));
            let count = |at: usize| {
                counts.get(at).and_then(|count| u64::try_from(*count).ok()).unwrap_or_default()
            };
            let source = match kind {
                OFFERED => {
                    let sizes: Vec<u8> = row.get::<_, Option<_>>(7).unwrap_or_default();
                    let read = definitions_of(&String::from_utf8_lossy(&sizes), count(0));
                    read.map_err(|error| self.database.frozen(&error))?.for_each(&mut add);
                    continue;
                }
                MODEL => UsageSource::Model(name),
                _ => UsageSource::Tool(name),
            };
            let cost = |at: usize| costs.get(at).copied().unwrap_or_default();
            add(UsageEntry {
                source,
                count: count(0),
                input_tokens: count(1),
                cached_input_tokens: count(2),
                cache_write_tokens: count(3),
                output_tokens: count(4),
                unknown_costs: count(5),
                assumed_costs: count(6),
                assumed_tokens: count(7),
                definition_bytes: count(8),
                result_chars: count(9),
                known_cost_usd: cost(0),
                assumed_cost_usd: cost(1),
            });
        }
        sums.into_stored(|owner| owner_of(owner).map_err(|error| self.database.frozen(&error)))
    }

    fn spent_today(&self, owner: Option<&SessionOwner>) -> Result<BudgetUse, SessionStoreError> {
        let spent = concat!(
            "SELECT coalesce(sum(counts[2] + counts[5] + counts[8]), 0)::bigint,
                coalesce(sum(counts[6] - counts[7]), 0)::bigint, coalesce(sum(costs[1] + costs[2]), 0)
            FROM toolcrib.usage
            WHERE day = ",
            now!(),
            " / 86400000 AND owner = coalesce($1, owner) AND kind <> 'offered'"
        );
        let rows = self.read(spent, params![owner.map(owner_key)])?;
        Ok(rows.first().map_or_else(BudgetUse::default, |row| BudgetUse {
            tokens: unsigned(row, 0),
            unknown_costs: unsigned(row, 1),
            usd: row.get(2),
        }))
    }

    fn store_id(&self) -> Option<StoreId> {
        Some(self.database.id)
    }
}
