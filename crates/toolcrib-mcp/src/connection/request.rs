//! One request and its answer.

use std::sync::Arc;

use rmcp::{
    RoleClient,
    model::{ClientRequest, ErrorCode, ErrorData, GetExtensions as _},
    service::{Peer, PeerRequestOptions, RequestHandle, ServiceError},
};
use serde_json::{Map, Value};
use toolcrib_core::CancellationToken;

use super::{
    RequestError,
    call::{Call, OnProgress},
    http,
    intake::Intake,
    open::Wiring,
    result,
    text::bounded,
};

/// Sends requests over one connection.
#[derive(Clone)]
pub(super) struct Requests {
    peer: Peer<RoleClient>,
    pub(super) wiring: Wiring,
}

impl Requests {
    pub(super) fn new(peer: Peer<RoleClient>, wiring: Wiring) -> Self {
        Self { peer, wiring }
    }

    /// Sends a request and waits for its answer, as long as the connection lasts and nobody
    /// cancels.
    pub(super) async fn ask(
        &self,
        mut request: ClientRequest,
        on_progress: Option<OnProgress>,
        cancellation: Option<&CancellationToken>,
    ) -> Result<Map<String, Value>, RequestError> {
        let Wiring { intake, ending, .. } = &self.wiring;
        let call = Call::new(on_progress);
        request.extensions_mut().insert(Arc::clone(&call));
        let cancelled = async {
            match cancellation {
                Some(cancellation) => cancellation.cancelled().await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(cancelled);
        let options = PeerRequestOptions::no_options();
        let sent = tokio::select! {
            biased;
            () = &mut cancelled => return Err(cancelled_here(&call)),
            () = ending.over() => return Err(self.unanswered(&call)),
            sent = self.peer.send_cancellable_request(request, options) => sent,
        };
        let handle = sent.map_err(|error| self.failed(error, &call))?;
        let mut waiting = Waiting { intake, handle: Some(handle) };
        let answer = {
            let Some(handle) = &mut waiting.handle else { return Err(self.unanswered(&call)) };
            tokio::select! {
                biased;
                answer = &mut handle.rx => answer,
                () = &mut cancelled => return Err(cancelled_here(&call)),
                () = ending.over() => {
                    waiting.answered();
                    return Err(self.unanswered(&call));
                }
            }
        };
        waiting.answered();
        match answer {
            Ok(Ok(result)) => match call.take_result() {
                Some(result) => Ok(result),
                None => result::fields(result),
            },
            Ok(Err(error)) => Err(self.failed(error, &call)),
            Err(_) => Err(self.unanswered(&call)),
        }
    }

    fn failed(&self, error: ServiceError, call: &Call) -> RequestError {
        if let Some(problem) = call.fault() {
            return RequestError::Malformed(problem.clone());
        }
        match error {
            ServiceError::McpError(ErrorData { code, message, .. }) => {
                RequestError::Refused { code: code.0, message: bounded(message) }
            }
            ServiceError::TransportSend(error) => {
                let (problem, is_answer) = http::why_not_answered(&error)
                    .unwrap_or_else(|| (error.error.to_string(), false));
                let problem = bounded(self.reason().map_or(problem, |reason| reason.to_string()));
                if call.withdraw() {
                    RequestError::NotSent(problem)
                } else if is_answer {
                    RequestError::Malformed(problem)
                } else {
                    RequestError::Lost(problem)
                }
            }
            ServiceError::TransportClosed => self.unanswered(call),
            other => RequestError::Malformed(bounded(other.to_string())),
        }
    }

    /// What to say of a request whose connection is over.
    fn unanswered(&self, call: &Call) -> RequestError {
        let reason = self.reason();
        let reason = reason.as_deref().unwrap_or("the answer broke off").to_owned();
        if call.withdraw() { RequestError::NotSent(reason) } else { RequestError::Lost(reason) }
    }

    fn reason(&self) -> Option<Arc<str>> {
        self.wiring.ending.reason()
    }
}

/// What to say of a request that was cancelled. One that nobody has begun to write never will be.
fn cancelled_here(call: &Call) -> RequestError {
    if call.withdraw() {
        RequestError::NotSent("it was cancelled before".to_owned())
    } else {
        RequestError::Cancelled
    }
}

/// A request whose answer is waited for. Dropped before there is one, it is cancelled.
struct Waiting<'a> {
    intake: &'a Intake,
    handle: Option<RequestHandle<RoleClient>>,
}

impl Waiting<'_> {
    /// There is nothing to cancel any more.
    fn answered(&mut self) {
        if let Some(handle) = self.handle.take() {
            self.intake.forget(&handle.id);
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let Some(handle) = self.handle.take() else { return };
        self.intake.forget(&handle.id);
        // It ends with the connection at the latest.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(handle.cancel(Some("the caller no longer waits".to_owned())));
        }
    }
}

/// Whether a server answers that it does not know the method.
pub(super) fn is_unknown_method(error: &ErrorData) -> bool {
    error.code == ErrorCode::METHOD_NOT_FOUND
}
