//! What a server sends, before the protocol library sees any of it.
//!
//! The library starts a task for every notification, answers junk with errors, and fails a
//! handshake over an answer with a foreign id. So what nobody waits for ends here: a changed list
//! becomes a signal, progress goes to its call, in order, and the rest is dropped. What is passed on
//! are answers that are waited for, requests of the server, and what its subscriptions need.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, GetMeta as _, NumberOrString, RequestId,
    ServerJsonRpcMessage, ServerNotification,
};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    Signals,
    call::{Call, NoResult},
    pace::Pace,
    text::{bounded, preview},
};
use crate::{
    envelope::{Envelope, id},
    reserved::is_expanded,
};

/// How many messages in a row may be none of the protocol. Some servers write a banner or a line
/// of their log where messages belong; one that writes nothing else is no server.
const MAX_JUNK: usize = 100;

/// How many requests of the server wait for their answers at most; a real one has one or two. What
/// it asks beyond that is dropped, so that one that does not take its answers fills no memory.
const MAX_OWED: usize = 16;

/// How many bytes the id of a request of the server may have, which goes back with the answer.
const MAX_ID_BYTES: usize = 256;

/// Takes in what a connection reads, on all its streams.
pub(super) struct Intake {
    signals: Arc<dyn Signals>,
    state: Mutex<State>,
}

struct State {
    expected: HashMap<i64, Expected>,
    calls: HashMap<i64, Arc<Call>>,
    /// The subscription, of which there is one at a time.
    listening: Option<i64>,
    /// The requests of the server that are not answered yet.
    owed: HashSet<RequestId>,
    pace: Pace,
    junk: usize,
    first_junk: String,
}

/// A request that is not answered yet.
struct Expected {
    token: Option<i64>,
    call: Option<Arc<Call>>,
}

/// What came of a message.
#[derive(Default)]
pub(super) struct Taken {
    /// What the protocol library is to see of it.
    pub(super) message: Option<ServerJsonRpcMessage>,
    /// Whether the message is of our own, in place of what was read.
    pub(super) is_ours: bool,
    /// How long nothing more is to be read.
    pub(super) pause: Option<Duration>,
    /// Why nothing more is to be read at all.
    pub(super) hopeless: Option<String>,
}

/// The answer to a call.
#[derive(Deserialize)]
struct Answer {
    result: Option<Map<String, Value>>,
    error: Option<ErrorData>,
}

#[derive(Deserialize)]
struct ProgressNotification {
    params: Progress,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Progress {
    #[serde(deserialize_with = "id")]
    progress_token: Value,
    progress: f64,
    total: Option<f64>,
    message: Option<String>,
}

impl Intake {
    pub(super) fn new(signals: Arc<dyn Signals>) -> Self {
        let state = State {
            expected: HashMap::new(),
            calls: HashMap::new(),
            listening: None,
            owed: HashSet::new(),
            pace: Pace::new(),
            junk: 0,
            first_junk: String::new(),
        };
        Self { signals, state: Mutex::new(state) }
    }

    /// Before a message is sent: if it is a request, its answer is waited for from now on.
    pub(super) fn expect(&self, message: &ClientJsonRpcMessage) {
        let ClientJsonRpcMessage::Request(request) = message else { return };
        let NumberOrString::Number(id) = request.id else { return };
        let call = Call::of(message);
        let token = match request.request.get_meta().get_progress_token() {
            Some(token) => match token.0 {
                NumberOrString::Number(token) => Some(token),
                NumberOrString::String(_) => None,
            },
            None => None,
        };
        let mut state = self.state();
        if matches!(request.request, ClientRequest::InitializeRequest(_)) {
            // What was asked before was given up for it: a late answer would fail the handshake.
            state.expected.clear();
        }
        if let (Some(token), Some(call)) = (token, &call) {
            state.calls.insert(token, Arc::clone(call));
        }
        if matches!(request.request, ClientRequest::SubscriptionsListenRequest(_))
            && let Some(before) = state.listening.replace(id)
        {
            // It broke off without an answer, or nobody would ask again.
            state.answered(before);
        }
        state.expected.insert(id, Expected { token, call });
    }

    /// Before a call is sent that goes past the protocol library. Its progress comes under the same
    /// number as its answer.
    pub(super) fn expect_call(&self, id: i64, call: &Arc<Call>) {
        let mut state = self.state();
        state.calls.insert(id, Arc::clone(call));
        state.expected.insert(id, Expected { token: Some(id), call: Some(Arc::clone(call)) });
    }

    /// The answer to a request is not waited for any more.
    pub(super) fn forget(&self, id: &RequestId) {
        if let NumberOrString::Number(id) = id {
            self.forget_call(*id);
        }
    }

    /// The same, of a call that goes past the protocol library.
    pub(super) fn forget_call(&self, id: i64) {
        self.state().answered(id);
    }

    /// If the message answers a request of the server: what is to be dropped once it is sent, or
    /// cannot be.
    pub(super) fn owed(self: &Arc<Self>, message: &ClientJsonRpcMessage) -> Option<Owed> {
        let id = match message {
            ClientJsonRpcMessage::Response(response) => response.id.clone(),
            ClientJsonRpcMessage::Error(error) => error.id.clone()?,
            _ => return None,
        };
        Some(Owed { intake: Arc::clone(self), id })
    }

    /// How many answers are waited for.
    #[cfg(test)]
    pub(super) fn expected(&self) -> usize {
        let state = self.state();
        assert!(state.calls.len() <= state.expected.len());
        state.expected.len()
    }

    pub(super) fn signal_changed_tools(&self) {
        self.signals.tools_changed();
    }

    /// Whether answers to more than one call are waited for.
    pub(super) fn has_other_calls(&self) -> bool {
        self.state().expected.values().filter(|expected| expected.call.is_some()).nth(1).is_some()
    }

    /// Takes one message, of a stream that may hold any.
    pub(super) fn take(&self, bytes: &[u8]) -> Taken {
        self.take_if(bytes, |_| true)
    }

    /// Takes one message where only the answer to this request belongs. One to another request is
    /// not taken for that, and does not end it.
    pub(super) fn take_answer_to(&self, id: Option<&RequestId>, bytes: &[u8]) -> Taken {
        self.take_if(bytes, |answered| id == Some(&RequestId::Number(answered)))
    }

    fn take_if(&self, bytes: &[u8], belongs: impl Fn(i64) -> bool) -> Taken {
        if bytes.trim_ascii().is_empty() {
            return self.unasked(None);
        }
        let Ok(envelope) = serde_json::from_slice::<Envelope<'_>>(bytes) else {
            return self.junk(bytes);
        };
        let id = envelope.id.as_ref().and_then(number);
        let is_answer = envelope.is_answer();
        let is_no_id =
            matches!(envelope.id, Some(Value::Bool(_) | Value::Array(_) | Value::Object(_)));
        if !envelope.is_of_version() || is_no_id {
            return self.junk(bytes);
        }
        if is_expanded(bytes) && !(is_answer && id.is_some()) {
            return self.junk(bytes);
        }
        self.state().junk = 0;
        match (&envelope.method, is_answer) {
            (Some(method), _) if !envelope.has_id() => {
                let message = self.notification(method, bytes);
                self.unasked(message)
            }
            (Some(_), _) => self.unasked(self.request(bytes)),
            (None, _) => match id
                .filter(|id| belongs(*id))
                .and_then(|id| Some((id, self.state().answered(id)?)))
            {
                Some((id, expected)) => answer(bytes, id, &expected, is_answer),
                // A server that could not read a request cannot say which one it answers.
                None if envelope.error.is_some() && !envelope.has_id() => {
                    self.unasked(serde_json::from_slice(bytes).ok())
                }
                None if is_answer => self.unasked(None),
                None => self.junk(bytes),
            },
        }
    }

    /// The answer to a request cannot be used, whatever more of it would come.
    pub(super) fn fault(&self, id: &RequestId, problem: String) -> Option<ServerJsonRpcMessage> {
        let NumberOrString::Number(id) = id else { return None };
        let expected = self.state().answered(*id)?;
        fault(*id, expected.call.as_deref(), problem)
    }

    /// Deals with a notification. What is left of it is for the library.
    fn notification(&self, method: &str, bytes: &[u8]) -> Option<ServerJsonRpcMessage> {
        match method {
            "notifications/tools/list_changed" => self.signals.tools_changed(),
            "notifications/progress" => self.progress(bytes),
            "notifications/cancelled" => {
                let message = serde_json::from_slice(bytes).ok()?;
                return (!self.cancels_its_own(&message)).then_some(message);
            }
            "notifications/subscriptions/acknowledged" => {
                return serde_json::from_slice(bytes).ok();
            }
            _ => {}
        }
        None
    }

    /// A request of the server, if it is answered.
    fn request(&self, bytes: &[u8]) -> Option<ServerJsonRpcMessage> {
        let message = serde_json::from_slice(bytes).ok()?;
        let ServerJsonRpcMessage::Request(request) = &message else { return None };
        if matches!(&request.id, NumberOrString::String(id) if id.len() > MAX_ID_BYTES) {
            return None;
        }
        let mut state = self.state();
        let is_new = state.owed.len() < MAX_OWED && state.owed.insert(request.id.clone());
        drop(state);
        is_new.then_some(message)
    }

    /// Whether it cancels a request of the server, whose answer is on its way in any case.
    fn cancels_its_own(&self, message: &ServerJsonRpcMessage) -> bool {
        let ServerJsonRpcMessage::Notification(message) = message else { return false };
        let ServerNotification::CancelledNotification(cancelled) = &message.notification else {
            return false;
        };
        cancelled.params.request_id.as_ref().is_some_and(|id| self.state().owed.contains(id))
    }

    /// Takes something that is no message at all, `count` times.
    pub(super) fn idle(&self, count: usize) -> Option<Duration> {
        self.state().pace.take_many(count)
    }

    fn progress(&self, bytes: &[u8]) {
        let Ok(ProgressNotification { params }) = serde_json::from_slice(bytes) else { return };
        let Some(token) = number(&params.progress_token) else { return };
        let Some(call) = self.state().calls.get(&token).cloned() else { return };
        let Progress { progress, total, message, .. } = params;
        let percent = total.filter(|total| *total > 0.0).map(|total| {
            let percent = (progress / total * 100.0).clamp(0.0, 100.0);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "it lies between 0 and 100"
            )]
            let percent = percent as u8;
            percent
        });
        let text = message.unwrap_or_else(|| match total {
            Some(total) => format!("{progress} of {total}"),
            None => progress.to_string(),
        });
        call.progress(bounded(text), percent);
    }

    fn unasked(&self, message: Option<ServerJsonRpcMessage>) -> Taken {
        Taken { message, pause: self.state().pace.take(), ..Taken::default() }
    }

    fn junk(&self, bytes: &[u8]) -> Taken {
        let mut state = self.state();
        if state.junk == 0 {
            state.first_junk = preview(bytes);
        }
        state.junk += 1;
        let hopeless = (state.junk >= MAX_JUNK).then(|| {
            format!(
                "{MAX_JUNK} messages in a row are no JSON-RPC; the first begins: {}",
                state.first_junk
            )
        });
        Taken { pause: state.pace.take(), hopeless, ..Taken::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The answer to a request of the server, until it is sent.
pub(super) struct Owed {
    intake: Arc<Intake>,
    id: RequestId,
}

impl Drop for Owed {
    fn drop(&mut self) {
        self.intake.state().owed.remove(&self.id);
    }
}

impl State {
    fn answered(&mut self, id: i64) -> Option<Expected> {
        let expected = self.expected.remove(&id)?;
        if let Some(token) = expected.token {
            self.calls.remove(&token);
        }
        Some(expected)
    }
}

/// An answer that is waited for, or why it cannot be used.
fn answer(bytes: &[u8], id: i64, expected: &Expected, is_answer: bool) -> Taken {
    let call = expected.call.as_deref();
    let read = match (is_answer, call) {
        (false, _) => Err("it holds neither a result nor an error".to_owned()),
        (true, _) if is_expanded(bytes) => {
            Err("a key in it is reserved by `serde_json`".to_owned())
        }
        (true, Some(call)) if call.takes_answer() => {
            settle(bytes, call).map(|()| Taken::default()).map_err(|error| unreadable(&error))
        }
        (true, _) => serde_json::from_slice(bytes)
            .map(|message| Taken { message: Some(message), ..Taken::default() })
            .map_err(|error| unreadable(&error)),
    };
    read.unwrap_or_else(|problem| {
        let problem = format!("{problem}; it begins: {}", preview(bytes));
        Taken { message: fault(id, call, problem), is_ours: true, ..Taken::default() }
    })
}

/// Hands an answer to its call. The protocol library would read it a second time.
fn settle(bytes: &[u8], call: &Call) -> serde_json::Result<()> {
    let answer: Answer = serde_json::from_slice(bytes)?;
    call.settle(match answer {
        Answer { error: Some(error), .. } => Err(NoResult::Refused(error)),
        Answer { result, .. } => Ok(result.unwrap_or_default()),
    });
    Ok(())
}

fn unreadable(error: &serde_json::Error) -> String {
    format!("it cannot be read: {error}")
}

/// The end of a request whose answer cannot be used: what the protocol library is told, if it waits.
fn fault(id: i64, call: Option<&Call>, problem: String) -> Option<ServerJsonRpcMessage> {
    if let Some(call) = call {
        if call.takes_answer() {
            call.settle(Err(NoResult::Unusable(problem)));
            return None;
        }
        call.set_fault(problem.clone());
    }
    let error = ErrorData::internal_error(problem, None);
    Some(ServerJsonRpcMessage::error(error, Some(RequestId::Number(id))))
}

/// Ids and tokens of ours are whole numbers. The same digits as text name another request.
fn number(id: &Value) -> Option<i64> {
    id.as_i64()
}
