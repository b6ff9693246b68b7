//! `[price."MODEL"]`, `prices` and `[budget]`: the prices of models, and the budgets of all runs.

use std::sync::Arc;

use toolcrib_agent::{Allowance, Budget};
use toolcrib_config::{Located, Spot, Table, Value};
use toolcrib_core::Price;

/// The prices of a file, by the model's name in events.
#[derive(Debug, Default)]
pub(crate) struct PricesSection {
    pub(crate) prices: Vec<(Located<Arc<str>>, Price)>,
    /// Another file with prices. Those of this file have precedence.
    pub(crate) file: Option<Located<Arc<str>>>,
}

impl PricesSection {
    /// Reads the prices of the project file.
    pub(crate) fn read(file: &Table<'_>) -> Self {
        Self { prices: Self::read_all(file), file: file.text("prices") }
    }

    /// Reads the prices of a file with nothing else.
    pub(crate) fn read_all(file: &Table<'_>) -> Vec<(Located<Arc<str>>, Price)> {
        let Some(prices) = file.value("price").and_then(|value| value.entries("`[price]`")) else {
            return Vec::new();
        };
        prices.rest().filter_map(|(name, value)| Self::price(name, &value)).collect()
    }

    fn price(name: Located<Arc<str>>, value: &Value<'_>) -> Option<(Located<Arc<str>>, Price)> {
        let shown = name.value.escape_debug();
        if !value.is_table() {
            let help = "write `[price.\"VENDOR:MODEL\"]`, and below it `input` and `output` in US \
                dollars per million tokens";
            value.refuse(format!("`{shown}` is not a price"), help);
            return None;
        }
        let price = value.table(&format!("`[price.{}]`", written(&name.value)), |table| {
            let required = |key, example| {
                table.required(key, example);
                table.number(key, 0.0..)
            };
            let (input, output) = (required("input", "2.5"), required("output", "10"));
            let cached_input = table.number("cached_input", 0.0..);
            let cache_write = table.number("cache_write", 0.0..);
            Some(Price { input: input?, cached_input, cache_write, output: output? })
        });
        Some((name, price??))
    }
}

/// The name as a key of TOML: in quotes, unless it is a bare key.
pub(crate) fn written(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if !name.is_empty() && name.chars().all(is_bare) {
        return name.to_owned();
    }
    format!("\"{}\"", name.escape_debug())
}

/// `[budget]`.
#[derive(Debug, Default)]
pub(crate) struct BudgetSection {
    pub(crate) budget: Budget,
    /// The positions of the limits of money.
    pub(crate) money: Vec<Spot>,
}

impl BudgetSection {
    pub(crate) fn read(table: &Table<'_>) -> Self {
        let mut money = Vec::new();
        let mut allowance = |key| {
            table
                .table(key, |table| {
                    money.extend(table.value("max_cost_usd").map(|cost| cost.at()));
                    Allowance {
                        max_tokens: table.integer("max_tokens", 1..=u64::MAX),
                        max_cost_usd: table.number("max_cost_usd", 1e-6..),
                    }
                })
                .unwrap_or_default()
        };
        let budget = Budget { day: allowance("day"), principal: allowance("principal") };
        Self { budget, money }
    }
}
