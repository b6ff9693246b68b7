use std::sync::{
    Arc, Mutex, OnceLock, PoisonError,
    atomic::{AtomicU8, Ordering},
};

use rmcp::model::{ClientJsonRpcMessage, ClientRequest, GetExtensions as _};
use serde_json::{Map, Value};

/// Told of a server's progress: a text, and how much is done, 0 to 100.
pub(super) type OnProgress = Arc<dyn Fn(String, Option<u8>) + Send + Sync>;

/// Nobody has begun to write it.
const WAITING: u8 = 0;
/// It is being written, or was.
const WRITTEN: u8 = 1;
/// It will not be written.
const WITHDRAWN: u8 = 2;

/// What is known of one request beside its answer. It goes to the transport as an extension of the
/// message, which is never on the wire, so that both know of the same request.
///
/// Who waits for the answer and who writes the request agree on whether it was sent: of
/// [`begin`](Self::begin) and [`withdraw`](Self::withdraw) only one succeeds.
pub(super) struct Call {
    stage: AtomicU8,
    on_progress: Option<OnProgress>,
    fault: OnceLock<String>,
    /// The result, where it does not go through the protocol library.
    result: Mutex<Option<Map<String, Value>>>,
}

impl Call {
    pub(super) fn new(on_progress: Option<OnProgress>) -> Arc<Self> {
        Arc::new(Self {
            stage: AtomicU8::new(WAITING),
            on_progress,
            fault: OnceLock::new(),
            result: Mutex::default(),
        })
    }

    /// The call that a message is the request of.
    pub(super) fn of(message: &ClientJsonRpcMessage) -> Option<Arc<Self>> {
        match message {
            ClientJsonRpcMessage::Request(request) => {
                request.request.extensions().get::<Arc<Self>>().cloned()
            }
            _ => None,
        }
    }

    /// Before its first byte is written. `false`: nobody waits for it any more, so it must not be.
    pub(super) fn begin(&self) -> bool {
        self.step(WAITING, WRITTEN)
    }

    /// After [`begin`](Self::begin), where nothing of it reached the server after all.
    pub(super) fn revert(&self) {
        self.step(WRITTEN, WAITING);
    }

    /// Whether it was not sent, and now never will be.
    pub(super) fn withdraw(&self) -> bool {
        self.step(WAITING, WITHDRAWN) || self.stage.load(Ordering::Acquire) == WITHDRAWN
    }

    pub(super) fn progress(&self, text: String, percent: Option<u8>) {
        if let Some(on_progress) = &self.on_progress {
            on_progress(text, percent);
        }
    }

    /// Whether the result of a request needs no look of the protocol library, which would read it a
    /// second time and write it out again: that of a `tools/call`.
    pub(super) fn takes_result(message: &ClientJsonRpcMessage) -> bool {
        matches!(
            message,
            ClientJsonRpcMessage::Request(request)
                if matches!(request.request, ClientRequest::CallToolRequest(_))
        )
    }

    pub(super) fn set_result(&self, result: Map<String, Value>) {
        *self.result.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
    }

    pub(super) fn take_result(&self) -> Option<Map<String, Value>> {
        self.result.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Says that there is an answer, and why it cannot be used.
    pub(super) fn set_fault(&self, problem: String) {
        let _ = self.fault.set(problem);
    }

    pub(super) fn fault(&self) -> Option<&String> {
        self.fault.get()
    }

    fn step(&self, from: u8, to: u8) -> bool {
        self.stage.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}
