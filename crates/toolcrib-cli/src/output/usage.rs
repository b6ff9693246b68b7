//! Tokens and money of all runs.

use serde::Serialize;
use toolcrib_agent::Allowance;
use toolcrib_core::{BudgetUse, Usage, UsageEntry, UsageSource};

use super::{
    print::{note, say},
    text::{DIM, GOOD, STRONG, WARN, count, grouped, safe},
    trace::{money, spent},
};
use crate::args::UsageGrouping;

/// The output of `usage --json`.
#[derive(Serialize)]
pub(crate) struct UsageJson {
    pub(crate) by: UsageGrouping,
    pub(crate) since: String,
    pub(crate) lines: Vec<UsageLine>,
    pub(crate) total: UsageLine,
    pub(crate) budget: Vec<BudgetLine>,
}

/// A sum.
#[derive(Default, Serialize)]
pub(crate) struct UsageLine {
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    model_requests: u64,
    calls: u64,
    input_tokens: u64,
    cached_input_tokens: u64,
    cache_write_tokens: u64,
    output_tokens: u64,
    /// `None` if a part of it is not known.
    cost_usd: Option<f64>,
    known_cost_usd: f64,
    unknown_costs: u64,
    definition_bytes: u64,
    result_chars: u64,
}

impl UsageLine {
    pub(crate) fn new(name: String) -> Self {
        Self { name, cost_usd: Some(0.0), ..Self::default() }
    }

    pub(crate) fn add(&mut self, entry: &UsageEntry) {
        match entry.source {
            UsageSource::Model(_) => self.model_requests += entry.count,
            UsageSource::Tool(_) => self.calls += entry.count,
        }
        self.input_tokens += entry.input_tokens;
        self.cached_input_tokens += entry.cached_input_tokens;
        self.cache_write_tokens += entry.cache_write_tokens;
        self.output_tokens += entry.output_tokens;
        self.known_cost_usd += entry.known_cost_usd;
        self.unknown_costs += entry.unknown_costs;
        self.cost_usd = (self.unknown_costs == 0).then_some(self.known_cost_usd);
        self.definition_bytes += entry.definition_bytes;
        self.result_chars += entry.result_chars;
    }

    fn words(&self, by: UsageGrouping) -> String {
        let calls = count(self.calls, "call");
        if by == UsageGrouping::Tool {
            let cost = match self.known_cost_usd {
                0.0 => String::new(),
                cost => format!(", {}", money(Some(cost))),
            };
            return format!(
                "{calls}, {} characters of results, {} bytes of definitions in requests{cost}",
                grouped(self.result_chars),
                grouped(self.definition_bytes)
            );
        }
        let requests = count(self.model_requests, "model request");
        let calls = if by == UsageGrouping::Model { String::new() } else { format!(", {calls}") };
        let usage = Usage {
            input_tokens: self.input_tokens,
            cached_input_tokens: self.cached_input_tokens,
            cache_write_tokens: self.cache_write_tokens,
            output_tokens: self.output_tokens,
            cost_usd: self.cost_usd,
        };
        let known = match self.unknown_costs {
            0 => String::new(),
            unknown => format!(
                " of {}; {} is known",
                count(unknown, "request"),
                money(Some(self.known_cost_usd))
            ),
        };
        format!("{requests}{calls}, {}{known}", spent(&usage))
    }
}

/// The use of a budget today.
#[derive(Serialize)]
pub(crate) struct BudgetLine {
    of: String,
    tokens: u64,
    max_tokens: Option<u64>,
    /// The cost as budgets count it, with that assumed for requests that broke off.
    cost_usd: Option<f64>,
    max_cost_usd: Option<f64>,
}

impl BudgetLine {
    pub(crate) fn new(of: String, allowance: &Allowance, spent: &BudgetUse) -> Self {
        Self {
            of,
            tokens: spent.tokens,
            max_tokens: allowance.max_tokens,
            cost_usd: (spent.unknown_costs == 0).then_some(spent.usd),
            max_cost_usd: allowance.max_cost_usd,
        }
    }
}

/// Prints the use of budgets.
pub(crate) fn budget(lines: &[BudgetLine]) {
    for line in lines {
        let tokens = line
            .max_tokens
            .map(|most| format!("{} of {} tokens", grouped(line.tokens), grouped(most)));
        let cost = line
            .max_cost_usd
            .map(|most| format!("{} of {}", money(line.cost_usd), money(Some(most))));
        let parts: Vec<_> = tokens.into_iter().chain(cost).collect();
        note!("{WARN}budget{WARN:#} today, {}: {}", safe(&line.of), parts.join(", "));
    }
}

/// Prints the sums.
pub(crate) fn usage(usage: &UsageJson, quiet: bool) {
    for line in &usage.lines {
        say!("{GOOD}{}{GOOD:#}", safe(&line.name));
        say!("    {DIM}{}{DIM:#}", line.words(usage.by));
    }
    if usage.lines.is_empty() {
        note!("nothing was used since {}", usage.since);
    } else if usage.lines.len() > 1 {
        say!("{STRONG}total{STRONG:#} since {}", usage.since);
        say!("    {}", usage.total.words(usage.by));
    }
    if !quiet {
        budget(&usage.budget);
    }
}
