//! Tokens and money of all runs.

use serde::Serialize;
use toolcrib_agent::Allowance;
use toolcrib_core::{BudgetUse, Usage, UsageEntry, UsageSource};

use super::{
    chart::{Chart, Row},
    print::{note, say},
    text::{STRONG, WARN, count, grouped, safe},
    trace::{money, spent},
};
use crate::args::{Day, UsageGrouping};

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
#[derive(Clone, Default, Serialize)]
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
#[derive(Clone, Serialize)]
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
        note!("{WARN}budget{WARN:#} today, {}: {}", safe(&line.of), line.words());
    }
}

impl BudgetLine {
    /// Whose budget it is.
    pub(super) fn of(&self) -> &str {
        &self.of
    }

    /// The use of it.
    pub(super) fn words(&self) -> String {
        let tokens = self
            .max_tokens
            .map(|most| format!("{} of {} tokens", grouped(self.tokens), grouped(most)));
        let cost = self
            .max_cost_usd
            .map(|most| format!("{} of {}", money(self.cost_usd), money(Some(most))));
        tokens.into_iter().chain(cost).collect::<Vec<_>>().join(", ")
    }
}

/// Prints the sums.
pub(crate) fn usage(usage: &UsageJson, quiet: bool) {
    usage.chart().print();
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

/// The unit of the length of a bar.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Measure {
    Cost,
    Tokens,
    Calls,
}

impl Measure {
    /// Cost if all of it is known and there is some, otherwise tokens; tools have calls.
    fn of(usage: &UsageJson) -> Self {
        match usage.total.cost_usd {
            _ if usage.by == UsageGrouping::Tool => Self::Calls,
            Some(cost) if cost > 0.0 => Self::Cost,
            _ => Self::Tokens,
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "the length of a bar")]
    fn value(self, line: &UsageLine) -> f64 {
        match self {
            Self::Cost => line.known_cost_usd,
            Self::Tokens => (line.input_tokens + line.output_tokens) as f64,
            Self::Calls => line.calls as f64,
        }
    }

    fn words(self, line: &UsageLine) -> String {
        match self {
            Self::Cost => money(Some(line.known_cost_usd)),
            Self::Tokens => match line.input_tokens + line.output_tokens {
                1 => "1 token".to_owned(),
                tokens => format!("{} tokens", grouped(tokens)),
            },
            Self::Calls => match line.calls {
                1 => "1 call".to_owned(),
                calls => format!("{} calls", grouped(calls)),
            },
        }
    }
}

impl UsageJson {
    /// The sums as bars: days in their order with the gaps between them, all else the largest first.
    pub(super) fn chart(&self) -> Chart {
        let measure = Measure::of(self);
        let mut lines: Vec<_> = self.lines.iter().collect();
        if self.by != UsageGrouping::Day {
            lines.sort_by(|a, b| measure.value(b).total_cmp(&measure.value(a)));
        }
        let largest = lines.iter().map(|line| measure.value(line)).fold(0.0, f64::max);
        let mut rows = Vec::new();
        let mut last: Option<Day> = None;
        for line in lines {
            let day = line.name.parse::<Day>().ok().filter(|_| self.by == UsageGrouping::Day);
            if let (Some(last), Some(day)) = (last, day)
                && let unused @ 1.. = day.0.saturating_sub(last.0 + 1)
            {
                rows.push(Row::Gap { words: format!("{} without use", count(unused, "day")) });
            }
            last = day;
            let share = if largest > 0.0 { measure.value(line) / largest } else { 0.0 };
            let (value, details) = (measure.words(line), line.words(self.by));
            rows.push(Row::Bar { name: line.name.clone(), share, value, details });
        }
        Chart {
            title: match self.by {
                UsageGrouping::Day => "Day",
                UsageGrouping::Session => "Session",
                UsageGrouping::Principal => "Principal",
                UsageGrouping::Model => "Model",
                UsageGrouping::Tool => "Tool",
            },
            measure: match measure {
                Measure::Cost => "cost",
                Measure::Tokens => "tokens, in and out",
                Measure::Calls => "calls",
            },
            rows,
        }
    }
}
