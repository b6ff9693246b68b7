//! What a server sends, before the protocol library sees any of it.
//!
//! The library starts a task for every notification, answers junk with errors, and fails a
//! handshake over an answer with a foreign id. So what nobody waits for ends here: a changed list
//! becomes a signal, progress goes to its call, in order, and the rest is dropped. What is passed on
//! are answers that are waited for, requests of the server, and what its subscriptions need.

use std::{
    borrow::Cow,
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, GetMeta as _, NumberOrString, RequestId,
    ServerJsonRpcMessage,
};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::Value;

use super::{
    Signals,
    call::Call,
    pace::Pace,
    text::{bounded, preview},
};

/// How many messages in a row may be none of the protocol. Some servers write a banner or a line
/// of their log where messages belong; one that writes nothing else is no server.
const MAX_JUNK: usize = 100;

/// Takes in what a connection reads, on all its streams.
pub(super) struct Intake {
    signals: Arc<dyn Signals>,
    state: Mutex<State>,
}

struct State {
    expected: HashMap<i64, Expected>,
    calls: HashMap<i64, Arc<Call>>,
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
    /// Whether the message was put in place of an answer that cannot be used.
    pub(super) is_fault: bool,
    /// How long nothing more is to be read.
    pub(super) pause: Option<Duration>,
    /// Why nothing more is to be read at all.
    pub(super) hopeless: Option<String>,
}

/// What there is to a message.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    jsonrpc: Cow<'a, str>,
    id: Option<Value>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    result: Option<IgnoredAny>,
    error: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct ProgressNotification {
    params: Progress,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Progress {
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
        state.expected.insert(id, Expected { token, call });
    }

    /// The answer to a request is not waited for any more.
    pub(super) fn forget(&self, id: &RequestId) {
        if let NumberOrString::Number(id) = id {
            self.state().answered(*id);
        }
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

    /// Takes one message.
    pub(super) fn take(&self, bytes: &[u8]) -> Taken {
        if bytes.trim_ascii().is_empty() {
            return self.unasked(None);
        }
        let Ok(envelope) = serde_json::from_slice::<Envelope<'_>>(bytes) else {
            return self.junk(bytes);
        };
        let id = envelope.id.as_ref().and_then(number);
        let is_answer = envelope.result.is_some() || envelope.error.is_some();
        let is_no_id =
            matches!(envelope.id, Some(Value::Bool(_) | Value::Array(_) | Value::Object(_)));
        if envelope.jsonrpc != "2.0" || is_no_id {
            return self.junk(bytes);
        }
        self.state().junk = 0;
        match (&envelope.method, is_answer) {
            (Some(method), _) if envelope.id.is_none() => {
                let message = self.notification(method, bytes);
                self.unasked(message)
            }
            (Some(_), _) => self.unasked(serde_json::from_slice(bytes).ok()),
            (None, _) => match id.and_then(|id| Some((id, self.state().answered(id)?))) {
                Some((id, expected)) => answer(bytes, id, expected.call.as_deref(), is_answer),
                // A server that could not read a request cannot say which one it answers.
                None if envelope.error.is_some() && envelope.id.is_none() => {
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
        Some(fault(*id, expected.call.as_deref(), problem))
    }

    /// Deals with a notification. What is left of it is for the library.
    fn notification(&self, method: &str, bytes: &[u8]) -> Option<ServerJsonRpcMessage> {
        match method {
            "notifications/tools/list_changed" => self.signals.tools_changed(),
            "notifications/progress" => self.progress(bytes),
            "notifications/cancelled" | "notifications/subscriptions/acknowledged" => {
                return serde_json::from_slice(bytes).ok();
            }
            _ => {}
        }
        None
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
fn answer(bytes: &[u8], id: i64, call: Option<&Call>, is_answer: bool) -> Taken {
    let read = match is_answer {
        true => {
            serde_json::from_slice(bytes).map_err(|error| format!("it cannot be read: {error}"))
        }
        false => Err("it holds neither a result nor an error".to_owned()),
    };
    match read {
        Ok(message) => Taken { message: Some(message), ..Taken::default() },
        Err(problem) => {
            let problem = format!("{problem}; it begins: {}", preview(bytes));
            let message = Some(fault(id, call, problem));
            Taken { message, is_fault: true, ..Taken::default() }
        }
    }
}

/// The end of a request whose answer cannot be used.
fn fault(id: i64, call: Option<&Call>, problem: String) -> ServerJsonRpcMessage {
    if let Some(call) = call {
        call.set_fault(problem.clone());
    }
    let error = ErrorData::internal_error(problem, None);
    ServerJsonRpcMessage::error(error, Some(RequestId::Number(id)))
}

/// Ids and tokens are numbers here; some servers send them back as text.
fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}
