//! Prints the progress of a run on the terminal, iteration by iteration.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use parking_lot::Mutex;

use serde_json::Value;
use toolcrib_core::{Audience, Event, EventKind, StopReason, ToolName, WithheldBy, WithheldTool};

use super::{
    note,
    text::{
        BAD, DIM, GOOD, STRONG, WARN, arguments, count, duration, grouped, one_line, safe,
        servers_away,
    },
};

/// The length limit of a result on a line.
const RESULT_CHARS: usize = 160;

/// Above this limit names are only counted.
const MOST_NAMES: usize = 8;

/// Prints progress for people, on standard error.
pub(crate) struct Narrator {
    verbose: bool,
    /// The arguments of running calls, by call id: a line is printed when the call ends.
    under_way: Mutex<Vec<(String, Value)>>,
    /// The number of unavailable sources, as printed last.
    away: AtomicUsize,
}

impl Narrator {
    pub(crate) fn new(verbose: bool) -> Self {
        Self { verbose, under_way: Mutex::default(), away: AtomicUsize::new(0) }
    }

    pub(crate) fn tell(&self, event: &Event) {
        match &event.kind {
            EventKind::TurnStart { model, .. } => {
                note!("{DIM}model {}{DIM:#}", safe(model));
            }
            EventKind::ToolsOffered { tools, withheld, withheld_tools, .. } => {
                let iteration = event.iteration.unwrap_or_default();
                let names: Vec<_> = tools.iter().map(ToolName::as_str).collect();
                let names = match names.len() {
                    0..=MOST_NAMES => names.join(", "),
                    n => {
                        let first: Vec<_> = names.iter().take(MOST_NAMES).copied().collect();
                        format!("{} and {} more", first.join(", "), n - MOST_NAMES)
                    }
                };
                // An unavailable source appears among the withheld, but is not a tool.
                let away = self.away(*withheld, withheld_tools);
                let known = count(tools.len() + withheld - away, "tool");
                let away = servers_away(away);
                let colon = if names.is_empty() { "" } else { ": " };
                note!(
                    "{STRONG}iteration {iteration}{STRONG:#}  offers {} of \
                     {known}{away}{colon}{DIM}{names}{DIM:#}",
                    tools.len()
                );
            }
            EventKind::DiscoveryFailed { provider, error, .. } => {
                note!("  {BAD}✗{BAD:#} provider {}: {}", safe(provider), safe(error));
            }
            EventKind::ProviderStale { provider, age_ms, tool_count } => {
                let age = duration(Duration::from_millis(*age_ms));
                let tools = count(*tool_count, "tool");
                note!(
                    "  {WARN}{}: {tools} from the list of {age} ago are offered{WARN:#}",
                    safe(provider)
                );
            }
            EventKind::ProviderOmitted { provider, name, .. } => {
                note!("  {WARN}{}: {} unavailable{WARN:#}", safe(provider), safe(name));
            }
            EventKind::ReliabilityRetried { provider, to, wait_ms, error_class, .. } => {
                let next = match to {
                    Some(to) => format!("{} is used instead", safe(to)),
                    None => format!("retry in {}", duration(Duration::from_millis(*wait_ms))),
                };
                note!("  {WARN}{}: {error_class}; {next}{WARN:#}", safe(provider));
            }
            EventKind::ToolStart { call_id, args, .. } => {
                self.under_way().push((call_id.to_string(), args.clone()));
            }
            EventKind::ToolProgress {
                tool, message, percent, audience: Audience::User, ..
            } => {
                let percent = percent.map(|p| format!(" {p} %")).unwrap_or_default();
                note!(
                    "  {DIM}… {}{percent} {}{DIM:#}",
                    safe(tool),
                    one_line(message, RESULT_CHARS)
                );
            }
            EventKind::ToolEnd { call_id, tool, code, value, duration_ms, cause, .. } => {
                let args = self.take(call_id);
                let (mark, style) = if code.is_none() { ("✓", GOOD) } else { ("✗", BAD) };
                let tool = one_line(tool, 64);
                note!(
                    "  {style}{mark}{style:#} {STRONG}{tool}{STRONG:#} {} {DIM}{duration_ms} ms{DIM:#}",
                    arguments(&args)
                );
                let code = code.map(|code| format!("{BAD}{code}{BAD:#} ")).unwrap_or_default();
                if self.verbose {
                    note!("    {code}{}", safe(value).replace('\n', "\n    "));
                } else {
                    note!("    {code}{}", one_line(value, RESULT_CHARS));
                }
                if let Some(cause) = cause {
                    note!("    {DIM}cause: {}{DIM:#}", one_line(cause, RESULT_CHARS));
                }
            }
            EventKind::ArtifactKept { id, tool, kind, bytes, lines, .. } => {
                let (bytes, lines) = (grouped(*bytes), grouped(*lines));
                note!(
                    "  {DIM}… {} is stored as artifact {}: {}, {bytes} bytes in {lines} lines{DIM:#}",
                    one_line(tool, 64),
                    safe(id),
                    safe(kind)
                );
            }
            EventKind::ArtifactNotKept { tool, error, .. } => {
                note!("  {WARN}{}: {}{WARN:#}", one_line(tool, 64), one_line(error, RESULT_CHARS));
            }
            EventKind::ModelEnd { stop: Some(StopReason::MaxTokens), .. } => {
                note!("  {WARN}the model reached its output limit: its text is cut off{WARN:#}");
            }
            EventKind::ModelReasoning { text } if self.verbose => {
                note!("  {DIM}{}{DIM:#}", safe(text).replace('\n', "\n  "));
            }
            EventKind::PrefixChanged { tools_added, tools_removed, tools_changed, .. }
                if self.verbose =>
            {
                let changes = [
                    ("added", tools_added),
                    ("removed", tools_removed),
                    ("changed", tools_changed),
                ];
                let changes = changes.into_iter().filter(|(_, tools)| !tools.is_empty());
                let changes = changes.map(|(how, tools)| {
                    let names: Vec<_> = tools.iter().map(ToolName::as_str).collect();
                    format!("; tools {how}: {}", names.join(", "))
                });
                let changes: String = changes.collect();
                note!("  {DIM}the prompt cache is invalidated{changes}{DIM:#}");
            }
            EventKind::SkillActivated { skill, .. } => {
                note!("  {WARN}skill {skill} is active{WARN:#}");
            }
            EventKind::SkillDeactivated { skill, .. } => {
                note!("  {WARN}skill {skill} is deactivated{WARN:#}");
            }
            EventKind::StepSkipped { skill, step, reason, held } => {
                let what = if *held { "was requested to be skipped" } else { "was skipped" };
                let reason = safe(&one_line(reason, 200));
                note!("  {WARN}step {step} of skill {skill} {what}: {reason}{WARN:#}");
            }
            EventKind::StepsUnfinished { skill, remaining } => {
                let left: Vec<_> = remaining.iter().map(ToolName::as_str).collect();
                note!("  {WARN}remaining steps of skill {skill}: {}{WARN:#}", left.join(", "));
            }
            EventKind::SkillReloadFailed { problem } => {
                note!(
                    "  {WARN}a changed skill is invalid; its previous version stays in use: \
                    {}{WARN:#}",
                    safe(problem)
                );
            }
            EventKind::PolicyDenied { tool, rule, .. } => {
                note!("  {WARN}{} denied by {}{WARN:#}", one_line(tool, 64), safe(rule));
            }
            EventKind::TurnEnd { .. } => {
                note!("");
            }
            _ => {}
        }
    }

    /// The number of unavailable sources, returned once per change.
    fn away(&self, withheld: usize, told: &[WithheldTool]) -> usize {
        if withheld == 0 || !told.is_empty() {
            let is_source =
                |one: &&WithheldTool| one.by == WithheldBy::Discovery && one.name.contains('*');
            self.away.store(told.iter().filter(is_source).count(), Ordering::Relaxed);
        }
        self.away.load(Ordering::Relaxed).min(withheld)
    }

    fn take(&self, call_id: &str) -> Value {
        let mut calls = self.under_way();
        let found = calls.iter().position(|(id, _)| id == call_id);
        found.map(|position| calls.remove(position).1).unwrap_or_default()
    }

    fn under_way(&self) -> parking_lot::MutexGuard<'_, Vec<(String, Value)>> {
        self.under_way.lock()
    }
}
