//! Messages as server-sent events.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use futures_util::{
    Stream, StreamExt as _,
    stream::{self, BoxStream},
};
use rmcp::model::RequestId;
use sse_stream::{Error as SseError, Sse, SseStream};
use tokio::time::sleep;
use toolcrib_scope::http::{HttpError, HttpStream};

use super::super::{ending::Ending, intake::Intake, open::Wiring};

/// How many bytes an event may have: 16 MiB. It is held in memory whole.
const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

pub(super) type Events = BoxStream<'static, Result<Sse, SseError>>;

/// The events of an answer, as far as the protocol library is to see them. `of` is the request that
/// they answer, if they answer one.
pub(super) fn events(body: HttpStream, wiring: &Wiring, of: Option<RequestId>) -> Events {
    let reading = Reading {
        events: SseStream::from_bytes_stream(Bounded::new(body)).boxed(),
        intake: Arc::clone(&wiring.intake),
        ending: Arc::clone(&wiring.ending),
        of,
        is_over: false,
    };
    stream::unfold(reading, |mut reading| async move {
        let event = reading.next().await?;
        Some((event, reading))
    })
    .boxed()
}

struct Reading {
    events: Events,
    intake: Arc<Intake>,
    ending: Arc<Ending>,
    of: Option<RequestId>,
    is_over: bool,
}

impl Reading {
    async fn next(&mut self) -> Option<Result<Sse, SseError>> {
        while !self.is_over {
            match self.events.next().await? {
                Ok(event) => {
                    if let Some(event) = self.take(event).await {
                        return Some(Ok(event));
                    }
                }
                Err(error) if is_too_long(&error) => return self.too_long(),
                Err(error) => return Some(Err(error)),
            }
        }
        None
    }

    /// Takes in an event. What is left of it is for the library.
    async fn take(&mut self, mut event: Sse) -> Option<Sse> {
        if matches!(event.event.as_deref(), None | Some("" | "message"))
            && let Some(data) = event.data.take()
        {
            let taken = self.intake.take(data.as_bytes());
            if let Some(pause) = taken.pause {
                sleep(pause).await;
            }
            if let Some(reason) = taken.hopeless {
                self.is_over = true;
                self.ending.end(reason);
            }
            event.data = match taken.message {
                Some(message) if taken.is_fault => serde_json::to_string(&message).ok(),
                message => message.map(|_| data),
            };
        }
        // Its id says where a stream that breaks off is to be resumed.
        (event.data.is_some() || event.id.is_some() || event.retry.is_some()).then_some(event)
    }

    /// Neither more of the event nor, resumed, the same event again is of use.
    fn too_long(&mut self) -> Option<Result<Sse, SseError>> {
        self.is_over = true;
        let problem = BodyError::TooLong.to_string();
        let Some(id) = &self.of else {
            self.ending.end(problem);
            return None;
        };
        let message = self.intake.fault(id, problem)?;
        let data = serde_json::to_string(&message).ok()?;
        Some(Ok(Sse::default().data(data)))
    }
}

fn is_too_long(error: &SseError) -> bool {
    matches!(
        error,
        SseError::Body(error) if matches!(error.downcast_ref(), Some(BodyError::TooLong))
    )
}

/// Why a body breaks off.
#[derive(Debug, thiserror::Error)]
enum BodyError {
    #[error("it sent an event of more than {MAX_EVENT_BYTES} bytes")]
    TooLong,
    #[error(transparent)]
    Http(HttpError),
}

/// A body that ends with an error where one of its events is too long.
struct Bounded {
    body: HttpStream,
    /// How many bytes of the current event have been read, ends of lines not counted.
    seen: usize,
    at_line_begin: bool,
    after_cr: bool,
}

impl Bounded {
    fn new(body: HttpStream) -> Self {
        Self { body, seen: 0, at_line_begin: true, after_cr: false }
    }

    fn is_too_long(&mut self, piece: &[u8]) -> bool {
        for byte in piece {
            match byte {
                b'\n' if self.after_cr => self.after_cr = false,
                b'\n' | b'\r' => {
                    if self.at_line_begin {
                        self.seen = 0;
                    }
                    self.at_line_begin = true;
                    self.after_cr = *byte == b'\r';
                }
                _ => {
                    self.seen += 1;
                    self.at_line_begin = false;
                    self.after_cr = false;
                }
            }
            if self.seen > MAX_EVENT_BYTES {
                return true;
            }
        }
        false
    }
}

impl Stream for Bounded {
    type Item = Result<Bytes, BodyError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let piece = ready!(Pin::new(&mut self.body).poll_next(cx));
        Poll::Ready(match piece {
            Some(Ok(piece)) if self.is_too_long(&piece) => Some(Err(BodyError::TooLong)),
            Some(Ok(piece)) => Some(Ok(piece)),
            Some(Err(error)) => Some(Err(BodyError::Http(error))),
            None => None,
        })
    }
}
