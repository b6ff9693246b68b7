//! Messages as server-sent events (SSE).

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use tokio::time::sleep;
use toolcrib_capabilities::{
    __internal::{SseDecoder, SseError, SseEvent, SseItem},
    http::HttpError,
};
use toolcrib_core::__internal::Backoff;

use super::{
    super::{intake::Carrier, text::over_limit},
    client::Client,
};
use crate::connection::types::RequestError;

/// The size limit of an event: 16 MiB. It is kept in memory whole.
const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

/// The permitted reconnect delay that a server may state, in milliseconds. With less it could keep
/// both sides busy, with more its messages would be delayed too long.
const RETRY_MS: (u64, u64) = (500, 60_000);

/// The number of meaningless bytes that count as one unrequested message.
const IDLE_BYTES: usize = 1024;

/// How often a stream that broke off is requested again in a row, and after what wait, unless the
/// server sets it.
const RESUMES: u32 = 10;
const RESUME_AFTER: Backoff =
    Backoff { base: Duration::from_secs(1), cap: Duration::from_secs(30) };

/// The position in a stream.
#[derive(Default)]
pub(super) struct StreamPosition {
    /// The id of the last event with one, to resume the stream after it.
    pub(super) event: Option<String>,
    retry: Option<Duration>,
    /// The number of attempts to resume since that event.
    pub(super) resumes: u32,
}

impl StreamPosition {
    fn note(&mut self, event: &mut SseEvent) {
        if let Some(id) = event.id.take() {
            self.event = Some(id);
            self.resumes = 0;
        }
        if let Some(ms) = event.retry {
            self.retry = Some(Duration::from_millis(ms.clamp(RETRY_MS.0, RETRY_MS.1)));
        }
    }

    /// The delay before the next attempt; `None` to give up.
    pub(super) fn pause(&self) -> Option<Duration> {
        let backoff = || RESUME_AFTER.longest(self.resumes + 1);
        (self.resumes < RESUMES).then(|| self.retry.unwrap_or_else(backoff))
    }
}

/// Reads a stream to its end of any kind. `of` is the request that it responds to, if any.
pub(super) async fn read_events(
    mut body: impl Stream<Item = Result<Bytes, HttpError>> + Unpin,
    client: &Arc<Client>,
    of: Option<i64>,
    last: &mut StreamPosition,
) {
    let mut decoder = SseDecoder::new(MAX_EVENT_BYTES);
    let carrier = of.map_or(Carrier::Connection, Carrier::Stream);
    loop {
        match decoder.decode() {
            Ok(Some(SseItem::Event(mut event))) => {
                last.note(&mut event);
                if let Err(reason) = take(event, client, carrier).await {
                    return client.wiring.ending.end(reason);
                }
            }
            Ok(Some(SseItem::Ignored { bytes })) => idle(client, 1 + bytes / IDLE_BYTES).await,
            Ok(None) => match body.next().await {
                Some(Ok(piece)) => decoder.push(&piece),
                Some(Err(_)) | None => return,
            },
            // Neither the rest of the event nor, resumed, the same event again is of use.
            Err(SseError::TooLong { max_bytes }) => {
                let problem = over_limit("an event", max_bytes);
                return match of {
                    Some(id) => client.wiring.intake.fault(id, RequestError::TooLarge(problem)),
                    None => client.wiring.ending.end(problem),
                };
            }
            Err(SseError::NotText(_)) => return,
        }
    }
}

/// Processes an event. An error is why reading must end.
async fn take(event: SseEvent, client: &Arc<Client>, carrier: Carrier) -> Result<(), String> {
    match (event.event.as_deref(), event.data) {
        (None | Some("" | "message"), Some(data)) => {
            client.wiring.intake.take(data, carrier, client).await
        }
        // Empty, or not a message of the protocol.
        _ => {
            idle(client, 1).await;
            Ok(())
        }
    }
}

/// Counts meaningless items, and waits if they are too many.
async fn idle(client: &Client, count: usize) {
    if let Some(pause) = client.wiring.intake.idle(count) {
        sleep(pause).await;
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use tokio::time::Instant;
    use toolcrib_capabilities::http::{HeaderMap, HttpClient};

    use super::*;
    use crate::connection::{
        Caller, Redaction, WireObserver,
        intake::Intake,
        transport::Wiring,
        types::{ServerNotice, Signals},
    };

    struct NoopSignals;

    impl Signals for NoopSignals {
        fn tools_changed(&self) {}

        fn notice(&self, _: ServerNotice) {}

        fn client(&self) -> Option<Caller> {
            None
        }

        fn redactor(&self) -> Redaction {
            Redaction::default()
        }

        fn observer(&self) -> Option<WireObserver> {
            None
        }
    }

    /// Reads a body of these pieces to its end.
    async fn read<'a>(pieces: impl Iterator<Item = &'a str>) -> StreamPosition {
        let pieces = pieces.map(|piece| Ok(Bytes::copy_from_slice(piece.as_bytes())));
        let intake = Arc::new(Intake::new(Arc::new(NoopSignals), "test"));
        let wiring = Wiring { intake, ending: Arc::default() };
        let http = HttpClient::builder().build();
        let client = Client::new(http, "http://localhost/".into(), HeaderMap::new(), None, wiring);
        let mut last = StreamPosition::default();
        read_events(stream::iter(pieces), &Arc::new(client), None, &mut last).await;
        last
    }

    #[tokio::test]
    async fn a_server_does_not_have_itself_asked_for_ever_or_never() {
        for (said, heeded) in [(0, 500), (2_000, 2_000), (u64::MAX, 60_000)] {
            let event = format!("retry: {said}\n\n");
            let last = read([event.as_str()].into_iter()).await;
            assert_eq!(last.pause(), Some(Duration::from_millis(heeded)));
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
            read(std::iter::repeat_n(piece, count)).await;
            assert!(began.elapsed() >= Duration::from_millis(1_900), "{:?}", began.elapsed());
        }
    }
}
