//! Streams of events and their resumption: of responses, and of a session, as servers before
//! 2026-07-28 have it.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep};
use toolcrib_capabilities::http::{HeaderName, HeaderValue, HttpError, HttpStream, Method, header};
use toolcrib_core::CancellationToken;

use super::{
    super::exchange::Exchange,
    client::{Client, SESSION_ID},
    events::{StreamPosition, read_events},
    failure::HttpFailure,
    response::{EVENTS, ErrorResponse, MAX_ERROR_BYTES, is_of_events, not_of_the_protocol},
};

/// The timeout of ending a session.
const DELETE_TIMEOUT: Duration = Duration::from_secs(5);

/// A stream without ids of events that ends earlier counts as a failed attempt: a server that ends each one
/// at once would be asked without end.
const LASTED: Duration = Duration::from_secs(5);

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

impl Client {
    /// Reads the session's stream, if there is a session, until the connection ends; then ends the
    /// session.
    pub(super) async fn serve(self: Arc<Self>) {
        let ending = &self.wiring.ending;
        tokio::select! {
            biased;
            () = ending.over() => {}
            () = self.listen() => ending.over().await,
        }
        self.end_session().await;
    }

    /// Reads the messages that belong to no request. A server may offer no stream for them.
    async fn listen(self: &Arc<Self>) {
        if !self.after_handshake.wait().await.contains_key(SESSION_ID) {
            return;
        }
        let mut last = StreamPosition::default();
        let mut answer = match self.stream(None).await {
            Ok(answer) => Some(answer),
            Err(failure) if failure.may_pass() => None,
            Err(_) => return,
        };
        loop {
            if let Some(answer) = answer {
                let began = Instant::now();
                read_events(answer, self, None, &mut last).await;
                if began.elapsed() > LASTED {
                    last.resumes = 0;
                }
            }
            let Some(pause) = last.pause() else { return };
            sleep(pause).await;
            last.resumes += 1;
            let Ok(next) = self.resumed(&last).await else { return };
            if next.is_some() && last.event.is_none() {
                // Changes in between were not announced.
                self.wiring.intake.signal_all_changes();
            }
            answer = next;
        }
    }

    /// Reads the events of a response to their end. A stream that breaks off before the response is
    /// resumed if the server supports it, until the server refuses.
    pub(super) async fn follow(
        self: &Arc<Self>,
        mut answer: HttpStream,
        exchange: &Exchange,
    ) -> Result<(), HttpFailure> {
        let mut last = StreamPosition::default();
        loop {
            read_events(answer, self, Some(exchange.id), &mut last).await;
            if exchange.is_settled() {
                return Ok(());
            }
            answer = loop {
                let (Some(_), Some(pause)) = (&last.event, last.pause()) else {
                    return Err(HttpFailure::BrokenOff);
                };
                sleep(pause).await;
                last.resumes += 1;
                if let Some(answer) = self.resumed(&last).await? {
                    break answer;
                }
            };
        }
    }

    /// A stream after its last event; `None` if the server cannot be reached now. An error is final:
    /// a retry would get the same.
    async fn resumed(&self, last: &StreamPosition) -> Result<Option<HttpStream>, HttpFailure> {
        match self.stream(last.event.as_deref()).await {
            Ok(answer) => Ok(Some(answer)),
            Err(HttpFailure::Status { status: 404, .. }) if self.has_session() => {
                Err(self.session_expired(404))
            }
            Err(HttpFailure::Status { status: 400, .. })
                if self.has_session() && self.refuses_ping().await =>
            {
                Err(self.session_expired(400))
            }
            // Nobody else would notice that the server is gone.
            Err(HttpFailure::Http(error @ HttpError::Connect { .. }))
                if last.resumes > 1 && !self.wiring.intake.has_requests() =>
            {
                self.wiring.ending.end(error.to_string());
                Err(error.into())
            }
            Err(failure) if failure.may_pass() => Ok(None),
            // The request may still have been executed.
            Err(failure) => Err(HttpFailure::NotResumed(failure.to_string())),
        }
    }

    /// A stream of events for no request, or after the event of this id.
    async fn stream(&self, after: Option<&str>) -> Result<HttpStream, HttpFailure> {
        let mut request = self.after_handshake(Method::GET);
        request.headers.insert(header::ACCEPT, EVENTS);
        if let Some(after) = after {
            let after = HeaderValue::from_str(after).map_err(|_| {
                HttpFailure::Unusable("it gave an event an id that cannot be sent".to_owned())
            })?;
            request.headers.insert(LAST_EVENT_ID, after);
        }
        let intake = &self.wiring.intake;
        let answer = self.open(request).await?;
        if !answer.status().is_success() {
            Err(ErrorResponse::read(answer, intake).await.failure)
        } else if is_of_events(&answer) {
            Ok(answer)
        } else {
            Err(HttpFailure::Unusable(not_of_the_protocol(&answer, intake)))
        }
    }

    async fn end_session(&self) {
        let mut request = self.after_handshake(Method::DELETE);
        if !request.headers.contains_key(SESSION_ID) {
            return;
        }
        request.timeout = Some(DELETE_TIMEOUT);
        request.max_body_bytes = MAX_ERROR_BYTES;
        self.authorize(&mut request).await;
        // The connection has ended, which does not cancel this.
        let never = CancellationToken::new();
        // A server need not support it.
        let _ = self.http.send(request, &never).await;
    }
}
