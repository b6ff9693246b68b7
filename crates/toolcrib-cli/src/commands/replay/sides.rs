//! The sides of a run, as its journal has them.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    error::Error,
    sync::Arc,
};

use futures_util::{future::BoxFuture, stream};
use parking_lot::Mutex;
use serde_json::Value;
use toolcrib_core::{
    CallDecision, Message, Middleware, Model, ModelChunk, ModelError, ModelErrorClass,
    ModelRequest, ModelResponse, ModelStream, PendingCall, StopReason, StoredSession, ToolOutput,
    Usage, unfence,
};

use crate::trace::{Trace, TracedCall};

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

/// Answers calls with the results of a run, and lets no body run that may change something.
pub(super) struct RecordedTools {
    /// The calls that were made, by id; and by tool and arguments, in order.
    calls: HashMap<Arc<str>, RecordedResult>,
    by_arguments: Mutex<HashMap<String, VecDeque<Arc<str>>>>,
    /// Whether calls of read-only tools are answered too.
    answers_reads: bool,
    answered: Mutex<HashSet<Arc<str>>>,
}

struct RecordedResult {
    text: String,
    is_error: bool,
}

fn key(tool: &str, arguments: &Value) -> String {
    toolcrib_core::args_digest(tool, arguments).to_string()
}

impl RecordedTools {
    pub(super) fn new(session: &StoredSession, trace: &Trace, answers_reads: bool) -> Self {
        let (mut calls, mut by_arguments) = (HashMap::new(), HashMap::new());
        let made = session.calls.iter().filter(|call| call.turn == trace.turn);
        for call in made {
            // One that was cut off and made again has its result the last time.
            let traced = trace.calls().filter(|traced| traced.call_id == call.call_id);
            let Some((text, is_error)) = traced.filter_map(recorded).last() else { continue };
            let same: &mut VecDeque<_> =
                by_arguments.entry(key(&call.tool, &call.arguments)).or_default();
            same.push_back(Arc::clone(&call.call_id));
            calls.insert(Arc::clone(&call.call_id), RecordedResult { text, is_error });
        }
        Self {
            calls,
            by_arguments: Mutex::new(by_arguments),
            answers_reads,
            answered: Mutex::default(),
        }
    }

    /// The number of calls that the journal answered.
    pub(super) fn answered(&self) -> usize {
        self.answered.lock().len()
    }

    pub(super) fn has_answered(&self, call_id: &str) -> bool {
        self.answered.lock().contains(call_id)
    }

    fn decide(&self, call: &PendingCall<'_>) -> CallDecision {
        let of_turn = OF_THE_TURN.contains(&&**call.tool.shared_origin());
        if of_turn || (call.tool.annotations().read_only && !self.answers_reads) {
            return CallDecision::Proceed;
        }
        let mut by_arguments = self.by_arguments.lock();
        let same = by_arguments.entry(key(call.tool.name().as_str(), call.args)).or_default();
        // A model that runs now gives its calls other ids.
        let at = same.iter().position(|id| id == call.call_id).unwrap_or(0);
        let recorded = same.remove(at).and_then(|id| self.calls.get(&id));
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

/// The text that a call's tool returned, without the fence, and whether it was an error.
fn recorded(call: &TracedCall) -> Option<(String, bool)> {
    let (text, end) = (call.result.as_ref()?, call.end.as_ref()?);
    let (inside, after) = unfence(text);
    let separator = if after.is_empty() { "" } else { "\n" };
    Some((format!("{inside}{separator}{after}"), !end.ok))
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
