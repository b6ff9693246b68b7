//! A server's messages, on all streams of a connection.
//!
//! A response goes to the exchange of its id, progress to its call, in order. A changed list becomes
//! a signal. A request of the server goes to the client of its call, outside of calls to the only
//! client of the session. The rest is dropped. Unrequested messages are paced.

use std::{collections::HashMap, future::ready, sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use parking_lot::{Mutex, MutexGuard};
use rmcp::model::SubscriptionFilter;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use tokio::time::sleep;
use toolcrib_core::{
    __internal::{MOST_VALUES, has_more_values},
    BoxFuture, CancellationToken, ClientRefusal, Lanes, Progress, ProgressCount,
};

use super::{
    Caller, WireEvent, WireObserver,
    exchange::Exchange,
    logs::{self, Logs},
    message::{self, Request},
    pace::Pace,
    text::{Redaction, bounded, preview, tail},
    transport::Transport,
    types::{RequestError, ServerNotice, Signals},
};
use crate::{
    envelope::{Envelope, id},
    reserved::is_expanded,
};

/// The limit of consecutive invalid messages. Some servers write a banner or a log line to the
/// message stream; one that writes nothing else is not a server.
const MAX_JUNK: usize = 100;

/// The number of unrequested messages that are read without a delay.
const BURST: f64 = 256.0;
/// The rate per second beyond that. Excess messages are not dropped: their sender waits. A pipe buffers
/// about a thousand short messages, and a response may come after them: at this rate after a quarter
/// of a second, for a few per cent of one core.
const PER_SECOND: f64 = 5_000.0;

/// The limit of the server's unanswered requests; a real one has one or two. Further ones are
/// dropped, so that a server that does not read the responses fills no memory.
const MAX_OWED: usize = 16;

/// The size limit of the id of a server's request, which is returned with the response.
const MAX_ID_BYTES: usize = 256;

/// Some servers begin their output, or each message, with it.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The messages read by a connection, on all its streams.
pub(super) struct Intake {
    signals: Arc<dyn Signals>,
    /// The server, whose messages share a lane.
    source: Arc<str>,
    redactor: Redaction,
    observer: Option<WireObserver>,
    state: Mutex<State>,
}

struct State {
    /// The requests without a response yet.
    expected: HashMap<i64, Arc<Exchange>>,
    /// The ids of the server's requests without a reply yet, as JSON. The token fires when the
    /// server needs none any more.
    owed: HashMap<String, CancellationToken>,
    pace: Pace,
    logs: Logs,
    junk: usize,
    first_junk: String,
}

/// How reading continues after a message.
#[derive(Default)]
struct MessageOutcome {
    /// The pending reply to a request of the server.
    reply: Option<Reply>,
    /// How long reading must pause.
    pause: Option<Duration>,
    /// Why reading must end.
    hopeless: Option<String>,
}

/// The reply to a request of the server, until it is sent.
struct Reply {
    intake: Arc<Intake>,
    key: String,
    id: Value,
    answer: BoxFuture<'static, Result<Value, ClientRefusal>>,
    unwanted: CancellationToken,
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.intake.state().owed.remove(&self.key);
    }
}

/// Where a message of the server comes from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Carrier {
    /// The connection, for all messages.
    Connection,
    /// The stream of events that responds to this request. Messages besides the response concern it.
    Stream(i64),
    /// The body that responds to this request. A response to another request is not accepted, and
    /// does not end that one.
    Body(i64),
}

impl Carrier {
    /// The request whose response it carries.
    fn request(self) -> Option<i64> {
        match self {
            Self::Connection => None,
            Self::Stream(id) | Self::Body(id) => Some(id),
        }
    }

    fn may_answer(self, id: i64) -> bool {
        !matches!(self, Self::Body(only) if only != id)
    }
}

impl Reply {
    /// The message; `None` if the server needs none any more.
    async fn message(&mut self) -> Option<Vec<u8>> {
        tokio::select! {
            biased;
            () = self.unwanted.cancelled() => None,
            answer = &mut self.answer => Some(message::reply(&self.id, answer)),
        }
    }
}

/// The parameters of a request of the server, which may lack them.
#[derive(Deserialize, Default)]
struct RequestParams {
    #[serde(default)]
    params: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
struct Notification<P> {
    params: P,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ProgressParams {
    #[serde(deserialize_with = "id")]
    progress_token: Value,
    progress: f64,
    total: Option<f64>,
    message: Option<String>,
    #[serde(rename = "_meta")]
    meta: Option<Value>,
}

#[derive(Deserialize)]
struct ResourceUpdatedParams {
    uri: Arc<str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CancelledParams {
    #[serde(deserialize_with = "id")]
    request_id: Value,
}

#[derive(Deserialize)]
struct AcknowledgedParams {
    #[serde(rename = "_meta")]
    meta: AcknowledgedMeta,
}

#[derive(Deserialize)]
struct AcknowledgedMeta {
    #[serde(rename = "io.modelcontextprotocol/subscriptionId", deserialize_with = "id")]
    subscription: Value,
}

impl Intake {
    pub(super) fn new(signals: Arc<dyn Signals>, source: &str) -> Self {
        let state = State {
            expected: HashMap::new(),
            owed: HashMap::new(),
            pace: Pace::new(BURST, PER_SECOND),
            logs: Logs::new(),
            junk: 0,
            first_junk: String::new(),
        };
        let (redactor, observer) = (signals.redactor(), signals.observer());
        Self { signals, source: source.into(), redactor, observer, state: Mutex::new(state) }
    }

    /// Passes a part of the traffic to the observer, if there is one.
    pub(super) fn observe(&self, event: WireEvent<'_>) {
        if let Some(observer) = &self.observer {
            observer.see(event);
        }
    }

    pub(super) fn is_observed(&self) -> bool {
        self.observer.is_some()
    }

    /// Called before a request is sent: its response is expected from now on.
    pub(super) fn expect(&self, exchange: &Arc<Exchange>) {
        if self.is_observed()
            && let Ok(message) = exchange.to_json()
        {
            self.observe(WireEvent::Sent(&message));
        }
        self.state().expected.insert(exchange.id, Arc::clone(exchange));
    }

    /// The response to a request is no longer expected.
    pub(super) fn forget(&self, id: i64) {
        self.state().expected.remove(&id);
    }

    /// Any list may have changed.
    pub(super) fn signal_all_changes(&self) {
        self.signals.tools_changed();
        self.signals.notice(ServerNotice::PromptsChanged);
        self.signals.notice(ServerNotice::ResourcesChanged);
    }

    /// The lists in a filter may have changed.
    pub(super) fn signal_changes(&self, lists: &SubscriptionFilter) {
        if lists.tools_list_changed == Some(true) {
            self.signals.tools_changed();
        }
        if lists.prompts_list_changed == Some(true) {
            self.signals.notice(ServerNotice::PromptsChanged);
        }
        if lists.resources_list_changed == Some(true) {
            self.signals.notice(ServerNotice::ResourcesChanged);
        }
        for uri in lists.resource_subscriptions.iter().flatten() {
            self.signals.notice(ServerNotice::ResourceUpdated(uri.as_str().into()));
        }
    }

    /// Whether more than one response is expected soon: a subscription has none.
    pub(super) fn has_other_requests(&self) -> bool {
        let state = self.state();
        let mut soon = state.expected.values().filter(|exchange| !is_subscription(exchange));
        soon.nth(1).is_some()
    }

    /// Whether a response is expected soon.
    pub(super) fn has_requests(&self) -> bool {
        self.state().expected.values().any(|exchange| !is_subscription(exchange))
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

    /// The clause of an error of a wait that ran out about messages since the last valid one that are not
    /// JSON-RPC; empty if there are none.
    pub(super) fn stray(&self) -> String {
        let state = self.state();
        match state.junk {
            0 => String::new(),
            _ => format!(
                "; since then it has sent what is not JSON-RPC (a program must write its log to \
                 standard error), which begins: {}",
                state.first_junk
            ),
        }
    }

    /// Counts invalid messages. Returns how long reading must pause.
    pub(super) fn idle(&self, count: usize) -> Option<Duration> {
        self.state().pace.take(count)
    }

    /// Processes one message, a long one not on an async worker, and waits for as long as its sender
    /// must wait.
    ///
    /// # Errors
    /// Why reading must end.
    pub(super) async fn take<T: Transport>(
        self: &Arc<Self>,
        message: impl AsRef<[u8]> + Send + 'static,
        carrier: Carrier,
        transport: &Arc<T>,
    ) -> Result<(), String> {
        let (intake, bytes) = (Arc::clone(self), message.as_ref().len());
        let taking = move || intake.process(message.as_ref(), carrier);
        let taken = Lanes::of_process().run_large(bytes, &self.source, taking).await;
        let taken = taken.map_err(|problem| format!("a message cannot be read: {problem}"))?;
        if let Some(mut reply) = taken.reply {
            let transport = Arc::clone(transport);
            // In a task: a server that does not read its replies is read on.
            tokio::spawn(async move {
                if let Some(message) = reply.message().await {
                    // If the server does not accept it, no response follows.
                    let _ = transport.post(message).await;
                }
            });
        }
        if let Some(pause) = taken.pause {
            sleep(pause).await;
        }
        taken.hopeless.map_or(Ok(()), Err)
    }

    /// The response to a request is unusable, whatever follows of it.
    pub(super) fn fault(&self, id: i64, error: RequestError) {
        let exchange = self.state().expected.remove(&id);
        if let Some(exchange) = exchange {
            exchange.settle(Err(error));
        }
    }

    fn process(self: &Arc<Self>, bytes: &[u8], carrier: Carrier) -> MessageOutcome {
        self.observe(WireEvent::Received(bytes));
        let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
        if bytes.trim_ascii().is_empty() {
            return self.unasked();
        }
        let Ok(envelope) = serde_json::from_slice::<Envelope<'_>>(bytes) else {
            return self.unreadable(bytes, carrier);
        };
        let id = envelope.id.as_ref().and_then(id_of_response);
        let is_answer = envelope.is_answer();
        let is_no_id =
            matches!(envelope.id, Some(Value::Bool(_) | Value::Array(_) | Value::Object(_)));
        if !envelope.is_of_version() || is_no_id {
            return self.junk(bytes);
        }
        // A response is checked where it is read, with its parts.
        let is_response = is_answer && id.is_some();
        if !is_response && (has_more_values(MOST_VALUES, bytes) || is_expanded(bytes)) {
            return self.junk(bytes);
        }
        self.state().junk = 0;
        match (&envelope.method, envelope.id.as_ref().filter(|_| envelope.has_id())) {
            (Some(method), None) => {
                self.notification(method, bytes, carrier.request());
                self.unasked()
            }
            (Some(method), Some(id)) => {
                let reply = self.reply(id, method, bytes, carrier.request());
                MessageOutcome { reply, ..self.unasked() }
            }
            (None, _) => match id.filter(|id| carrier.may_answer(*id)) {
                Some(id) => self.response(id, bytes, is_answer),
                None if envelope.error.is_some() && !envelope.has_id() => {
                    self.uncorrelated(bytes);
                    self.unasked()
                }
                None if is_answer => self.unasked(),
                None => self.junk(bytes),
            },
        }
    }

    fn response(&self, id: i64, bytes: &[u8], is_answer: bool) -> MessageOutcome {
        let exchange = self.state().expected.remove(&id);
        match exchange {
            Some(exchange) => {
                exchange.settle(Ok(bytes));
                MessageOutcome::default()
            }
            None if is_answer => self.unasked(),
            None => self.junk(bytes),
        }
    }

    /// A server that could not read a request cannot say which one it answers. In a handshake there
    /// is only one.
    fn uncorrelated(&self, bytes: &[u8]) {
        let mut state = self.state();
        let greeting = state.expected.iter().find(|(_, exchange)| exchange.request.is_greeting());
        let greeting = greeting.map(|(id, _)| *id).and_then(|id| state.expected.remove(&id));
        drop(state);
        if let Some(greeting) = greeting {
            greeting.settle(Ok(bytes));
        }
    }

    fn notification(&self, method: &str, bytes: &[u8], of: Option<i64>) {
        match method {
            "notifications/tools/list_changed" => self.signals.tools_changed(),
            "notifications/prompts/list_changed" => {
                self.signals.notice(ServerNotice::PromptsChanged);
            }
            "notifications/resources/list_changed" => {
                self.signals.notice(ServerNotice::ResourcesChanged);
            }
            "notifications/resources/updated" => {
                if let Some(ResourceUpdatedParams { uri }) = params(bytes) {
                    self.signals.notice(ServerNotice::ResourceUpdated(uri));
                }
            }
            "notifications/message" => self.log(bytes, of),
            "notifications/elicitation/complete" => {
                if let Some(completed) = params(bytes) {
                    self.signals.notice(ServerNotice::ElicitationComplete(completed));
                }
            }
            "notifications/progress" => self.progress(bytes),
            "notifications/subscriptions/acknowledged" => self.acknowledged(bytes),
            "notifications/cancelled" => self.cancelled(bytes),
            _ => {}
        }
    }

    /// The reply to a request of the server, if it gets one.
    fn reply(
        self: &Arc<Self>,
        id: &Value,
        method: &str,
        bytes: &[u8],
        of: Option<i64>,
    ) -> Option<Reply> {
        let is_usable = id.is_i64() || id.as_str().is_some_and(|id| id.len() <= MAX_ID_BYTES);
        let key = is_usable.then(|| id.to_string())?;
        let unwanted = CancellationToken::new();
        {
            let mut state = self.state();
            if state.owed.len() >= MAX_OWED || state.owed.contains_key(&key) {
                return None;
            }
            state.owed.insert(key.clone(), unwanted.clone());
        }
        let answer = match method {
            "ping" => ready(Ok(json!({}))).boxed(),
            "elicitation/create" | "sampling/createMessage" | "roots/list" => {
                self.asked(method, bytes, of)
            }
            _ => {
                let problem = "this client has not declared this method";
                ready(Err(ClientRefusal::not_supported(problem))).boxed()
            }
        };
        Some(Reply { intake: Arc::clone(self), key, id: id.clone(), answer, unwanted })
    }

    /// Passes a request of the server on to the client of the call during which it came, or to the
    /// only client of the session.
    fn asked(
        &self,
        method: &str,
        bytes: &[u8],
        of: Option<i64>,
    ) -> BoxFuture<'static, Result<Value, ClientRefusal>> {
        let caller = self.caller(of).map(|caller| match (caller, self.signals.client()) {
            // Roots are the session's: a call that ends meanwhile does not end the request.
            (Some(caller), Some(client))
                if method == "roots/list" && caller.key() == client.key() =>
            {
                Some(client)
            }
            (caller, client) => caller.or(client),
        });
        let caller = match caller {
            Ok(Some(caller)) => caller,
            Ok(None) => {
                let problem = "no client or person can be asked at the moment";
                return ready(Err(ClientRefusal::not_supported(problem))).boxed();
            }
            Err(refusal) => return ready(Err(refusal)).boxed(),
        };
        let request: RequestParams = serde_json::from_slice(bytes).unwrap_or_default();
        let answer = caller.request_one(method, &request.params.unwrap_or_default());
        async move {
            tokio::select! {
                biased;
                () = caller.over().cancelled() => Err(ClientRefusal::failed("the call is over")),
                answer = answer => answer,
            }
        }
        .boxed()
    }

    /// The client that a message of the server is for: that of the request whose stream it came on;
    /// otherwise that of the only client with requests.
    fn caller(&self, of: Option<i64>) -> Result<Option<Caller>, ClientRefusal> {
        let state = self.state();
        if let Some(exchange) = of.and_then(|id| state.expected.get(&id)) {
            return Ok(exchange.request.caller().cloned());
        }
        let mut callers = state.expected.values().filter_map(|exchange| exchange.request.caller());
        let first = callers.next();
        if callers.any(|other| first.is_none_or(|first| other.key() != first.key())) {
            let problem =
                "calls of several clients are in progress, so it is unknown whose this is";
            return Err(ClientRefusal::failed(problem));
        }
        Ok(first.cloned())
    }

    fn acknowledged(&self, bytes: &[u8]) {
        let Some(AcknowledgedParams { meta }) = params(bytes) else { return };
        let exchange = number(&meta.subscription).and_then(|id| self.expected(id));
        if let Some(exchange) = exchange
            && let Request::Listen { acknowledged, .. } = &exchange.request
        {
            acknowledged.cancel();
        }
    }

    /// Ends a subscription, or a request of the server.
    fn cancelled(&self, bytes: &[u8]) {
        let Some(CancelledParams { request_id }) = params(bytes) else { return };
        if let Some(unwanted) = self.state().owed.get(&request_id.to_string()) {
            unwanted.cancel();
        }
        let Some(id) = number(&request_id) else { return };
        if let Some(exchange) = self.expected(id).filter(is_subscription) {
            self.forget(id);
            exchange.settle(Err(RequestError::Lost("the server ended it".to_owned())));
        }
    }

    /// Passes a log message on to the client that it is for.
    fn log(&self, bytes: &[u8], of: Option<i64>) {
        let Some(dropped) = self.state().logs.admit() else { return };
        let Some(message) = params(bytes) else { return };
        let message = logs::limited(message, bytes.len(), &self.redactor);
        let caller = self.caller(of);
        for message in (dropped > 0).then(|| logs::dropped(dropped)).into_iter().chain([message]) {
            match &caller {
                Ok(Some(caller)) => caller.log(message),
                _ => self.signals.notice(ServerNotice::Log(message)),
            }
        }
    }

    fn progress(&self, bytes: &[u8]) {
        let Some(reported) = params(bytes) else { return };
        let ProgressParams { progress_token, progress, total, message, meta } = reported;
        let exchange = number(&progress_token).and_then(|id| self.expected(id));
        let Some(exchange) = exchange else { return };
        let Some(on_progress) = exchange.request.on_progress() else { return };
        let count = ProgressCount { done: progress, total };
        // The pipe redacts it and cuts it then.
        let meta = match meta {
            Some(Value::Object(meta)) => Some(Box::new(meta)),
            _ => None,
        };
        let message = message.unwrap_or_else(|| count.to_string());
        on_progress(Progress { count: Some(count), meta, ..Progress::internal(message) });
    }

    fn expected(&self, id: i64) -> Option<Arc<Exchange>> {
        self.state().expected.get(&id).cloned()
    }

    fn unasked(&self) -> MessageOutcome {
        MessageOutcome { pause: self.state().pace.take(1), ..MessageOutcome::default() }
    }

    /// Ends a request at once whose response contains a number that JSON does not have. Its value is
    /// unknown, so nothing of the response is used.
    fn unreadable(&self, bytes: &[u8], carrier: Carrier) -> MessageOutcome {
        if let Some((number, mended)) = without_foreign_numbers(bytes)
            && let Ok(envelope) = serde_json::from_slice::<Envelope<'_>>(&mended)
            && envelope.is_of_version()
            && envelope.is_answer()
            && let Some(id) = envelope.id.as_ref().and_then(id_of_response)
            && carrier.may_answer(id)
        {
            let problem = format!("it contains `{number}`, which JSON does not have");
            self.fault(id, RequestError::Malformed(problem));
            return self.unasked();
        }
        self.junk(bytes)
    }

    fn junk(&self, bytes: &[u8]) -> MessageOutcome {
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
        MessageOutcome { pause: state.pace.take(1), hopeless, ..MessageOutcome::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// The parameters of a notification, unless they are invalid.
fn params<P: DeserializeOwned>(notification: &[u8]) -> Option<P> {
    serde_json::from_slice(notification).ok().map(|Notification { params }| params)
}

fn is_subscription(exchange: &Arc<Exchange>) -> bool {
    matches!(exchange.request, Request::Listen { .. })
}

/// Our ids and tokens are integers.
fn number(id: &Value) -> Option<i64> {
    id.as_i64()
}

/// The id of a response. Some servers return it as text. Other digits than ours name another request.
fn id_of_response(id: &Value) -> Option<i64> {
    let of_text = |text: &str| text.parse().ok().filter(|id: &i64| id.to_string() == text);
    number(id).or_else(|| id.as_str().and_then(of_text))
}

/// The number without a form in JSON that some servers write, and the message with `null` in place of
/// all of them: a library of Python writes them by default.
fn without_foreign_numbers(bytes: &[u8]) -> Option<(&'static str, Vec<u8>)> {
    const NUMBERS: [&str; 3] = ["-Infinity", "Infinity", "NaN"];
    let (mut first, mut mended) = (None, Vec::new());
    let (mut is_in_text, mut at) = (false, 0);
    while let Some(byte) = bytes.get(at) {
        let rest = bytes.get(at..).unwrap_or_default();
        let number = NUMBERS.into_iter().find(|number| rest.starts_with(number.as_bytes()));
        let taken = match (byte, number) {
            (_, Some(number)) if !is_in_text => {
                first.get_or_insert(number);
                mended.extend_from_slice(b"null");
                at += number.len();
                continue;
            }
            (b'\\', _) if is_in_text => 2,
            (b'"', _) => {
                is_in_text = !is_in_text;
                1
            }
            _ => 1,
        };
        mended.extend(rest.iter().take(taken));
        at += taken;
    }
    Some((first?, mended))
}
