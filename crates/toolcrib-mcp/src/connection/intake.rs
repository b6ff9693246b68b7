//! Filters a server's messages before the protocol library sees them.
//!
//! The library starts a task for every notification, answers invalid messages with errors, and
//! fails a handshake over a response with a foreign id. So unrequested messages end here: a changed
//! list becomes a signal, progress goes to its call, in order, and the rest is dropped. The library
//! receives only expected responses, requests of the server, and messages for its subscriptions.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};

use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, GetMeta as _, NumberOrString, RequestId,
    ServerJsonRpcMessage, ServerNotification,
};
use serde::Deserialize;
use serde_json::{Map, Value};
use toolcrib_core::Lanes;

use super::{
    Signals,
    call::{Call, NoResult},
    pace::Pace,
    text::{Redaction, bounded, preview, tail},
};
use crate::{
    envelope::{Envelope, id},
    reserved::is_expanded,
};

/// The limit of consecutive invalid messages. Some servers write a banner or a log line to the
/// message stream; one that writes nothing else is not a server.
const MAX_JUNK: usize = 100;

/// The limit of the server's unanswered requests; a real one has one or two. Further ones are
/// dropped, so that a server that does not read the responses fills no memory.
const MAX_OWED: usize = 16;

/// The size limit of the id of a server's request, which is returned with the response.
const MAX_ID_BYTES: usize = 256;

/// The messages read by a connection, on all its streams.
pub(super) struct Intake {
    signals: Arc<dyn Signals>,
    /// The server, whose messages share a lane.
    source: Arc<str>,
    redactor: Redaction,
    state: Mutex<State>,
}

struct State {
    expected: HashMap<i64, Expected>,
    calls: HashMap<i64, Arc<Call>>,
    /// The subscription, of which there is one at a time.
    listening: Option<i64>,
    /// The server's requests without a response yet.
    owed: HashSet<RequestId>,
    pace: Pace,
    junk: usize,
    first_junk: String,
}

/// A request without a response yet.
struct Expected {
    token: Option<i64>,
    call: Option<Arc<Call>>,
}

/// The outcome of a message.
#[derive(Default)]
pub(super) struct Taken {
    /// The part for the protocol library.
    pub(super) message: Option<ServerJsonRpcMessage>,
    /// Whether the message was created here, instead of the one that was read.
    pub(super) is_ours: bool,
    /// How long reading must pause.
    pub(super) pause: Option<Duration>,
    /// Why reading must end.
    pub(super) hopeless: Option<String>,
}

/// The response to a call.
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

impl Taken {
    /// Reading it broke off.
    pub(super) fn broken(problem: &str) -> Self {
        Self { hopeless: Some(format!("a message cannot be read: {problem}")), ..Self::default() }
    }
}

impl Intake {
    pub(super) fn new(signals: Arc<dyn Signals>, source: &str) -> Self {
        let state = State {
            expected: HashMap::new(),
            calls: HashMap::new(),
            listening: None,
            owed: HashSet::new(),
            pace: Pace::new(),
            junk: 0,
            first_junk: String::new(),
        };
        let redactor = signals.redactor();
        Self { signals, source: source.into(), redactor, state: Mutex::new(state) }
    }

    /// Called before a message is sent: if it is a request, its response is expected from now on.
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
            // The earlier requests were given up: a late response would fail the handshake.
            state.expected.clear();
        }
        if let (Some(token), Some(call)) = (token, &call) {
            state.calls.insert(token, Arc::clone(call));
        }
        if matches!(request.request, ClientRequest::SubscriptionsListenRequest(_))
            && let Some(before) = state.listening.replace(id)
        {
            // It broke off without a response, or it would not be sent again.
            state.answered(before);
        }
        state.expected.insert(id, Expected { token, call });
    }

    /// Called before a call is sent that bypasses the protocol library. Its progress has the same
    /// number as its response.
    pub(super) fn expect_call(&self, id: i64, call: &Arc<Call>) {
        let mut state = self.state();
        state.calls.insert(id, Arc::clone(call));
        state.expected.insert(id, Expected { token: Some(id), call: Some(Arc::clone(call)) });
    }

    /// The response to a request is no longer expected.
    pub(super) fn forget(&self, id: &RequestId) {
        if let NumberOrString::Number(id) = id {
            self.forget_call(*id);
        }
    }

    /// The same for a call that bypasses the protocol library.
    pub(super) fn forget_call(&self, id: i64) {
        self.state().answered(id);
    }

    /// If the message responds to a request of the server: a guard to be dropped once it is sent,
    /// or cannot be.
    pub(super) fn owed(self: &Arc<Self>, message: &ClientJsonRpcMessage) -> Option<Owed> {
        let id = match message {
            ClientJsonRpcMessage::Response(response) => response.id.clone(),
            ClientJsonRpcMessage::Error(error) => error.id.clone()?,
            _ => return None,
        };
        Some(Owed { intake: Arc::clone(self), id })
    }

    pub(super) fn signal_changed_tools(&self) {
        self.signals.tools_changed();
    }

    /// Whether responses to more than one call are expected.
    pub(super) fn has_other_calls(&self) -> bool {
        self.state().expected.values().filter(|expected| expected.call.is_some()).nth(1).is_some()
    }

    /// A text of the server as an error shows it.
    pub(super) fn shown(&self, text: &str) -> String {
        bounded(text, &self.redactor)
    }

    /// The beginning of bytes that should have been a message.
    pub(super) fn preview(&self, bytes: &[u8]) -> String {
        preview(bytes, &self.redactor)
    }

    /// The end of what was written to stderr.
    pub(super) fn tail(&self, bytes: &[u8]) -> String {
        tail(bytes, &self.redactor)
    }

    /// Runs work over so many bytes of the server's; a long message is not read on an async worker.
    pub(super) async fn off_worker<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, String> {
        Lanes::of_process().run_large(bytes, &self.source, work).await
    }

    /// Processes one message of a stream that may contain any.
    pub(super) fn take(&self, bytes: &[u8]) -> Taken {
        self.take_if(bytes, |_| true)
    }

    /// Processes one message where only the response to this request belongs. A response to another
    /// request is not accepted, and does not end that one.
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
                Some((id, expected)) => self.answer(bytes, id, &expected, is_answer),
                // A server that could not read a request cannot say which one it answers.
                None if envelope.error.is_some() && !envelope.has_id() => {
                    self.unasked(serde_json::from_slice(bytes).ok())
                }
                None if is_answer => self.unasked(None),
                None => self.junk(bytes),
            },
        }
    }

    /// The response to a request is unusable, whatever follows of it.
    pub(super) fn fault(&self, id: &RequestId, problem: String) -> Option<ServerJsonRpcMessage> {
        let NumberOrString::Number(id) = id else { return None };
        let expected = self.state().answered(*id)?;
        fault(*id, expected.call.as_deref(), problem)
    }

    /// Processes a notification. The rest of it is for the library.
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

    /// A request of the server, if it gets a response.
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

    /// Whether it cancels a request of the server, which gets a response in any case.
    fn cancels_its_own(&self, message: &ServerJsonRpcMessage) -> bool {
        let ServerJsonRpcMessage::Notification(message) = message else { return false };
        let ServerNotification::CancelledNotification(cancelled) = &message.notification else {
            return false;
        };
        cancelled.params.request_id.as_ref().is_some_and(|id| self.state().owed.contains(id))
    }

    /// Counts invalid messages.
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
        // The pipe redacts it and cuts it then.
        call.progress(text, percent);
    }

    /// An answer that is waited for, or why it cannot be used.
    fn answer(&self, bytes: &[u8], id: i64, expected: &Expected, is_answer: bool) -> Taken {
        let call = expected.call.as_deref();
        if let Some(call) = call {
            call.set_answer_bytes(bytes.len());
        }
        let read = match (is_answer, call) {
            (false, _) => Err("it contains neither a result nor an error".to_owned()),
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
            let problem = format!("{problem}; it begins: {}", self.preview(bytes));
            Taken { message: fault(id, call, problem), is_ours: true, ..Taken::default() }
        })
    }

    fn unasked(&self, message: Option<ServerJsonRpcMessage>) -> Taken {
        Taken { message, pause: self.state().pace.take(), ..Taken::default() }
    }

    fn junk(&self, bytes: &[u8]) -> Taken {
        let mut state = self.state();
        if state.junk == 0 {
            state.first_junk = self.preview(bytes);
        }
        state.junk += 1;
        let hopeless = (state.junk >= MAX_JUNK).then(|| {
            format!(
                "{MAX_JUNK} messages in a row are not JSON-RPC; the first begins: {}",
                state.first_junk
            )
        });
        Taken { pause: state.pace.take(), hopeless, ..Taken::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// The response to a request of the server, until it is sent.
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

/// The end of a request with an unusable response: the message for the protocol library, if it
/// waits.
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

/// Our ids and tokens are integers. The same digits as text name another request.
fn number(id: &Value) -> Option<i64> {
    id.as_i64()
}
