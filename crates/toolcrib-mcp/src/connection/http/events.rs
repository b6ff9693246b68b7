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
use tokio::time::{Sleep, sleep};
use toolcrib_scope::http::{HttpError, HttpStream};

use super::super::{ending::Ending, intake::Intake, open::Wiring};

/// How many bytes an event may have: 16 MiB. It is held in memory whole.
const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

/// How long a server may have a stream that ended asked for again, in milliseconds. With less it
/// could keep both sides busy for ever, with more keep what it says from being heard.
const RETRY_MS: (u64, u64) = (500, 60_000);

/// How many bytes that say nothing count as one message that nobody asked for.
const IDLE_BYTES: usize = 1024;

pub(super) type Events = BoxStream<'static, Result<Sse, SseError>>;

/// The events of an answer, as far as the protocol library is to see them. `of` is the request that
/// they answer, if they answer one.
pub(super) fn events(body: HttpStream, wiring: &Wiring, of: Option<RequestId>) -> Events {
    let reading = Reading {
        events: SseStream::from_bytes_stream(Bounded::new(body, Arc::clone(&wiring.intake)))
            .boxed(),
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
        event.retry = event.retry.map(|ms| ms.clamp(RETRY_MS.0, RETRY_MS.1));
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
                Some(message) if taken.is_ours => serde_json::to_string(&message).ok(),
                message => message.map(|_| data),
            };
        } else {
            // What says nothing, or nothing of the protocol.
            event.data = None;
            if let Some(pause) = self.intake.idle(1) {
                sleep(pause).await;
            }
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

/// A body that ends with an error where one of its events is too long, and is read at a pace where
/// it holds no events.
struct Bounded {
    body: HttpStream,
    intake: Arc<Intake>,
    pause: Option<Pin<Box<Sleep>>>,
    lines: Lines,
}

impl Bounded {
    fn new(body: HttpStream, intake: Arc<Intake>) -> Self {
        Self { body, intake, pause: None, lines: Lines::new() }
    }
}

/// What the bytes of a body are, as far as it matters before they are read as events.
struct Lines {
    /// How many bytes of the current event have been read, ends of lines not counted.
    seen: usize,
    /// How much has been read that says nothing: comments, and empty lines that end no event.
    idle: usize,
    at_line_begin: bool,
    in_comment: bool,
    after_cr: bool,
}

impl Lines {
    fn new() -> Self {
        Self { seen: 0, idle: 0, at_line_begin: true, in_comment: false, after_cr: false }
    }

    fn is_too_long(&mut self, piece: &[u8]) -> bool {
        for byte in piece {
            match byte {
                b'\n' if self.after_cr => self.after_cr = false,
                b'\n' | b'\r' => {
                    if self.in_comment || self.at_line_begin && self.seen == 0 {
                        self.idle += IDLE_BYTES;
                    }
                    if self.at_line_begin {
                        self.seen = 0;
                    }
                    self.at_line_begin = true;
                    self.in_comment = false;
                    self.after_cr = *byte == b'\r';
                }
                _ => {
                    self.in_comment |= self.at_line_begin && *byte == b':';
                    self.idle += usize::from(self.in_comment);
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

    /// For how many messages what said nothing counts, since this was asked.
    fn take_idle(&mut self) -> usize {
        let count = self.idle / IDLE_BYTES;
        self.idle %= IDLE_BYTES;
        count
    }
}

impl Stream for Bounded {
    type Item = Result<Bytes, BodyError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(pause) = &mut self.pause {
            ready!(pause.as_mut().poll(cx));
            self.pause = None;
        }
        let piece = ready!(Pin::new(&mut self.body).poll_next(cx));
        let piece = Poll::Ready(match piece {
            Some(Ok(piece)) if self.lines.is_too_long(&piece) => Some(Err(BodyError::TooLong)),
            Some(Ok(piece)) => Some(Ok(piece)),
            Some(Err(error)) => Some(Err(BodyError::Http(error))),
            None => None,
        });
        let idle = self.lines.take_idle();
        if idle > 0 {
            self.pause = self.intake.idle(idle).map(|pause| Box::pin(sleep(pause)));
        }
        piece
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::*;
    use crate::connection::Signals;

    struct Unheard;

    impl Signals for Unheard {
        fn tools_changed(&self) {}
    }

    fn reading() -> Reading {
        Reading {
            events: stream::empty().boxed(),
            intake: Arc::new(Intake::new(Arc::new(Unheard))),
            ending: Arc::default(),
            of: None,
            is_over: false,
        }
    }

    #[tokio::test]
    async fn a_server_does_not_have_itself_asked_for_ever_or_never() {
        let mut reading = reading();
        for (said, heeded) in [(0, 500), (2_000, 2_000), (u64::MAX, 60_000)] {
            let event = reading.take(Sse::default().retry(said)).await.unwrap();
            assert_eq!(event.retry, Some(heeded));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn events_that_say_nothing_are_read_at_a_pace() {
        let mut reading = reading();
        let began = Instant::now();
        for _ in 0..10_256 {
            assert!(reading.take(Sse::default().event("x").data("1")).await.is_none());
        }
        assert!(began.elapsed() >= Duration::from_millis(1_900), "{:?}", began.elapsed());
    }

    #[test]
    fn comments_and_empty_lines_count_and_events_do_not() {
        for (body, count) in [
            ("data: 1\n\ndata: 2\r\n\r\nid: 1\r\r", 0),
            (": a\n\n", 1),
            (":\n:\n:\n", 3),
            ("\n\r\n\r", 3),
            ("data: 1\n: a\n\n", 1),
        ] {
            let mut lines = Lines::new();
            for byte in body.as_bytes() {
                assert!(!lines.is_too_long(std::slice::from_ref(byte)));
            }
            assert_eq!(lines.take_idle(), count, "{body:?}");
            assert_eq!(lines.take_idle(), 0);
        }
        let mut long = Lines::new();
        assert!(!long.is_too_long(format!(":{}", "x".repeat(10 * IDLE_BYTES)).as_bytes()));
        assert_eq!(long.take_idle(), 10);
    }
}
