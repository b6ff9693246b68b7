//! The receiver of messages to a client, and a response to it.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use rmcp::{
    ErrorData,
    model::{ProgressToken, RequestId, ServerJsonRpcMessage, ServerNotification, ServerResult},
};
use tokio::sync::{Notify, mpsc};

use crate::wire::{events::EventStream, message::json, quoted::bounded};

/// A response to send.
pub(crate) struct Answer {
    pub(crate) id: RequestId,
    pub(crate) outcome: Result<ServerResult, ErrorData>,
    recheck: Option<RecheckOnDrop>,
}

impl Answer {
    pub(crate) fn new(id: RequestId, outcome: Result<ServerResult, ErrorData>) -> Self {
        Self { id, outcome, recheck: None }
    }

    /// The same, which has a session's menu checked once it is sent.
    pub(crate) fn rechecking(self, recheck: Option<RecheckOnDrop>) -> Self {
        Self { recheck, ..self }
    }

    /// Sends the response, as JSON.
    pub(crate) fn send<R>(self, send: impl FnOnce(Bytes) -> R) -> R {
        let message = match self.outcome {
            Ok(result) => ServerJsonRpcMessage::response(result, self.id),
            Err(error) => ServerJsonRpcMessage::error(bounded(error), Some(self.id)),
        };
        let sent = send(json(&message));
        drop(self.recheck);
        sent
    }
}

/// Has a session's menu checked when it is dropped: after the response, or if it cannot be sent.
pub(crate) struct RecheckOnDrop(pub(crate) Arc<Notify>);

impl Drop for RecheckOnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// The open request of a call, and its token of progress. A call that needs input has another one
/// in each round, and none while it waits for its client.
#[derive(Clone)]
pub(crate) struct OpenRequest(Arc<Mutex<Option<Recipient>>>);

type Recipient = (ClientSender, Option<ProgressToken>);

impl OpenRequest {
    pub(crate) fn new(client: ClientSender, progress: Option<ProgressToken>) -> Self {
        Self(Arc::new(Mutex::new(Some((client, progress)))))
    }

    pub(crate) fn client(&self) -> Option<ClientSender> {
        self.0.lock().as_ref().map(|(client, _)| client.clone())
    }

    /// The client with the token of progress, if it requested progress.
    pub(crate) fn progress(&self) -> Option<(ClientSender, ProgressToken)> {
        let open = self.0.lock();
        let (client, token) = open.as_ref()?;
        Some((client.clone(), token.clone()?))
    }

    /// The next round replaces this one.
    pub(crate) fn continue_with(&self, next: &Self) {
        let next = next.0.lock().take();
        *self.0.lock() = next;
    }

    /// The request is about to be answered.
    pub(crate) fn close(&self) {
        self.0.lock().take();
    }
}

/// The receiver of notifications.
#[derive(Clone)]
pub(crate) enum ClientSender {
    /// The lines of a client by stdio.
    Lines(mpsc::Sender<Bytes>),
    /// A stream over HTTP.
    Events(EventStream),
}

impl ClientSender {
    /// Sends a notification; false if the client reads nothing any more.
    pub(crate) async fn notify(&self, notification: ServerNotification) -> bool {
        self.send(json(&ServerJsonRpcMessage::notification(notification))).await
    }

    /// Sends a message if the client has room for it.
    pub(crate) fn offer(&self, message: Bytes) {
        match self {
            // A client that reads too slowly misses some.
            Self::Lines(lines) => drop(lines.try_send(message)),
            Self::Events(events) => events.send(message),
        }
    }

    /// Sends a request, and returns its number; `None` if the client does not read its messages.
    pub(crate) async fn request(&self, message: Bytes) -> Option<u64> {
        match self {
            Self::Lines(lines) => lines.send(message).await.ok().map(|()| 0),
            Self::Events(events) => events.send_request(message),
        }
    }

    /// A request has a response, or needs none any more.
    pub(crate) fn request_is_over(&self, number: u64) {
        match self {
            Self::Lines(_) => {}
            Self::Events(events) => events.is_over(number),
        }
    }

    /// Sends a message; false if the client reads nothing any more.
    pub(crate) async fn send(&self, message: Bytes) -> bool {
        match self {
            Self::Lines(lines) => lines.send(message).await.is_ok(),
            Self::Events(events) => {
                events.send(message);
                true
            }
        }
    }
}
