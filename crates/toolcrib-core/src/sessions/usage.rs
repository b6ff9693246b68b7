//! The port to the store that sums up usage and cost.

use std::{fmt, sync::Arc};

use serde::Serialize;

use super::StoreId;
use crate::{
    messages::usage_entry::UsageEntry, names::owner::SessionOwner, store_error::SessionStoreError,
};

/// The sum of a source on one day, of one owner and session.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct StoredUsage {
    /// The day, as the number of days since 1970 in UTC.
    pub day: u64,
    /// The owner.
    pub owner: SessionOwner,
    /// The session's id; `None` for runs without one.
    pub session: Option<Arc<str>>,
    /// The sum.
    #[serde(flatten)]
    pub entry: UsageEntry,
}

impl StoredUsage {
    /// A sum of the usage under a key.
    pub fn new(
        day: u64,
        owner: SessionOwner,
        session: Option<Arc<str>>,
        entry: UsageEntry,
    ) -> Self {
        Self { day, owner, session, entry }
    }
}

/// Tokens and money as budgets count them: those that vendors reported, and those assumed for
/// requests that broke off.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct BudgetUse {
    /// Input and output tokens.
    pub tokens: u64,
    /// US dollars.
    pub usd: f64,
    /// The number of requests with a cost that is neither known nor assumed.
    pub unknown_costs: u64,
}

impl BudgetUse {
    /// The sum with an entry.
    #[must_use]
    pub fn with(mut self, entry: &UsageEntry) -> Self {
        let tokens = [entry.input_tokens, entry.output_tokens, entry.assumed_tokens];
        self.tokens = tokens.into_iter().fold(self.tokens, u64::saturating_add);
        self.usd += entry.known_cost_usd + entry.assumed_cost_usd;
        let unknown = entry.unknown_costs.saturating_sub(entry.assumed_costs);
        self.unknown_costs = self.unknown_costs.saturating_add(unknown);
        self
    }
}

/// Sums up usage per day, owner, session, model and tool, for all processes that share the store.
/// It keeps no contents, and outlives sessions. All methods block.
pub trait UsageStore: Send + Sync + 'static {
    /// Adds entries to the sums of the present day.
    ///
    /// # Errors
    /// A failure of the store. Then nothing was added.
    fn add_usage(
        &self,
        owner: &SessionOwner,
        session: Option<&Arc<str>>,
        entries: &[UsageEntry],
    ) -> Result<(), SessionStoreError>;

    /// All sums since a [day](StoredUsage::day), the oldest day first.
    ///
    /// # Errors
    /// A failure of the store.
    fn usage_since(&self, day: u64) -> Result<Vec<StoredUsage>, SessionStoreError>;

    /// The sum of the present day: of an owner, or of all.
    ///
    /// # Errors
    /// A failure of the store.
    fn spent_today(&self, owner: Option<&SessionOwner>) -> Result<BudgetUse, SessionStoreError>;

    /// The id with which a store of sessions [says](crate::SessionStore::usage_store_id) that it adds
    /// to these sums within its own writes. Default: none does.
    fn store_id(&self) -> Option<StoreId> {
        None
    }
}

impl fmt::Debug for dyn UsageStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UsageStore")
    }
}
