use std::sync::{
    Arc, Mutex, OnceLock, PoisonError,
    atomic::{AtomicU8, Ordering},
};

use rmcp::model::{ClientJsonRpcMessage, ErrorData, GetExtensions as _};
use serde_json::{Map, Value};
use tokio::sync::oneshot;

/// Told of a server's progress: a text, and how much is done, 0 to 100.
pub(crate) type OnProgress = Arc<dyn Fn(String, Option<u8>) + Send + Sync>;

/// Nobody has begun to write it.
const WAITING: u8 = 0;
/// It is being written, or was.
const WRITTEN: u8 = 1;
/// It will not be written.
const WITHDRAWN: u8 = 2;

/// What a server answered to a call, as it was read.
pub(super) type Answered = Result<Map<String, Value>, NoResult>;

/// An answer without a result.
#[derive(Debug)]
pub(super) enum NoResult {
    /// The server refuses.
    Refused(ErrorData),
    /// It cannot be used, for this reason.
    Unusable(String),
}

/// What is known of one request beside its answer. Where the request goes through the protocol
/// library, this goes to the transport as an extension of the message, which is never on the wire,
/// so that both know of the same request.
///
/// Who waits for the answer and who writes the request agree on whether it was sent: of
/// [`begin`](Self::begin) and [`withdraw`](Self::withdraw) only one succeeds.
pub(super) struct Call {
    stage: AtomicU8,
    on_progress: Option<OnProgress>,
    fault: OnceLock<String>,
    /// Where the answer goes, once; none where the protocol library takes it.
    answer: Option<Mutex<Option<oneshot::Sender<Answered>>>>,
}

impl Call {
    /// A request whose answer comes out of the protocol library.
    pub(super) fn of_library() -> Arc<Self> {
        Arc::new(Self::with(None, None))
    }

    /// A request whose answer comes out of the receiver.
    pub(super) fn new(on_progress: OnProgress) -> (Arc<Self>, oneshot::Receiver<Answered>) {
        let (sender, receiver) = oneshot::channel();
        let answer = Mutex::new(Some(sender));
        (Arc::new(Self::with(Some(on_progress), Some(answer))), receiver)
    }

    fn with(
        on_progress: Option<OnProgress>,
        answer: Option<Mutex<Option<oneshot::Sender<Answered>>>>,
    ) -> Self {
        Self { stage: AtomicU8::new(WAITING), on_progress, fault: OnceLock::new(), answer }
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

    /// Whether its answer goes past the protocol library.
    pub(super) fn takes_answer(&self) -> bool {
        self.answer.is_some()
    }

    /// Hands its answer to whoever waits for it.
    pub(super) fn settle(&self, answered: Answered) {
        if let Some(answer) = &self.answer
            && let Some(waiting) = answer.lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            // Whoever waits no more needs none.
            let _ = waiting.send(answered);
        }
    }

    /// Whether its answer has been handed over.
    pub(super) fn is_settled(&self) -> bool {
        self.answer
            .as_ref()
            .is_some_and(|answer| answer.lock().unwrap_or_else(PoisonError::into_inner).is_none())
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
