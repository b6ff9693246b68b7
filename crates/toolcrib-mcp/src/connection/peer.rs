//! Requests by id, and the wait for their responses.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use rmcp::model::ProtocolVersion;
use tokio::{runtime::Handle, sync::oneshot, time::timeout};
use toolcrib_core::{CancellationToken, ClientAbilities};

use super::{
    WireEvent,
    ending::Ending,
    exchange::Exchange,
    intake::Intake,
    message::{self, Introduction, Request},
    transport::{SendError, SendErrorKind, Transport, Wiring},
    types::RequestError,
};

/// How long the rest after a response is still read, so that its connection can be reused.
const READ_OUT: Duration = Duration::from_secs(1);

/// Parses a response: the whole message.
pub(super) type ParseFn<T> = fn(&[u8]) -> Result<T, RequestError>;

/// The server at the other end of a connection. Clones share it.
#[derive(Clone)]
pub(super) struct Peer(Arc<Shared>);

struct Shared {
    transport: Arc<dyn Transport>,
    wiring: Wiring,
    introduction: Mutex<Option<Arc<Introduction>>>,
    /// The abilities of this connection's clients for the server.
    abilities: ClientAbilities,
    next_id: AtomicI64,
}

impl Peer {
    pub(super) fn new(
        transport: Arc<dyn Transport>,
        wiring: Wiring,
        abilities: ClientAbilities,
    ) -> Self {
        let (introduction, next_id) = (Mutex::new(None), AtomicI64::new(1));
        Self(Arc::new(Shared { transport, wiring, introduction, abilities, next_id }))
    }

    pub(super) fn abilities(&self) -> ClientAbilities {
        self.0.abilities
    }

    pub(super) fn intake(&self) -> &Arc<Intake> {
        &self.0.wiring.intake
    }

    pub(super) fn ending(&self) -> &Arc<Ending> {
        &self.0.wiring.ending
    }

    pub(super) fn transport(&self) -> &dyn Transport {
        &*self.0.transport
    }

    /// Adds the client's metadata to each request from now on, as this version requires; `None`: no
    /// metadata.
    pub(super) fn introduce(&self, version: Option<ProtocolVersion>) {
        *self.0.introduction.lock() =
            version.map(|version| Arc::new(Introduction::new(version, self.0.abilities)));
    }

    /// Sends a notification.
    pub(super) async fn notify(&self, message: Vec<u8>) -> Result<(), RequestError> {
        self.intake().observe(WireEvent::Sent(&message));
        let sent = Arc::clone(&self.0.transport).post(message).await;
        sent.map_err(|error| RequestError::Lost(self.reason_or(error.problem)))
    }

    /// As [`call`](Self::call), for a request that is cancelled only by dropping the future.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        request: Request,
        read: ParseFn<T>,
    ) -> Result<T, RequestError> {
        self.call(request, read, &CancellationToken::new()).await
    }

    /// Sends a request and waits for its response, until the connection ends or the request is
    /// cancelled. Dropped before, it is cancelled at the server. The response is read where it
    /// arrives, a long one not on an async worker.
    pub(super) async fn call<T: Send + 'static>(
        &self,
        request: Request,
        read: ParseFn<T>,
        cancellation: &CancellationToken,
    ) -> Result<T, RequestError> {
        let answered = self.exchange(request, read, cancellation).await;
        answered.map_err(|error| error.shown(self.intake()))
    }

    async fn exchange<T: Send + 'static>(
        &self,
        request: Request,
        read: ParseFn<T>,
        cancellation: &CancellationToken,
    ) -> Result<T, RequestError> {
        let (sender, mut response) = oneshot::channel();
        let intake = Arc::clone(self.intake());
        let on_response = move |message: Result<&[u8], RequestError>| {
            let answered = message.and_then(|bytes| {
                read(bytes).map_err(|error| error.quoting(|| intake.preview(bytes)))
            });
            // The waiter may be gone.
            let _ = sender.send(answered);
        };
        let id = self.0.next_id.fetch_add(1, Ordering::Relaxed);
        let introduction = self.0.introduction.lock().clone();
        let exchange = Arc::new(Exchange::new(id, request, introduction, on_response));
        if cancellation.is_cancelled() {
            return Err(self.cancelled_here(&exchange));
        }
        if self.ending().is_retired() {
            return Err(self.unanswered(&exchange));
        }
        self.intake().expect(&exchange);
        let sending = Arc::clone(&self.0.transport).send(Arc::clone(&exchange));
        let mut pending = PendingRequest {
            peer: self,
            exchange: &exchange,
            sending: Some(sending),
            is_over: false,
        };
        let answered = tokio::select! {
            biased;
            // The response may have come just before.
            failed = pending.send() => response.try_recv().unwrap_or_else(|_| {
                Err(self.failed(failed, &exchange))
            }),
            Ok(answered) = &mut response => answered,
            () = cancellation.cancelled() => return Err(self.cancelled_here(&exchange)),
            () = self.ending().over() => Err(self.unanswered(&exchange)),
        };
        pending.is_over();
        answered
    }

    /// The error of a request that was not sent, or whose response was not read.
    fn failed(&self, failed: SendError, exchange: &Exchange) -> RequestError {
        let problem = self.reason_or(failed.problem);
        if exchange.withdraw() {
            return RequestError::NotSent(problem);
        }
        match failed.kind {
            SendErrorKind::Broken => RequestError::Lost(problem),
            SendErrorKind::SessionLost => RequestError::SessionLost(problem),
            SendErrorKind::Unusable => RequestError::Malformed(problem),
            SendErrorKind::TooLarge => RequestError::TooLarge(problem),
            SendErrorKind::Denied => RequestError::Denied(problem),
            SendErrorKind::Limited(wait) => RequestError::Limited { problem, wait },
            SendErrorKind::Failed(status) => RequestError::Failed { problem, status },
        }
    }

    /// The error of a request whose connection has ended.
    fn unanswered(&self, exchange: &Exchange) -> RequestError {
        self.failed(SendError::broken("the answer broke off"), exchange)
    }

    /// The error of a request that was cancelled. An unsent one will never be sent.
    fn cancelled_here(&self, exchange: &Exchange) -> RequestError {
        if exchange.withdraw() {
            RequestError::NotSent("it was cancelled before".to_owned())
        } else {
            RequestError::Cancelled(self.intake().stray())
        }
    }

    /// The reason of the connection's end, if it has ended.
    fn reason_or(&self, problem: String) -> String {
        self.ending().reason().map_or(problem, |reason| reason.to_string())
    }
}

/// A request waiting for its response. Dropped before, it is cancelled.
struct PendingRequest<'a> {
    peer: &'a Peer,
    exchange: &'a Exchange,
    /// `None` once it has ended, or all of it has been written and read.
    sending: Option<BoxFuture<'static, Result<(), SendError>>>,
    is_over: bool,
}

impl PendingRequest<'_> {
    /// Done when sending has failed; pending forever after a success.
    async fn send(&mut self) -> SendError {
        if let Some(sending) = &mut self.sending {
            let outcome = sending.await;
            self.sending = None;
            if let Err(failed) = outcome {
                return failed;
            }
        }
        std::future::pending().await
    }

    /// There is nothing to cancel any more. The rest after the response is still read.
    fn is_over(&mut self) {
        self.is_over = true;
        self.peer.intake().forget(self.exchange.id);
        if let Some(sending) = self.sending.take() {
            tokio::spawn(timeout(READ_OUT, sending));
        }
    }
}

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let (transport, exchange) = (&self.peer.0.transport, self.exchange);
        self.peer.intake().forget(exchange.id);
        let sending = self.sending.take();
        if exchange.withdraw()
            || exchange.request.is_greeting()
            || transport.cancels_by_closing(exchange)
        {
            return;
        }
        // It ends with the connection at the latest.
        if let Ok(runtime) = Handle::try_current() {
            let cancelling = Arc::clone(transport).post(message::cancelled(exchange.id));
            runtime.spawn(async move {
                let _ = cancelling.await;
                // Some servers treat a stream that closes first as a client that may come back.
                drop(sending);
            });
        }
    }
}
