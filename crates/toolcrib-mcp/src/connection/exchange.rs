//! One request and its pending response.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

use parking_lot::Mutex;

use super::{
    message::{Introduction, Request},
    types::RequestError,
};

/// Writing has not begun.
const WAITING: u8 = 0;
/// The request is being written, or was.
const WRITTEN: u8 = 1;
/// The request will not be written.
const WITHDRAWN: u8 = 2;

/// Receives the response: the whole message, or why there is none.
type OnResponse = Box<dyn FnOnce(Result<&[u8], RequestError>) + Send>;

/// One request, shared by the waiting task, the writing task and the intake.
///
/// Waiter and writer agree on whether it was sent: of [`begin`](Self::begin) and
/// [`withdraw`](Self::withdraw) only one succeeds.
pub(super) struct Exchange {
    pub(super) id: i64,
    pub(super) request: Request,
    /// The client's metadata, if each request needs it.
    pub(super) introduction: Option<Arc<Introduction>>,
    stage: AtomicU8,
    /// `None` after the response.
    on_response: Mutex<Option<OnResponse>>,
}

impl Exchange {
    pub(super) fn new(
        id: i64,
        request: Request,
        introduction: Option<Arc<Introduction>>,
        on_response: impl FnOnce(Result<&[u8], RequestError>) + Send + 'static,
    ) -> Self {
        Self {
            id,
            request,
            introduction,
            stage: AtomicU8::new(WAITING),
            on_response: Mutex::new(Some(Box::new(on_response))),
        }
    }

    /// The message, on one line and without its end.
    pub(super) fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        self.request.to_json(self.id, self.introduction.as_deref())
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

    /// Passes on its response. Only the first one counts.
    pub(super) fn settle(&self, response: Result<&[u8], RequestError>) {
        let on_response = self.on_response.lock().take();
        if let Some(on_response) = on_response {
            on_response(response);
        }
    }

    /// Whether its response has been passed on.
    pub(super) fn is_settled(&self) -> bool {
        self.on_response.lock().is_none()
    }

    fn step(&self, from: u8, to: u8) -> bool {
        self.stage.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}
