use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU8, AtomicUsize, Ordering},
};

use parking_lot::Mutex;

use rmcp::model::{ClientJsonRpcMessage, ErrorData, GetExtensions as _};
use serde_json::{Map, Value};
use tokio::sync::oneshot;

/// Receives a server's progress: a text, and the percentage done, 0 to 100.
pub(crate) type OnProgress = Arc<dyn Fn(String, Option<u8>) + Send + Sync>;

/// Writing has not begun.
const WAITING: u8 = 0;
/// It is being written, or was.
const WRITTEN: u8 = 1;
/// It will not be written.
const WITHDRAWN: u8 = 2;

/// The parsed response of a server to a call.
pub(super) type Answered = Result<Map<String, Value>, NoResult>;

/// A response without a result.
#[derive(Debug)]
pub(super) enum NoResult {
    /// The server's error response.
    Refused(ErrorData),
    /// An unusable response, with the reason.
    Unusable(String),
}

/// The state of one request in addition to its response. For a request through the protocol library
/// it is attached to the message as an extension, which is never on the wire, so that both ends
/// share it.
///
/// Waiter and writer of the request agree on whether it was sent: of [`begin`](Self::begin) and
/// [`withdraw`](Self::withdraw) only one succeeds.
pub(super) struct Call {
    stage: AtomicU8,
    on_progress: Option<OnProgress>,
    fault: OnceLock<String>,
    answer_bytes: AtomicUsize,
    /// Where the answer goes, once; none where the protocol library takes it.
    answer: Option<Mutex<Option<oneshot::Sender<Answered>>>>,
}

impl Call {
    /// A request whose response comes from the protocol library.
    pub(super) fn of_library() -> Arc<Self> {
        Arc::new(Self::with(None, None))
    }

    /// A request whose response comes from the receiver.
    pub(super) fn new(on_progress: OnProgress) -> (Arc<Self>, oneshot::Receiver<Answered>) {
        let (sender, receiver) = oneshot::channel();
        let answer = Mutex::new(Some(sender));
        (Arc::new(Self::with(Some(on_progress), Some(answer))), receiver)
    }

    fn with(
        on_progress: Option<OnProgress>,
        answer: Option<Mutex<Option<oneshot::Sender<Answered>>>>,
    ) -> Self {
        Self {
            stage: AtomicU8::new(WAITING),
            on_progress,
            fault: OnceLock::new(),
            answer_bytes: AtomicUsize::new(0),
            answer,
        }
    }

    /// The call whose request a message is.
    pub(super) fn of(message: &ClientJsonRpcMessage) -> Option<Arc<Self>> {
        match message {
            ClientJsonRpcMessage::Request(request) => {
                request.request.extensions().get::<Arc<Self>>().cloned()
            }
            _ => None,
        }
    }

    /// Called before its first byte is written. `false`: it was withdrawn and must not be sent.
    pub(super) fn begin(&self) -> bool {
        self.step(WAITING, WRITTEN)
    }

    /// Called after [`begin`](Self::begin), if nothing of it reached the server.
    pub(super) fn revert(&self) {
        self.step(WRITTEN, WAITING);
    }

    /// Withdraws it; `false` if it was sent.
    pub(super) fn withdraw(&self) -> bool {
        self.step(WAITING, WITHDRAWN) || self.stage.load(Ordering::Acquire) == WITHDRAWN
    }

    pub(super) fn progress(&self, text: String, percent: Option<u8>) {
        if let Some(on_progress) = &self.on_progress {
            on_progress(text, percent);
        }
    }

    /// Whether its response bypasses the protocol library.
    pub(super) fn takes_answer(&self) -> bool {
        self.answer.is_some()
    }

    /// Passes its response to the waiter.
    pub(super) fn settle(&self, answered: Answered) {
        if let Some(answer) = &self.answer
            && let Some(waiting) = answer.lock().take()
        {
            // The waiter may be gone.
            let _ = waiting.send(answered);
        }
    }

    /// Whether its response has been passed on.
    pub(super) fn is_settled(&self) -> bool {
        self.answer.as_ref().is_some_and(|answer| answer.lock().is_none())
    }

    /// Records an unusable response, with the reason.
    pub(super) fn set_fault(&self, problem: String) {
        let _ = self.fault.set(problem);
    }

    pub(super) fn set_answer_bytes(&self, bytes: usize) {
        self.answer_bytes.store(bytes, Ordering::Relaxed);
    }

    /// How long its answer was, which says how much work it is to go through it.
    pub(super) fn answer_bytes(&self) -> usize {
        self.answer_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn fault(&self) -> Option<&String> {
        self.fault.get()
    }

    fn step(&self, from: u8, to: u8) -> bool {
        self.stage.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}
