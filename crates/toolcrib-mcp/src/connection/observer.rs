//! The traffic of a connection, for a check of the server.

use std::sync::Arc;

/// A part of the traffic with a server, as bytes, before anything of it is judged or limited.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum WireEvent<'a> {
    /// A request or a notification of this client, just before it is sent. A new handshake begins a new
    /// numbering of requests.
    Sent(&'a [u8]),
    /// A message of the server, or something else in its place: a line of a program, or the body or an
    /// event of an HTTP response.
    Received(&'a [u8]),
    /// The program did not end within five seconds after its standard input was closed.
    OutlivedInput,
}

type Observe = dyn Fn(WireEvent<'_>) + Send + Sync;

/// Receives the traffic. It is called where a message is read, and should return quickly.
#[derive(Clone)]
pub(crate) struct WireObserver(Arc<Observe>);

impl WireObserver {
    pub(crate) fn new(observe: impl Fn(WireEvent<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(observe))
    }

    pub(super) fn see(&self, event: WireEvent<'_>) {
        (self.0)(event);
    }
}

toolcrib_core::__internal::debug_fields!(WireObserver);
