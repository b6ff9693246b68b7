//! Usage of a model or a tool.

use std::sync::Arc;

use serde::Serialize;

use super::message::Usage;

/// The model or the tool that used something.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(tag = "kind", content = "name", rename_all = "snake_case")]
pub enum UsageSource {
    /// A model, by its name in events.
    Model(Arc<str>),
    /// A tool, by its name on the menu.
    Tool(Arc<str>),
}

/// Usage of one model or tool: of one request or call, or a sum.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UsageEntry {
    /// The model or tool.
    #[serde(flatten)]
    pub source: UsageSource,
    /// The number of model requests or calls. A definition that was sent without a call has none.
    pub count: u64,
    /// Tokens. Tools have none.
    pub input_tokens: u64,
    /// Input tokens from the vendor's prompt cache.
    pub cached_input_tokens: u64,
    /// Input tokens written to the vendor's prompt cache.
    pub cache_write_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// The known part of the cost, in US dollars.
    pub known_cost_usd: f64,
    /// The number of requests whose cost is not known.
    pub unknown_costs: u64,
    /// The number of those for which budgets assume a cost.
    pub assumed_costs: u64,
    /// Tokens that budgets assume for requests that broke off before the vendor reported any.
    pub assumed_tokens: u64,
    /// The cost that budgets assume for such requests.
    pub assumed_cost_usd: f64,
    /// The size of a tool's definition in each request that contained it, in bytes of JSON.
    pub definition_bytes: u64,
    /// The size of a tool's results as the model read them the first time, in characters.
    pub result_chars: u64,
}

impl UsageEntry {
    /// Nothing of a source.
    pub fn new(source: UsageSource) -> Self {
        Self {
            source,
            count: 0,
            input_tokens: 0,
            cached_input_tokens: 0,
            cache_write_tokens: 0,
            output_tokens: 0,
            known_cost_usd: 0.0,
            unknown_costs: 0,
            assumed_costs: 0,
            assumed_tokens: 0,
            assumed_cost_usd: 0.0,
            definition_bytes: 0,
            result_chars: 0,
        }
    }

    /// Adds the usage of one request or call.
    #[must_use]
    pub fn used(mut self, usage: &Usage) -> Self {
        self.count += 1;
        self.input_tokens += usage.input_tokens;
        self.cached_input_tokens += usage.cached_input_tokens;
        self.cache_write_tokens += usage.cache_write_tokens;
        self.output_tokens += usage.output_tokens;
        match usage.cost_usd {
            Some(cost) => self.known_cost_usd += cost,
            None => self.unknown_costs += 1,
        }
        self
    }

    /// The cost in US dollars; `None` if a part of it is not known.
    pub fn cost_usd(&self) -> Option<f64> {
        (self.unknown_costs == 0).then_some(self.known_cost_usd)
    }

    /// Adds another entry, whatever its source.
    pub fn add(&mut self, other: &Self) {
        let sum = u64::saturating_add;
        self.count = sum(self.count, other.count);
        self.input_tokens = sum(self.input_tokens, other.input_tokens);
        self.cached_input_tokens = sum(self.cached_input_tokens, other.cached_input_tokens);
        self.cache_write_tokens = sum(self.cache_write_tokens, other.cache_write_tokens);
        self.output_tokens = sum(self.output_tokens, other.output_tokens);
        self.known_cost_usd += other.known_cost_usd;
        self.unknown_costs = sum(self.unknown_costs, other.unknown_costs);
        self.assumed_costs = sum(self.assumed_costs, other.assumed_costs);
        self.assumed_tokens = sum(self.assumed_tokens, other.assumed_tokens);
        self.assumed_cost_usd += other.assumed_cost_usd;
        self.definition_bytes = sum(self.definition_bytes, other.definition_bytes);
        self.result_chars = sum(self.result_chars, other.result_chars);
    }
}
