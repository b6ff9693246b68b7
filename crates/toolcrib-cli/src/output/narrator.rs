//! Prints the progress of a run on the terminal, iteration by iteration.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use toolcrib_core::{
    Audience, ErrorCode, Event, EventKind, StopReason, ToolName, WithheldBy, WithheldTool,
};

use super::{
    print::note,
    retries::retry_wait,
    terminal::{Call, LiveText, Spinner, Stream, fitted, is_live},
    text::{
        BAD, DIM, GOOD, STRONG, WARN, arguments, count, duration, grouped, one_line, safe,
        servers_away,
    },
};

/// The length limit of a result on a line.
const RESULT_CHARS: usize = 160;

/// The characters of a notice about an image.
const NOTICE_CHARS: usize = 400;

/// Above this limit names are only counted.
const MOST_NAMES: usize = 8;

/// Prints progress for people: the narration on standard error, and the model's text on standard
/// output while it is written, if both are terminals.
pub(crate) struct Narrator {
    verbose: bool,
    /// Whether the iterations and the model are not told, unless `verbose`: in a chat they are
    /// mostly the same.
    is_brief: bool,
    spinner: Spinner,
    text: Mutex<LiveText>,
    /// The number of unavailable sources, as printed last.
    away: AtomicUsize,
}

impl Narrator {
    /// A narrator that also shows the model's text, if `shows_text` and there is a terminal for it.
    pub(crate) fn new(verbose: bool, shows_text: bool) -> Self {
        Self {
            verbose,
            is_brief: false,
            spinner: Spinner::new(),
            text: Mutex::new(LiveText::new(shows_text && is_live())),
            away: AtomicUsize::new(0),
        }
    }

    /// The same for a turn of a chat.
    pub(crate) fn of_chat(verbose: bool) -> Self {
        Self { is_brief: !verbose, ..Self::new(verbose, true) }
    }

    /// Whether an answer is on the terminal already.
    pub(crate) fn shows(&self, answer: &str) -> bool {
        self.text.lock().shows(answer)
    }

    pub(crate) fn tell(&self, event: &Event) {
        match &event.kind {
            EventKind::TurnStart { model, .. } if !self.is_brief => {
                note!("{DIM}model {}{DIM:#}", safe(model));
            }
            EventKind::TurnResumed { ended, lost, repeated, begun, .. } => {
                let parts = [
                    (ended.len(), "kept"),
                    (lost.len(), "outcome unknown"),
                    (repeated.len(), "made once more"),
                    (begun.len(), "still to make"),
                ];
                let parts = parts.into_iter().filter(|(calls, _)| *calls > 0);
                let parts: Vec<_> = parts.map(|(calls, what)| format!("{calls} {what}")).collect();
                let colon = if parts.is_empty() { "" } else { ", calls: " };
                note!("{GOOD}resumed{GOOD:#}{colon}{}", parts.join(", "));
            }
            EventKind::IterationStart => self.begin("listing tools"),
            EventKind::ModelStart { .. } => {
                self.text.lock().begin();
                self.begin("waiting for the model");
            }
            EventKind::ModelText { text } => {
                let is_shown = self.text.lock().push(text);
                let mut activity = self.spinner.activity();
                if is_shown {
                    activity.text_at = Some(Instant::now());
                } else if let Some((phase, _)) = &mut activity.phase {
                    *phase = "the model is writing";
                }
            }
            EventKind::ModelEnd { calls, stop, .. } => {
                self.end_phase();
                if self.text.lock().end() && *calls > 0 {
                    note!("");
                }
                if *stop == Some(StopReason::MaxTokens) {
                    note!(
                        "  {WARN}the model reached its output limit: its answer is cut off{WARN:#}"
                    );
                }
            }
            EventKind::ModelSuperseded { .. } if self.text.lock().end() => {
                note!("  {WARN}this text is discarded; the model is queried again{WARN:#}");
            }
            EventKind::LimitReached { message, .. } => {
                note!("  {WARN}{}{WARN:#}", one_line(message, RESULT_CHARS));
            }
            EventKind::ContextCompacted { left_out, .. } => {
                let left_out = count(*left_out, "older message");
                note!(
                    "  {WARN}the context window is full: {left_out} of the model and its tools left \
                     out{WARN:#}"
                );
            }
            EventKind::ImageNoticed { notice } => {
                let told = format!("{}: {}", notice.image, notice.reason);
                note!("  {WARN}{}{WARN:#}", one_line(&told, NOTICE_CHARS));
            }
            EventKind::ToolsOffered { tools, deferred, withheld, withheld_tools, .. } => {
                self.end_phase();
                if self.is_brief {
                    return;
                }
                let iteration = event.iteration.unwrap_or_default();
                // An unavailable source appears among the withheld, but is not a tool.
                let away = self.away(*withheld, withheld_tools);
                let known = count(tools.len() + deferred + withheld - away, "tool");
                let away = servers_away(away);
                let colon = if tools.is_empty() { "" } else { ": " };
                let offers = format!("  offers {} of {known}{away}{colon}", tools.len());
                let used = format!("iteration {iteration}{offers}").chars().count();
                let names = names(tools, Stream::Err.columns().map(|all| all.saturating_sub(used)));
                note!("{STRONG}iteration {iteration}{STRONG:#}{offers}{DIM}{names}{DIM:#}");
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
                let provider = safe(provider);
                match to {
                    Some(to) => {
                        let to = safe(to);
                        note!("  {WARN}{provider}: {error_class}; {to} is used instead{WARN:#}");
                    }
                    None => {
                        let waiting = retry_wait(*wait_ms, error_class);
                        note!("  {WARN}{provider}: {waiting}{WARN:#}");
                    }
                }
            }
            EventKind::ToolStart { call_id, tool, args, .. } => {
                let name = one_line(tool, 64);
                note!("  {DIM}→{DIM:#} {STRONG}{name}{STRONG:#} {}", arguments(args));
                self.spinner.activity().calls.push(Call {
                    id: Arc::clone(call_id),
                    tool: name,
                    args: arguments(args),
                    since: Instant::now(),
                    progress: String::new(),
                });
            }
            EventKind::ToolProgress { call_id, tool, message, percent, .. }
                if event.is_for(Audience::User) =>
            {
                let percent = percent.map(|p| format!("{p} % ")).unwrap_or_default();
                let progress = format!("{percent}{}", one_line(message, RESULT_CHARS));
                if self.spinner.is_drawn() && !self.verbose {
                    let mut activity = self.spinner.activity();
                    let call = activity.calls.iter_mut().find(|call| call.id == *call_id);
                    call.into_iter().for_each(|call| call.progress.clone_from(&progress));
                } else {
                    note!("  {DIM}… {} {progress}{DIM:#}", safe(tool));
                }
            }
            EventKind::ToolEnd { call_id, tool, code, value, duration_ms, cause, .. } => {
                let took = duration(Duration::from_millis(*duration_ms));
                self.ended(call_id, tool, *code, value, &took);
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
            EventKind::ModelReasoning { text } if self.verbose => {
                note!("  {DIM}{}{DIM:#}", safe(text).replace('\n', "\n  "));
            }
            EventKind::ModelReasoning { .. } => {
                if let Some((phase, _)) = &mut self.spinner.activity().phase {
                    *phase = "the model is reasoning";
                }
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
                self.end_phase();
                // The answer follows, unless it was the last text.
                if !self.text.lock().end() {
                    note!("");
                }
            }
            _ => {}
        }
    }

    /// Begins to wait for something.
    fn begin(&self, phase: &'static str) {
        self.spinner.activity().phase = Some((phase, Instant::now()));
    }

    fn end_phase(&self) {
        let mut activity = self.spinner.activity();
        (activity.phase, activity.text_at) = (None, None);
    }

    /// Prints the end of a call: one line, or the whole result.
    fn ended(&self, id: &str, tool: &str, code: Option<ErrorCode>, value: &str, took: &str) {
        let args = {
            let mut activity = self.spinner.activity();
            let at = activity.calls.iter().position(|call| *call.id == *id);
            let call = at.map(|at| activity.calls.remove(at));
            // Of two calls of one tool, the arguments say which has ended.
            let is_alone = |call: &Call| activity.calls.iter().all(|other| other.tool != call.tool);
            call.filter(|call| !is_alone(call)).map(|call| format!(" {}", call.args))
        };
        let (mark, style) = if code.is_none() { ("✓", GOOD) } else { ("✗", BAD) };
        let (tool, args) = (one_line(tool, 64), args.unwrap_or_default());
        let code = code.map(|code| format!("{code} ")).unwrap_or_default();
        let head = format!("  {mark} {tool}{args}  {took}  {code}");
        let room = Stream::Err.columns().map_or(RESULT_CHARS, |columns| {
            let left = columns.saturating_sub(head.chars().count());
            // Else it has its own line.
            if left < 20 { columns.saturating_sub(4) } else { left }
        });
        let result = if self.verbose { String::new() } else { one_line(value, RESULT_CHARS) };
        let result = fitted(&result, room);
        let gap = if code.is_empty() && result.is_empty() { "" } else { "  " };
        note!(
            "  {style}{mark}{style:#} {STRONG}{tool}{STRONG:#}{args}  \
             {DIM}{took}{DIM:#}{gap}{BAD}{code}{BAD:#}{result}"
        );
        if self.verbose {
            note!("    {}", safe(value).replace('\n', "\n    "));
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
}

/// Some of the names, and the number of the others: at most eight, and what fits these columns.
fn names(tools: &[ToolName], columns: Option<usize>) -> String {
    let text = |shown: usize| {
        let first: Vec<_> = tools.iter().take(shown).map(ToolName::as_str).collect();
        match tools.len() - first.len() {
            0 => first.join(", "),
            more if first.is_empty() => count(more, "tool"),
            more => format!("{} and {more} more", first.join(", ")),
        }
    };
    let fits = |text: &String| columns.is_none_or(|columns| text.chars().count() <= columns);
    let most = tools.len().min(MOST_NAMES);
    (1..=most).rev().map(text).find(fits).unwrap_or_else(|| text(most.min(1)))
}
