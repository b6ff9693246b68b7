//! The trace of a run: its stored events, joined with its messages and calls.

mod build;
mod name;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolcrib_core::{Arguments, SessionOwner, TracedEvent, TurnState, Usage};

pub(crate) use self::{build::trace, name::RunName};

/// The outcome of a call that succeeded.
pub(crate) const OK: &str = "ok";

/// How a process ends whose calls wait for approval.
const AWAITING_APPROVAL: &str = "awaiting_approval";

/// A run.
#[derive(Debug, Serialize)]
pub(crate) struct Trace {
    /// The run, as `SESSION/TURN`.
    pub(crate) run: String,
    pub(crate) session: Arc<str>,
    pub(crate) session_name: Option<Arc<str>>,
    pub(crate) turn: u32,
    pub(crate) owner: SessionOwner,
    pub(crate) personality: Arc<str>,
    pub(crate) model: Arc<str>,
    pub(crate) began_ms: u64,
    pub(crate) ended_ms: Option<u64>,
    #[serde(flatten)]
    pub(crate) state: TurnState,
    pub(crate) usage: Usage,
    /// The user's message.
    pub(crate) message: Arc<str>,
    /// The last text of the model, if it was not followed by calls.
    pub(crate) answer: Option<Arc<str>>,
    pub(crate) iterations: Vec<TracedIteration>,
    /// The events outside of iterations.
    pub(crate) notes: Vec<Note>,
    /// Where a process ended before the first iteration.
    pub(crate) interruptions: Vec<Interruption>,
    /// The event of its end; `None` of a killed run.
    pub(crate) end: Option<Note>,
    /// Whether events are missing: the run was made by an older program, or reached the limit.
    pub(crate) is_partial: bool,
}

/// An iteration, or the wrap-up after the last one.
#[derive(Debug, Default, Serialize)]
pub(crate) struct TracedIteration {
    /// The number; `None` for the wrap-up.
    pub(crate) number: Option<u32>,
    /// Milliseconds since the run began.
    pub(crate) at_ms: u64,
    /// The sources that were listed for its menu.
    pub(crate) discovery: Vec<TracedDiscovery>,
    pub(crate) menu: Option<TracedMenu>,
    /// More than one if a request was repeated.
    pub(crate) requests: Vec<TracedRequest>,
    /// The model's text.
    pub(crate) text: Arc<str>,
    /// In the order in which the model wrote them, each once.
    pub(crate) calls: Vec<TracedCall>,
    /// The other events.
    pub(crate) notes: Vec<Note>,
    /// Where a process of the run ended before the run did.
    pub(crate) interruptions: Vec<Interruption>,
}

/// A place at which a process of a run ended before the run did. The times of all processes count
/// from the beginning of the run.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Interruption {
    pub(crate) why: InterruptionReason,
    /// The last event before it, in milliseconds since the run began.
    pub(crate) at_ms: u64,
    /// The beginning of the process that went on; `None` if none has.
    pub(crate) resumed_ms: Option<u64>,
    /// The calls whose results the history lacked, by what that process made of them.
    #[serde(flatten)]
    pub(crate) calls: InterruptedCalls,
}

/// Why a process ended before its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum InterruptionReason {
    /// It was killed, or could not write its session.
    Died,
    /// A call waited for approval.
    AwaitingApproval,
    /// No end is recorded: it runs, or it died.
    Open,
}

/// The ids of calls that a resumed run found open.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct InterruptedCalls {
    /// The calls that had ended and kept their results.
    #[serde(rename(serialize = "kept"))]
    pub(crate) ended: Vec<String>,
    /// The calls that were not made again and have no result.
    pub(crate) lost: Vec<String>,
    /// The calls that were cut off and repeated.
    pub(crate) repeated: Vec<String>,
    /// The calls that had not begun.
    pub(crate) begun: Vec<String>,
}

/// A step of an iteration.
#[derive(Debug)]
pub(crate) enum TracedStep<'a> {
    Note(&'a Note),
    Request(&'a TracedRequest),
    /// The model's text, before its calls.
    Text(&'a str),
    /// A call with its position.
    Call(usize, &'a TracedCall),
    Interruption(&'a Interruption),
}

impl TracedIteration {
    /// All of it, in the order of time.
    pub(crate) fn steps(&self) -> Vec<TracedStep<'_>> {
        let said = self.requests.last().map_or(self.at_ms, |request| request.at_ms);
        let notes = self.notes.iter().map(|note| (note.at_ms, TracedStep::Note(note)));
        let requests = self.requests.iter().map(|one| (one.at_ms, TracedStep::Request(one)));
        // The answer of the run follows at its end.
        let has_text = !(self.text.is_empty() || self.calls.is_empty());
        let text = has_text.then(|| (said, TracedStep::Text(&self.text)));
        let calls = self.calls.iter().enumerate();
        let calls = calls.map(|(at, call)| (call.at_ms.max(said), TracedStep::Call(at, call)));
        let marks = self.interruptions.iter();
        let marks = marks.map(|mark| (mark.at_ms, TracedStep::Interruption(mark)));
        let mut steps: Vec<_> =
            notes.chain(requests).chain(text).chain(calls).chain(marks).collect();
        steps.sort_by_key(|(at_ms, _)| *at_ms);
        steps.into_iter().map(|(_, step)| step).collect()
    }
}

/// A source that was listed.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct TracedDiscovery {
    pub(crate) provider: String,
    pub(crate) tool_count: u64,
    pub(crate) duration_ms: u64,
    pub(crate) cache: String,
    /// The age of a cached listing, in milliseconds.
    pub(crate) age_ms: Option<u64>,
}

/// The menu of an iteration.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct TracedMenu {
    pub(crate) fingerprint: String,
    /// Whether it differs from the menu of the iteration before.
    pub(crate) changed: bool,
    pub(crate) tools: Vec<String>,
    pub(crate) origins: Vec<String>,
    pub(crate) deferred: usize,
    pub(crate) withheld: usize,
    pub(crate) withheld_tools: Vec<TracedWithheld>,
    pub(crate) duration_ms: u64,
}

/// A withheld tool.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct TracedWithheld {
    pub(crate) name: String,
    pub(crate) origin: String,
    pub(crate) by: String,
    pub(crate) reason: String,
}

/// A request to a model, and its response.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct TracedRequest {
    /// Milliseconds since the run began.
    pub(crate) at_ms: u64,
    pub(crate) model: String,
    pub(crate) messages: u64,
    pub(crate) tools: u64,
    pub(crate) tool_choice: Value,
    pub(crate) request_bytes: u64,
    /// The response; `None` if the program was stopped before it.
    pub(crate) response: Option<TracedResponse>,
}

/// The response of a model, or its failure.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct TracedResponse {
    pub(crate) bytes: u64,
    pub(crate) calls: u64,
    pub(crate) stop: Option<String>,
    pub(crate) usage: Usage,
    pub(crate) duration_ms: u64,
    pub(crate) first_ms: Option<u64>,
    pub(crate) error: Option<String>,
    pub(crate) error_class: Option<String>,
}

/// A call.
#[derive(Debug, Serialize)]
pub(crate) struct TracedCall {
    pub(crate) call_id: Arc<str>,
    pub(crate) tool: String,
    /// The name that the model called, if it is another.
    pub(crate) called: Option<String>,
    pub(crate) origin: Option<String>,
    /// The arguments as the model wrote them.
    pub(crate) arguments: Option<Arguments>,
    /// The arguments that ran, if they differ: a stage or a middleware changed them.
    pub(crate) ran_with: Option<Value>,
    /// Whether the tool declares that it changes nothing; `None` if the call was not made.
    pub(crate) read_only: Option<bool>,
    /// The beginning of the last attempt, in milliseconds since the run began.
    pub(crate) at_ms: u64,
    /// The number of attempts that the death of a process has cut off.
    pub(crate) cut_off: u32,
    /// `ok` or an error code, as the session has it; `None` without an end.
    pub(crate) outcome: Option<Arc<str>>,
    /// The measurements at its end; `None` if its process died before that was stored.
    pub(crate) end: Option<TracedEnd>,
    /// The text that the model read, with its fence.
    pub(crate) result: Option<Arc<str>>,
    pub(crate) untrusted: bool,
    /// The rules that decided.
    pub(crate) policy: Vec<TracedDecision>,
    /// The other events of the call.
    pub(crate) notes: Vec<Note>,
}

/// The end of a call.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct TracedEnd {
    pub(crate) ok: bool,
    pub(crate) code: Option<String>,
    pub(crate) duration_ms: u64,
    pub(crate) cost_usd: Option<f64>,
    /// The size of the text before all stages.
    pub(crate) produced_bytes: u64,
    /// The stages that changed the text.
    pub(crate) stages: Vec<TracedStage>,
    pub(crate) abandoned: bool,
    /// For the operator.
    pub(crate) cause: Option<String>,
}

/// A stage that changed the text of a result.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct TracedStage {
    pub(crate) stage: String,
    pub(crate) bytes: u64,
}

/// A decision of the policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct TracedDecision {
    pub(crate) rule: String,
    pub(crate) effect: String,
    pub(crate) stage: String,
}

/// An event that has no place elsewhere.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Note {
    #[serde(rename = "type")]
    pub(crate) name: Arc<str>,
    pub(crate) at_ms: u64,
    #[serde(flatten)]
    pub(crate) fields: Map<String, Value>,
}

impl Trace {
    /// How the run ended, as one word.
    pub(crate) fn stopped(&self) -> &str {
        match &self.state {
            TurnState::Running if self.awaits_approval() => AWAITING_APPROVAL,
            TurnState::Running => "running",
            TurnState::Ended { stopped, .. } => stopped,
        }
    }

    /// Whether its last process ended because a call waits for approval.
    fn awaits_approval(&self) -> bool {
        self.end.as_ref().is_some_and(Note::awaits_approval)
    }

    pub(crate) fn error(&self) -> Option<&str> {
        match &self.state {
            TurnState::Ended { error, .. } => error.as_deref(),
            TurnState::Running => None,
        }
    }

    pub(crate) fn calls(&self) -> impl Iterator<Item = &TracedCall> {
        self.iterations.iter().flat_map(|iteration| &iteration.calls)
    }

    /// The time from the beginning to the end, in milliseconds.
    pub(crate) fn duration_ms(&self) -> Option<u64> {
        self.ended_ms.map(|ended| ended.saturating_sub(self.began_ms))
    }
}

impl TracedMenu {
    /// The withheld tools with one part and one reason: these two, and the names.
    pub(crate) fn withheld_by_reason(&self) -> Vec<(&str, &str, Vec<&str>)> {
        let mut groups: Vec<(&str, &str, Vec<&str>)> = Vec::new();
        for TracedWithheld { name, by, reason, .. } in &self.withheld_tools {
            // The mark of a list that was cut.
            if name.is_empty() {
                continue;
            }
            let known = groups.iter_mut().find(|group| (group.0, group.1) == (by, reason));
            match known {
                Some((_, _, names)) => names.push(name),
                None => groups.push((by, reason, vec![name])),
            }
        }
        groups
    }
}

impl Note {
    pub(crate) fn of(event: TracedEvent) -> Self {
        Self { name: event.name, at_ms: event.at_ms, fields: event.fields }
    }

    /// Whether it is the end of a process whose calls wait for approval.
    fn awaits_approval(&self) -> bool {
        self.fields.get("stopped").and_then(Value::as_str) == Some(AWAITING_APPROVAL)
    }

    /// Whether a reader of the trace wants it.
    pub(crate) fn is_news(&self) -> bool {
        *self.name != *"agent.turn_start"
    }

    /// The event in words.
    pub(crate) fn words(&self) -> String {
        let mut words = String::new();
        // Its time and its usage are shown with the run.
        let is_end = &*self.name == "agent.turn_end";
        for (field, value) in &self.fields {
            if matches!(&**field, "call_id" | "args_digest" | "digest" | "answer_schema")
                || is_end && matches!(&**field, "usage" | "duration_ms")
            {
                continue;
            }
            let value = match value {
                Value::Null | Value::Bool(false) => continue,
                Value::String(text) => text.clone(),
                Value::Array(items) if items.is_empty() => continue,
                Value::Array(items) if items.iter().all(Value::is_string) => {
                    let names: Vec<_> = items.iter().filter_map(Value::as_str).collect();
                    first_names(&names)
                }
                other => other.to_string(),
            };
            if !words.is_empty() {
                words.push_str("; ");
            }
            words.push_str(&field.replace('_', " "));
            words.push_str(": ");
            words.push_str(&value);
        }
        words
    }
}

/// The first names of a list, and the number of the others.
pub(crate) fn first_names(names: &[&str]) -> String {
    match names {
        [first, second, third, rest @ ..] if rest.len() > 1 => {
            format!("{first}, {second}, {third} and {} more", rest.len())
        }
        names => names.join(", "),
    }
}
