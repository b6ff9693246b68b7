//! Messages as server-sent events (SSE).

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, TryStream, stream};
use rmcp::{
    model::RequestId,
    transport::{
        common::client_side_sse::BoxedSseResponse, streamable_http_client::SseError as StreamError,
    },
};
use tokio::time::sleep;
use toolcrib_capabilities::{
    __internal::{SseDecoder, SseError, SseEvent, SseItem},
    http::{HttpError, HttpStream},
};

use super::super::{
    ending::Ending,
    intake::{Intake, Taken},
    open::Wiring,
};

/// The size limit of an event: 16 MiB. It is kept in memory whole.
const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

/// The permitted reconnect delay that a server may state, in milliseconds. With less it could keep
/// both sides busy, with more its messages would be delayed too long.
const RETRY_MS: (u64, u64) = (500, 60_000);

/// The number of meaningless bytes that count as one unrequested message.
const IDLE_BYTES: usize = 1024;

pub(super) type Events = BoxedSseResponse;
/// The library's type of an event, which it does not export.
pub(super) type Sse = <Events as TryStream>::Ok;

/// The events of a response that the protocol library needs. `of` is the request that they respond
/// to, if any.
pub(super) fn events(body: HttpStream, wiring: &Wiring, of: Option<RequestId>) -> Events {
    let reading = Reading {
        body,
        decoder: SseDecoder::new(MAX_EVENT_BYTES),
        intake: Arc::clone(&wiring.intake),
        ending: Arc::clone(&wiring.ending),
        of,
        is_over: false,
    };
    stream::unfold(reading, |mut reading| async move {
        let event = reading.next().await?.map(|event| {
            let mut sse = Sse::default();
            (sse.event, sse.data, sse.id, sse.retry) =
                (event.event, event.data, event.id, event.retry);
            sse
        });
        Some((event, reading))
    })
    .boxed()
}

struct Reading<S> {
    body: S,
    decoder: SseDecoder,
    intake: Arc<Intake>,
    ending: Arc<Ending>,
    of: Option<RequestId>,
    is_over: bool,
}

impl<S: Stream<Item = Result<Bytes, HttpError>> + Unpin> Reading<S> {
    async fn next(&mut self) -> Option<Result<SseEvent, StreamError>> {
        while !self.is_over {
            match self.decoder.decode() {
                Ok(Some(SseItem::Event(event))) => {
                    if let Some(event) = self.take(event).await {
                        return Some(Ok(event));
                    }
                }
                Ok(Some(SseItem::Ignored { bytes })) => self.idle(1 + bytes / IDLE_BYTES).await,
                Ok(None) => match self.body.next().await? {
                    Ok(piece) => self.decoder.push(&piece),
                    Err(error) => return Some(Err(StreamError::Body(Box::new(error)))),
                },
                Err(SseError::TooLong { max_bytes }) => {
                    return self.too_long(max_bytes).map(Ok);
                }
                Err(SseError::NotText(error)) => return Some(Err(StreamError::Utf8Parse(error))),
            }
        }
        None
    }

    /// Counts meaningless items, and waits if they are too many.
    async fn idle(&self, count: usize) {
        if let Some(pause) = self.intake.idle(count) {
            sleep(pause).await;
        }
    }

    /// Processes an event. The rest of it is for the library.
    async fn take(&mut self, mut event: SseEvent) -> Option<SseEvent> {
        event.retry = event.retry.map(|ms| ms.clamp(RETRY_MS.0, RETRY_MS.1));
        if matches!(event.event.as_deref(), None | Some("" | "message"))
            && let Some(data) = event.data.take()
        {
            let intake = Arc::clone(&self.intake);
            let taken =
                self.intake.off_worker(data.len(), move || (intake.take(data.as_bytes()), data));
            let (taken, data) =
                taken.await.unwrap_or_else(|problem| (Taken::broken(&problem), String::new()));
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
            // Empty, or not a message of the protocol.
            event.data = None;
            self.idle(1).await;
        }
        // Its id is the position to resume a broken stream.
        (event.data.is_some() || event.id.is_some() || event.retry.is_some()).then_some(event)
    }

    /// Neither the rest of the event nor, resumed, the same event again is of use.
    fn too_long(&mut self, max_bytes: usize) -> Option<SseEvent> {
        self.is_over = true;
        let problem = format!("it sent an event of more than {max_bytes} bytes");
        let Some(id) = &self.of else {
            self.ending.end(problem);
            return None;
        };
        let message = self.intake.fault(id, problem)?;
        let data = serde_json::to_string(&message).ok()?;
        Some(SseEvent { data: Some(data), ..SseEvent::default() })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::*;
    use crate::connection::{Redaction, Signals};

    struct Unheard;

    impl Signals for Unheard {
        fn tools_changed(&self) {}

        fn redactor(&self) -> Redaction {
            Redaction::default()
        }
    }

    /// Reads a body of these pieces.
    fn reading<'a>(
        pieces: impl Iterator<Item = &'a str>,
    ) -> Reading<impl Stream<Item = Result<Bytes, HttpError>> + Unpin> {
        let pieces = pieces.map(|piece| Ok(Bytes::copy_from_slice(piece.as_bytes())));
        Reading {
            body: stream::iter(pieces),
            decoder: SseDecoder::new(MAX_EVENT_BYTES),
            intake: Arc::new(Intake::new(Arc::new(Unheard), "test")),
            ending: Arc::default(),
            of: None,
            is_over: false,
        }
    }

    #[tokio::test]
    async fn a_server_does_not_have_itself_asked_for_ever_or_never() {
        for (said, heeded) in [(0, 500), (2_000, 2_000), (u64::MAX, 60_000)] {
            let event = format!("retry: {said}\n\n");
            let event = reading([event.as_str()].into_iter()).next().await.unwrap().unwrap();
            assert_eq!(event.retry, Some(heeded));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_says_nothing_is_read_at_a_pace() {
        let comment = format!(":{}\n", "x".repeat(10 * IDLE_BYTES));
        for (piece, count) in [
            ("event: x\ndata: 1\n\n", 10_256),
            (":\n", 10_256),
            ("made-up\n\n", 10_256),
            ("\n", 10_256),
            (&comment, 1_026),
        ] {
            let began = Instant::now();
            assert!(reading(std::iter::repeat_n(piece, count)).next().await.is_none());
            assert!(began.elapsed() >= Duration::from_millis(1_900), "{:?}", began.elapsed());
        }
    }
}
