//! One request and its response.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use futures_util::future::BoxFuture;
use rmcp::{
    RoleClient,
    model::{
        CancelledNotificationParam, ClientRequest, ErrorCode, ErrorData, GetExtensions as _,
        RequestId,
    },
    service::{Peer, PeerRequestOptions, RequestHandle, ServiceError},
};
use serde_json::{Map, Value};
use tokio::{runtime::Handle, sync::oneshot::error::TryRecvError, time::timeout};
use toolcrib_core::CancellationToken;

use super::{
    RequestError,
    call::{Answered, Call, NoResult, OnProgress},
    carry::{Carrier, Introduction, NotCarried, Outgoing},
    http,
    intake::Intake,
    open::Wiring,
    result,
};

/// The first id of calls, far from the ids of the protocol library, which begin at 0. They fit into
/// 31 bits, for servers that need that.
const FIRST_CALL: i64 = 1_000_000_000;

/// How long the rest after a response is still read, so that its connection can be reused.
const READ_OUT: Duration = Duration::from_secs(1);

/// The reason in a cancellation for a server.
const NOBODY_WAITS: &str = "the caller no longer waits";

/// Sends requests over one connection.
#[derive(Clone)]
pub(super) struct Requests {
    shared: Arc<Shared>,
    pub(super) wiring: Wiring,
}

struct Shared {
    peer: Peer<RoleClient>,
    carrier: Arc<dyn Carrier>,
    introduction: Option<Arc<Introduction>>,
    next_call: AtomicI64,
}

/// A call to be sent.
pub(super) struct Sent {
    pub(super) tool: Arc<str>,
    pub(super) arguments: Arc<Map<String, Value>>,
    /// The server's state to return, if it requested another call.
    pub(super) state: Option<String>,
    pub(super) on_progress: OnProgress,
}

impl Requests {
    pub(super) fn new(
        peer: Peer<RoleClient>,
        carrier: Arc<dyn Carrier>,
        introduction: Option<Introduction>,
        wiring: Wiring,
    ) -> Self {
        let introduction = introduction.map(Arc::new);
        let next_call = AtomicI64::new(FIRST_CALL);
        Self { shared: Arc::new(Shared { peer, carrier, introduction, next_call }), wiring }
    }

    pub(super) fn carrier(&self) -> &dyn Carrier {
        &*self.shared.carrier
    }

    /// Sends a call and waits for its response, until the connection ends or the call is cancelled.
    /// Dropped before, it is cancelled at the server.
    pub(super) async fn call(
        &self,
        sent: Sent,
        cancellation: &CancellationToken,
    ) -> Result<Map<String, Value>, RequestError> {
        let Wiring { intake, ending, .. } = &self.wiring;
        let (call, mut answer) = Call::new(sent.on_progress);
        if cancellation.is_cancelled() {
            return Err(cancelled_here(&call));
        }
        if ending.is_over() {
            return Err(self.unanswered(&call));
        }
        let id = self.shared.next_call.fetch_add(1, Ordering::Relaxed);
        intake.expect_call(id, &call);
        let carried = self.shared.carrier.carry(Outgoing {
            id,
            tool: sent.tool,
            arguments: sent.arguments,
            state: sent.state,
            introduction: self.shared.introduction.clone(),
            call: Arc::clone(&call),
        });
        let mut called =
            Called { requests: self, id, call: &call, carried: Some(carried), is_over: false };
        let answered = tokio::select! {
            biased;
            not_carried = called.carried() => match answer.try_recv() {
                // It came just before.
                Ok(answered) => Ok(answered),
                Err(TryRecvError::Empty | TryRecvError::Closed) => Err(not_carried),
            },
            Ok(answered) = &mut answer => Ok(answered),
            () = cancellation.cancelled() => return Err(cancelled_here(&call)),
            () = ending.over() => {
                called.is_over();
                return Err(self.unanswered(&call));
            }
        };
        called.is_over();
        match answered {
            Ok(answered) => self.result_of(answered),
            Err(not_carried) => Err(self.not_carried(not_carried, &call)),
        }
    }

    fn result_of(&self, answered: Answered) -> Result<Map<String, Value>, RequestError> {
        answered.map_err(|no_result| match no_result {
            NoResult::Refused(ErrorData { code, message, .. }) => {
                RequestError::Refused { code: code.0, message: message.into_owned() }
            }
            NoResult::Unusable(problem) => RequestError::Malformed(problem),
        })
    }

    /// Sends a request by the protocol library and waits for its answer, as long as the connection
    /// lasts. `read` converts its content.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        mut request: ClientRequest,
        read: fn(Map<String, Value>) -> Result<T, RequestError>,
    ) -> Result<T, RequestError> {
        let Wiring { intake, ending, .. } = &self.wiring;
        let call = Call::of_library();
        request.extensions_mut().insert(Arc::clone(&call));
        let options = PeerRequestOptions::no_options();
        let sent = tokio::select! {
            biased;
            () = ending.over() => return Err(self.unanswered(&call)),
            sent = self.shared.peer.send_cancellable_request(request, options) => sent,
        };
        let handle = sent.map_err(|error| self.failed(error, &call))?;
        let mut waiting = Waiting { intake, handle: Some(handle) };
        let answer = {
            let Some(handle) = &mut waiting.handle else { return Err(self.unanswered(&call)) };
            tokio::select! {
                biased;
                answer = &mut handle.rx => answer,
                () = ending.over() => {
                    waiting.answered();
                    return Err(self.unanswered(&call));
                }
            }
        };
        waiting.answered();
        match answer {
            Ok(Ok(result)) => {
                let read = move || read(result::fields(result)?);
                let read = intake.off_worker(call.answer_bytes(), read).await;
                read.unwrap_or_else(|problem| Err(RequestError::Malformed(problem)))
            }
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
                RequestError::Refused { code: code.0, message: message.into_owned() }
            }
            ServiceError::TransportSend(error) => {
                let not_carried = http::why_not_answered(&error)
                    .unwrap_or_else(|| NotCarried::broken(error.error.to_string()));
                self.not_carried(not_carried, call)
            }
            ServiceError::TransportClosed => self.unanswered(call),
            other => RequestError::Malformed(other.to_string()),
        }
    }

    /// The error of a request whose transport broke.
    fn not_carried(&self, failed: NotCarried, call: &Call) -> RequestError {
        let NotCarried { problem, is_answer } = failed;
        let problem = self.reason().map_or(problem, |reason| reason.to_string());
        if call.withdraw() {
            RequestError::NotSent(problem)
        } else if is_answer {
            RequestError::Malformed(problem)
        } else {
            RequestError::Lost(problem)
        }
    }

    /// The error of a request whose connection has ended.
    fn unanswered(&self, call: &Call) -> RequestError {
        let reason = self.reason();
        let reason = reason.as_deref().unwrap_or("the answer broke off").to_owned();
        if call.withdraw() { RequestError::NotSent(reason) } else { RequestError::Lost(reason) }
    }

    fn reason(&self) -> Option<Arc<str>> {
        self.wiring.ending.reason()
    }
}

/// The error of a request that was cancelled. An unsent one will never be sent.
fn cancelled_here(call: &Call) -> RequestError {
    if call.withdraw() {
        RequestError::NotSent("it was cancelled before".to_owned())
    } else {
        RequestError::Cancelled
    }
}

/// A call waiting for its response. Dropped before, it is cancelled.
struct Called<'a> {
    requests: &'a Requests,
    id: i64,
    call: &'a Call,
    /// `None` once it has ended, or all of it has been written and read.
    carried: Option<BoxFuture<'static, Result<(), NotCarried>>>,
    is_over: bool,
}

impl Called<'_> {
    /// Done when sending has failed; pending forever after a success.
    async fn carried(&mut self) -> NotCarried {
        if let Some(carried) = &mut self.carried {
            let outcome = carried.await;
            self.carried = None;
            if let Err(failed) = outcome {
                return failed;
            }
        }
        std::future::pending().await
    }

    /// There is nothing to cancel any more. The rest after the response is still read.
    fn is_over(&mut self) {
        self.is_over = true;
        self.requests.wiring.intake.forget_call(self.id);
        if let Some(carried) = self.carried.take() {
            tokio::spawn(timeout(READ_OUT, carried));
        }
    }
}

impl Drop for Called<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        self.requests.wiring.intake.forget_call(self.id);
        let carried = self.carried.take();
        if self.call.withdraw() {
            return;
        }
        // It ends with the connection at the latest.
        if let Ok(runtime) = Handle::try_current() {
            let peer = self.requests.shared.peer.clone();
            let cancelled = CancelledNotificationParam::new(
                Some(RequestId::Number(self.id)),
                Some(NOBODY_WAITS.to_owned()),
            );
            runtime.spawn(async move {
                let _ = peer.notify_cancelled(cancelled).await;
                // Some servers treat a stream that closes first as a client that may come back.
                drop(carried);
            });
        }
    }
}

/// A request of the protocol library waiting for its response. Dropped before, it is cancelled.
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
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(handle.cancel(Some(NOBODY_WAITS.to_owned())));
        }
    }
}

/// Whether a server reports an unknown method.
pub(super) fn is_unknown_method(error: &ErrorData) -> bool {
    error.code == ErrorCode::METHOD_NOT_FOUND
}
