//! Prices, and the port to the store that sums up usage and cost.

use std::{fmt, sync::Arc};

use serde::Serialize;

use crate::{
    image::ImageSupport,
    message::Usage,
    model::{Model, ModelRequest, ModelStream},
    session::{SessionOwner, SessionStoreError, StoreId},
    usage_entry::UsageEntry,
};

/// The price of a model, in US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Price {
    /// Input tokens that are neither read from the prompt cache nor written to it.
    pub input: f64,
    /// Input tokens from the prompt cache. Without it, the cost of a response with such tokens is
    /// unknown.
    pub cached_input: Option<f64>,
    /// Input tokens that the vendor writes to the prompt cache, if it charges them apart. Without
    /// it, the cost of a response with such tokens is unknown.
    pub cache_write: Option<f64>,
    /// Output tokens.
    pub output: f64,
}

impl Price {
    /// The cost of tokens; `None` if a part of them has no price.
    pub fn cost(&self, usage: &Usage) -> Option<f64> {
        let part = |tokens: u64, price: Option<f64>| match tokens {
            0 => Some(0.0),
            tokens => price.map(|price| tokens as f64 * price),
        };
        let apart = usage.cached_input_tokens.saturating_add(usage.cache_write_tokens);
        let plain = usage.input_tokens.saturating_sub(apart);
        let sum = part(plain, Some(self.input))?
            + part(usage.cached_input_tokens, self.cached_input)?
            + part(usage.cache_write_tokens, self.cache_write)?
            + part(usage.output_tokens, Some(self.output))?;
        Some(sum / 1e6)
    }
}

/// A model with a [price](Model::price), which replaces the cost that its responses state.
pub struct PricedModel {
    model: Arc<dyn Model>,
    price: Price,
}

impl PricedModel {
    /// Gives a model a price.
    pub fn new(model: Arc<dyn Model>, price: Price) -> Self {
        Self { model, price }
    }
}

impl Model for PricedModel {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn reports_cost(&self) -> bool {
        true
    }

    fn price(&self) -> Option<Price> {
        Some(self.price)
    }

    fn images(&self) -> ImageSupport {
        self.model.images()
    }

    fn respond(self: Arc<Self>, request: ModelRequest) -> ModelStream {
        Arc::clone(&self.model).respond(request)
    }
}

impl fmt::Debug for PricedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PricedModel").field(&self.model.name()).field(&self.price).finish()
    }
}

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
    /// A sum.
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
