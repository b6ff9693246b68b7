//! The price of a model.

use std::{fmt, sync::Arc};

use serde::Serialize;

use super::model::{Model, ModelRequest, ModelStream};
use crate::messages::{image::ImageSupport, message::Usage};

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
    pub fn new(model: impl Model, price: Price) -> Self {
        Self { model: Arc::new(model), price }
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
