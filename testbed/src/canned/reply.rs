//! The parts of a prepared reply.

use std::{sync::Arc, time::Duration};

use axum::{body::Bytes, http::StatusCode};
use serde_json::Value;
use tokio::sync::Semaphore;

/// A prepared reply: a head, pieces of a body with pauses between them, and an end.
///
/// Each [`piece`](Self::piece) is sent separately, as one chunk of a chunked body;
/// [`body`](Self::body) declares its length in the head. The reply ends as the protocol requires,
/// unless [`cut`](Self::cut), [`reset`](Self::reset) or [`hold`](Self::hold) changes that.
#[derive(Debug, Clone)]
#[must_use = "a reply is sent by a `CannedServer`"]
pub struct Reply {
    status: Option<u16>,
    headers: Vec<(String, String)>,
    framing: Framing,
    pub(super) steps: Vec<Step>,
    pub(super) ending: Ending,
}

/// How the end of the body is marked.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Framing {
    Chunked,
    Length(usize),
    /// By the end of the connection.
    Close,
}

#[derive(Debug, Clone)]
pub(super) enum Step {
    Send(Bytes),
    Wait(Duration),
    Gate(Gate),
}

/// Pauses in replies that a test ends, one after the other, instead of a time. Clones share it.
#[derive(Debug, Clone)]
pub struct Gate(Arc<Semaphore>);

impl Gate {
    /// A closed gate.
    pub fn new() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }

    /// Ends the current pause, or else the next.
    pub fn open(&self) {
        self.0.add_permits(1);
    }

    pub(super) async fn wait(&self) {
        // It is never closed.
        if let Ok(permit) = self.0.acquire().await {
            permit.forget();
        }
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

/// How a reply ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Ending {
    /// As its framing requires; the connection is reused if possible.
    Clean,
    /// The connection is closed immediately.
    Cut,
    /// The connection is reset.
    Reset,
    /// No further byte is sent.
    Hold,
}

impl Reply {
    /// A reply with a status and without a body.
    pub fn new(status: u16) -> Self {
        Self {
            status: Some(status),
            headers: Vec::new(),
            framing: Framing::Chunked,
            steps: Vec::new(),
            ending: Ending::Clean,
        }
    }

    /// A 200 whose body is a stream of server-sent events.
    pub fn sse() -> Self {
        Self::new(200).header("content-type", "text/event-stream")
    }

    /// A 200 whose body is JSON line by line.
    pub fn ndjson() -> Self {
        Self::new(200).header("content-type", "application/x-ndjson")
    }

    /// A status with a JSON body.
    pub fn json(status: u16, body: &Value) -> Self {
        Self::new(status).header("content-type", "application/json").body(body.to_string())
    }

    /// No HTTP response: only the pieces are sent, which need not be HTTP, and then the connection
    /// is closed.
    pub fn nothing() -> Self {
        Self { status: None, framing: Framing::Close, ..Self::new(0) }
    }

    /// Adds a header. A line break in it makes the head malformed, which may be intended.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets a whole body, with its length in the head.
    pub fn body(self, bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        self.content_length(bytes.len()).piece(bytes)
    }

    /// Adds a piece of the body.
    pub fn piece(mut self, bytes: impl Into<Bytes>) -> Self {
        self.steps.push(Step::Send(bytes.into()));
        self
    }

    /// Adds pieces of the body. Clones of one [`Bytes`] share their memory, so the body can have
    /// any size.
    pub fn pieces(mut self, pieces: impl IntoIterator<Item = Bytes>) -> Self {
        self.steps.extend(pieces.into_iter().map(Step::Send));
        self
    }

    /// Adds a pause.
    pub fn pause(mut self, pause: Duration) -> Self {
        self.steps.push(Step::Wait(pause));
        self
    }

    /// Adds a pause until the gate opens.
    pub fn gate(mut self, gate: &Gate) -> Self {
        self.steps.push(Step::Gate(gate.clone()));
        self
    }

    /// Declares this length in the head, in bytes, independent of the pieces.
    pub fn content_length(mut self, bytes: usize) -> Self {
        self.framing = Framing::Length(bytes);
        self
    }

    /// Ends the body with the connection, without length and chunks.
    pub fn until_close(mut self) -> Self {
        self.framing = Framing::Close;
        self
    }

    /// Closes the connection after the last piece, without the end of a chunked body.
    pub fn cut(mut self) -> Self {
        self.ending = Ending::Cut;
        self
    }

    /// Resets the connection after the last piece. Data that the client has not read by then may be
    /// lost.
    pub fn reset(mut self) -> Self {
        self.ending = Ending::Reset;
        self
    }

    /// Sends nothing after the last piece, and keeps the connection open until the client
    /// disconnects.
    pub fn hold(mut self) -> Self {
        self.ending = Ending::Hold;
        self
    }

    /// The serialized head; empty if there is none.
    pub(super) fn head(&self) -> String {
        let Some(status) = self.status else { return String::new() };
        let reason = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
        let mut head = format!("HTTP/1.1 {status} {}\r\n", reason.unwrap_or("Unknown"));
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += &match self.framing {
            Framing::Chunked => "transfer-encoding: chunked\r\n\r\n".to_owned(),
            Framing::Length(bytes) => format!("content-length: {bytes}\r\n\r\n"),
            Framing::Close => "connection: close\r\n\r\n".to_owned(),
        };
        head
    }

    /// The framing before and after a piece.
    pub(super) fn around(&self, piece: &[u8]) -> (String, &'static str) {
        match self.framing {
            // An empty chunk would be the end.
            Framing::Chunked if !piece.is_empty() => (format!("{:x}\r\n", piece.len()), "\r\n"),
            _ => (String::new(), ""),
        }
    }

    /// The bytes after the last piece of a reply that ends normally.
    pub(super) fn tail(&self) -> &'static str {
        if self.framing == Framing::Chunked { "0\r\n\r\n" } else { "" }
    }

    /// Whether the connection can be reused.
    pub(super) fn keeps_open(&self) -> bool {
        self.ending == Ending::Clean && self.framing != Framing::Close
    }
}
