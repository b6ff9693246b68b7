//! The sides of a run, as its journal has them.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    error::Error,
    future::ready,
    sync::Arc,
};

use futures_util::{future::BoxFuture, stream};
use parking_lot::Mutex;
use serde_json::Value;
use toolcrib_core::{
    Approval, ApprovalRequest, Approver, Arguments, CallDecision, Effect, ErrorCode, Message,
    Middleware, Model, ModelChunk, ModelError, ModelErrorClass, ModelRequest, ModelResponse,
    ModelStream, PendingCall, StopReason, StoredCall, StoredSession, ToolOutput, Usage, unfence,
};

use crate::trace::{Note, OK, Trace, TracedCall};

/// The origins of tools whose bodies change nothing outside of the turn: a replay runs them,
/// because the menus depend on them.
const OF_THE_TURN: [&str; 2] = ["skills", "tool search"];

/// A model that gives the responses of a run again.
pub(super) struct RecordedModel {
    name: String,
    responses: Mutex<VecDeque<ModelResponse>>,
}

impl RecordedModel {
    pub(super) fn new(session: &StoredSession, trace: &Trace) -> Self {
        let messages = session.messages.iter().filter(|stored| stored.turn == trace.turn);
        let requests = trace.iterations.iter().flat_map(|iteration| &iteration.requests);
        let responded = requests.filter_map(|request| request.response.as_ref());
        // The calls of a response that was cut off were not made.
        let mut cut_off = responded
            .filter(|response| response.error.is_none())
            .map(|response| response.stop.as_deref() == Some("max_tokens"));
        let responses = messages.filter_map(|stored| match &stored.message {
            Message::Assistant { text, calls, vendor } => Some(ModelResponse {
                text: text.to_string(),
                calls: calls.clone(),
                usage: Usage::NOTHING,
                stop: match cut_off.next() {
                    Some(true) => StopReason::MaxTokens,
                    _ => StopReason::Finished,
                },
                vendor: vendor.clone(),
            }),
            _ => None,
        });
        Self { name: format!("journal:{}", trace.run), responses: Mutex::new(responses.collect()) }
    }
}

impl Model for RecordedModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn respond(self: Arc<Self>, _request: ModelRequest) -> ModelStream {
        let next = self.responses.lock().pop_front();
        let chunk = next.map(ModelChunk::Done).ok_or_else(|| {
            let problem = "the recorded run has no further response of its model";
            ModelError::new(ModelErrorClass::NoRule, problem)
        });
        Box::pin(stream::iter([chunk]))
    }
}

/// Answers calls with the results of a run, and lets no body run that may change something. What a
/// person decided or answered in the run comes from its journal too, as does what the death of a
/// process left of a call.
pub(super) struct RecordedTools {
    /// The calls that the replay does not decide on by itself, by id; and by tool and arguments, in
    /// order.
    calls: HashMap<Arc<str>, RecordedResult>,
    by_arguments: Mutex<HashMap<String, VecDeque<Arc<str>>>>,
    /// Whether calls of read-only tools are answered too.
    answers_reads: bool,
    answered: Mutex<HashSet<Arc<str>>>,
    /// The last decision of the policy on each call of the replay.
    policy: Mutex<HashMap<Arc<str>, Effect>>,
}

struct RecordedResult {
    text: String,
    is_error: bool,
    /// Whether a person refused it or answered a question in it, or a crash ended it: no body can
    /// give this result again.
    is_final: bool,
}

fn key(tool: &str, arguments: &Value) -> String {
    toolcrib_core::args_digest(tool, arguments).to_string()
}

impl RecordedTools {
    pub(super) fn new(session: &StoredSession, trace: &Trace, answers_reads: bool) -> Self {
        let (mut calls, mut by_arguments) = (HashMap::new(), HashMap::new());
        let made = session.calls.iter().filter(|call| call.turn == trace.turn);
        let made: HashMap<_, _> = made.map(|call| (&*call.call_id, call)).collect();
        for call in trace.calls() {
            let made = made.get(&*call.call_id).copied();
            let is_final = is_final(call);
            // The rest was refused by a rule or a check, which decides again.
            // One that waits, or that a crash left open, has no result yet.
            let Some(text) = call.result.as_deref().or(is_final.then_some("")) else { continue };
            if made.is_none() && !is_final {
                continue;
            }
            let Some((tool, arguments)) = ran(call, made) else { continue };
            let same: &mut VecDeque<_> = by_arguments.entry(key(tool, &arguments)).or_default();
            same.push_back(Arc::clone(&call.call_id));
            let (inside, after) = unfence(text);
            let separator = if after.is_empty() { "" } else { "\n" };
            let result = RecordedResult {
                text: format!("{inside}{separator}{after}"),
                is_error: call.outcome.as_deref() != Some(OK),
                is_final,
            };
            calls.insert(Arc::clone(&call.call_id), result);
        }
        Self {
            calls,
            by_arguments: Mutex::new(by_arguments),
            answers_reads,
            answered: Mutex::default(),
            policy: Mutex::default(),
        }
    }

    /// The number of calls that the journal answered.
    pub(super) fn answered(&self) -> usize {
        self.answered.lock().len()
    }

    pub(super) fn has_answered(&self, call_id: &str) -> bool {
        self.answered.lock().contains(call_id)
    }

    /// Notes a decision of the policy in the replay.
    pub(super) fn decided(&self, call_id: &Arc<str>, effect: Effect) {
        self.policy.lock().insert(Arc::clone(call_id), effect);
    }

    /// The last decision of the policy on a call of the replay; without rules it allows all.
    pub(super) fn decision(&self, call_id: &str) -> Effect {
        self.policy.lock().get(call_id).copied().unwrap_or(Effect::Allow)
    }

    fn decide(&self, call: &PendingCall<'_>) -> CallDecision {
        let of_turn = OF_THE_TURN.contains(&&**call.tool.shared_origin());
        let mut by_arguments = self.by_arguments.lock();
        let same = by_arguments.entry(key(call.tool.name().as_str(), call.args)).or_default();
        // A model that runs now gives its calls other ids.
        let at = same.iter().position(|id| id == call.call_id).unwrap_or(0);
        let recorded = same.remove(at).and_then(|id| self.calls.get(&id));
        let asks_person = call.tool.capabilities().person;
        let is_read = call.tool.annotations().read_only && !self.answers_reads && !asks_person;
        if (of_turn || is_read) && !recorded.is_some_and(|recorded| recorded.is_final) {
            return CallDecision::Proceed;
        }
        let Some(recorded) = recorded else {
            return CallDecision::Deny(
                "a replay makes no call that the recorded run did not make".to_owned(),
            );
        };
        self.answered.lock().insert(Arc::clone(call.call_id));
        match recorded.is_error {
            true => CallDecision::Deny(recorded.text.clone()),
            false => CallDecision::Answer(ToolOutput::text(recorded.text.clone())),
        }
    }
}

/// Whether a person or a crash ended a call: a refusal, a wait for approval, an answer to a
/// question, a cancellation, or a record without an end that was measured.
fn is_final(call: &TracedCall) -> bool {
    let was_refused = |note: &Note| {
        let decision = note.fields.get("decision").and_then(Value::as_str);
        *note.name == *"approval.settled" && decision != Some("granted")
    };
    let is_cancelled = call.outcome.as_deref() == Some(ErrorCode::Cancelled.as_str());
    let settled = call.notes.iter().rfind(|note| *note.name == *"approval.settled");
    let was_asked = call.notes.iter().any(|note| *note.name == *"question.asked");
    call.end.is_none() || is_cancelled || was_asked || settled.is_some_and(was_refused)
}

/// The tool and the arguments of a call as the middleware sees them.
fn ran<'a>(call: &'a TracedCall, made: Option<&'a StoredCall>) -> Option<(&'a str, Value)> {
    if let Some(made) = made {
        return Some((&made.tool, made.arguments.clone()));
    }
    let written = match call.arguments.as_ref()? {
        Arguments::Json(json) => json.clone(),
        Arguments::Text(text) => serde_json::from_str(text).ok()?,
    };
    // `call_tool` has the arguments of its target within its own.
    match &call.called {
        Some(_) => Some((&call.tool, written.get("arguments")?.clone())),
        None => Some((&call.tool, written)),
    }
}

impl Middleware for RecordedTools {
    fn name(&self) -> &str {
        "replay"
    }

    fn call<'a>(
        &'a self,
        call: PendingCall<'a>,
    ) -> BoxFuture<'a, Result<CallDecision, Box<dyn Error + Send + Sync>>> {
        Box::pin(async move { Ok(self.decide(&call)) })
    }
}

/// The approver of a replay. A call of which a body runs only reads, and the journal has no refusal of
/// it; no person is asked.
pub(super) struct RecordedApprovals;

impl Approver for RecordedApprovals {
    fn approve<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        let approval = match request.tool.annotations().read_only {
            true => Approval::Approved,
            false => Approval::Refused("a replay asks no person".to_owned()),
        };
        Box::pin(ready(approval))
    }
}

/// The engine owns its middleware; the command reads what this one did.
pub(super) struct SharedTools(pub(super) Arc<RecordedTools>);

impl Middleware for SharedTools {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn call<'a>(
        &'a self,
        call: PendingCall<'a>,
    ) -> BoxFuture<'a, Result<CallDecision, Box<dyn Error + Send + Sync>>> {
        self.0.call(call)
    }
}
