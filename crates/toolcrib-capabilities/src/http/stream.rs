//! A response that is read chunk by chunk.

use std::{
    error::Error,
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use futures_util::Stream;
use hyper::{
    HeaderMap, StatusCode,
    body::{Body, Bytes, Incoming},
    header,
};
use tokio::time::{Instant, Sleep, sleep};
use url::Url;

use super::{
    body::{BodyDecoder, DecodeError, is_compressed},
    bounds::{BoundedConnection, Bounds},
    connect::Connection,
    error::HttpError,
    exchange::{Answer, EarlyFrame},
    shared::Shared,
    target::Target,
};

/// A response with headers and a body that is read as it arrives, of any status: a 404 is a
/// response, not an [`HttpError`]. Unlike a complete [`HttpResponse`](super::HttpResponse), it may
/// still break off.
///
/// Read it with [`chunk`](Self::chunk) or as a [`Stream`]. Chunks are split where the network
/// splits them, also within a line or a character; none is empty. Backpressure: they arrive no
/// faster than they are read.
///
/// Dropping it closes the connection, and so does its timeout or cancellation, at once, also
/// without a reader. The connection is reused only after the body has been read to its end.
///
/// After an error it is at its end: the next read returns `None`.
pub struct HttpStream {
    status: StatusCode,
    headers: HeaderMap,
    target: Arc<Target>,
    redirected_by: Option<String>,
    reading: Option<BodyState>,
    bounds: Bounds,
    max_body_bytes: usize,
    arrived: usize,
    /// Boxed: large, and seldom needed.
    decoder: Option<Box<BodyDecoder>>,
    pause: Pause,
    shared: Arc<Shared>,
}

/// The state until the body has ended.
struct BodyState {
    /// The part that came with the headers.
    ahead: Option<EarlyFrame>,
    body: Incoming,
    hold: ResponseConnection,
}

/// The connection while its response is read.
enum ResponseConnection {
    /// The complete response has arrived, so there is nothing to cancel.
    Loose(Connection),
    Bounded(BoundedConnection),
}

impl ResponseConnection {
    /// The connection for reuse, unless it was closed.
    fn release(self) -> Option<Connection> {
        match self {
            Self::Loose(connection) => Some(connection),
            Self::Bounded(bounded) => bounded.release(),
        }
    }
}

/// A request's limits for the response body.
pub(super) struct Limits {
    pub(super) bounds: Bounds,
    pub(super) idle_timeout: Option<Duration>,
    pub(super) max_body_bytes: usize,
}

impl HttpStream {
    pub(super) fn new(
        answer: Answer,
        limits: Limits,
        shared: Arc<Shared>,
    ) -> Result<Self, HttpError> {
        let Answer { head, ahead, body, connection, target, redirected_by } = answer;
        let Limits { bounds, idle_timeout, max_body_bytes } = limits;
        let here = match &ahead {
            Some(Ok(frame)) => frame.data_ref().map_or(0, Bytes::len) as u64,
            _ => 0,
        };
        let too_large = body.size_hint().lower().saturating_add(here) > max_body_bytes as u64;
        let hold = match body.is_end_stream() {
            true => ResponseConnection::Loose(connection),
            false => {
                ResponseConnection::Bounded(BoundedConnection::new(connection, bounds.clone()))
            }
        };
        let stream = Self {
            status: head.status,
            headers: head.headers,
            target,
            redirected_by,
            reading: Some(BodyState { ahead, body, hold }),
            bounds,
            max_body_bytes,
            arrived: 0,
            decoder: None,
            pause: Pause::new(idle_timeout),
            shared,
        };
        if too_large { Err(stream.failed(stream.too_large())) } else { Ok(stream) }
    }

    /// The status of the response.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The headers of the response.
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The URL of the response, after all redirects.
    pub fn final_url(&self) -> &Url {
        &self.target.url
    }

    /// The next chunk of the body; `None` is its end. Cancel safe: dropping the future loses
    /// nothing.
    ///
    /// # Errors
    /// [`HttpError::Exchange`] if it breaks off, [`HttpError::BodyTooLarge`],
    /// [`HttpError::Decode`], [`HttpError::IdleTimedOut`], [`HttpError::TimedOut`] and
    /// [`HttpError::Cancelled`]; after a redirect all but the last two are wrapped in
    /// [`HttpError::Redirected`].
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await.transpose()
    }

    /// Whether the end is known to be reached.
    pub(super) fn is_at_end(&self) -> bool {
        let is_read = |reading: &BodyState| reading.ahead.is_none() && reading.body.is_end_stream();
        self.reading.as_ref().is_none_or(is_read)
    }

    /// Closes the connection, and leaves an empty body.
    pub(super) fn skip_body(&mut self) {
        self.reading = None;
    }

    /// Decodes the body from here on, and removes the headers about its encoding.
    ///
    /// # Errors
    /// [`HttpError::Encoding`] for an encoding that is not decoded.
    pub(super) fn decode(&mut self) -> Result<(), HttpError> {
        if self.is_at_end() {
            return Ok(());
        }
        match is_compressed(&self.headers) {
            Ok(false) => {}
            Ok(true) => {
                self.decoder = Some(Box::new(BodyDecoder::new(self.max_body_bytes)));
                self.headers.remove(header::CONTENT_ENCODING);
                self.headers.remove(header::CONTENT_LENGTH);
            }
            Err(encoding) => {
                let host = self.target.host.clone();
                let accepted = "only gzip, once, is decoded";
                return Err(self.failed(HttpError::Encoding { host, encoding, accepted }));
            }
        }
        Ok(())
    }

    /// Whether the chunks are decoded.
    pub(super) fn is_decoded(&self) -> bool {
        self.decoder.is_some()
    }

    pub(super) fn into_head(self) -> (StatusCode, HeaderMap, Url) {
        (self.status, self.headers, self.target.url.clone())
    }

    /// An error of this host for the caller, who may have requested another host.
    pub(super) fn failed(&self, error: HttpError) -> HttpError {
        match &self.redirected_by {
            Some(host) => HttpError::Redirected { host: host.clone(), source: Box::new(error) },
            None => error,
        }
    }

    pub(super) fn too_large(&self) -> HttpError {
        HttpError::BodyTooLarge { host: self.target.host.clone(), limit: self.max_body_bytes }
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, HttpError>> {
        if self.reading.is_some()
            && let Some(over) = self.bounds.is_over()
        {
            return Poll::Ready(Err(self.bounds.error(&over, true)));
        }
        while let Some(reading) = &mut self.reading {
            let piece = match reading.ahead.take() {
                Some(ahead) => Poll::Ready(Some(ahead)),
                None => Pin::new(&mut reading.body).poll_frame(cx),
            };
            match piece {
                Poll::Ready(Some(Ok(frame))) => {
                    self.pause.end();
                    // Trailers are ignored.
                    let Ok(piece) = frame.into_data() else { continue };
                    self.arrived = self.arrived.saturating_add(piece.len());
                    if self.arrived > self.max_body_bytes {
                        return Poll::Ready(Err(self.failed(self.too_large())));
                    }
                    if !piece.is_empty() {
                        return Poll::Ready(Ok(Some(piece)));
                    }
                }
                Poll::Ready(Some(Err(source))) => return Poll::Ready(Err(self.broken(source))),
                Poll::Ready(None) => break,
                Poll::Pending => return self.poll_patience(cx).map(Err),
            }
        }
        Poll::Ready(Ok(None))
    }

    /// The next decoded piece.
    fn poll_decoded(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, HttpError>> {
        let Some(mut decoder) = self.decoder.take() else { return self.poll_piece(cx) };
        let piece = self.poll_decoder(cx, &mut decoder);
        self.decoder = Some(decoder);
        piece
    }

    fn poll_decoder(
        &mut self,
        cx: &mut Context<'_>,
        decoder: &mut BodyDecoder,
    ) -> Poll<Result<Option<Bytes>, HttpError>> {
        if self.reading.is_none() {
            return Poll::Ready(Ok(None));
        }
        if decoder.needs_more() {
            match ready!(self.poll_piece(cx))? {
                Some(compressed) => decoder.push(compressed),
                None => {
                    let ended = decoder.end().map_err(|error| self.undecoded(error));
                    return Poll::Ready(ended.map(|()| None));
                }
            }
        }
        let piece = decoder.decode().map_err(|error| self.undecoded(error))?;
        if piece.is_empty() {
            // Other tasks run in between, however much of it decodes to nothing.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Ok(Some(piece)))
    }

    fn undecoded(&self, error: DecodeError) -> HttpError {
        self.failed(match error {
            DecodeError::TooLarge => self.too_large(),
            DecodeError::Invalid(source) => {
                HttpError::Decode { host: self.target.host.clone(), source }
            }
        })
    }

    /// Ready when a limit ends the wait.
    fn poll_patience(&mut self, cx: &mut Context<'_>) -> Poll<HttpError> {
        if let Some(BodyState { hold: ResponseConnection::Bounded(bounded), .. }) =
            &mut self.reading
            && let Poll::Ready(over) = bounded.poll_over(cx)
        {
            return Poll::Ready(match over {
                Ok(over) => self.bounds.error(&over, true),
                Err(source) => self.broken(source),
            });
        }
        let after = ready!(self.pause.poll(cx));
        let host = self.target.host.clone();
        Poll::Ready(self.failed(HttpError::IdleTimedOut { host, after }))
    }

    /// Returns the connection to the pool, since the whole body has been read.
    fn keep_connection(&mut self) {
        if let Some(BodyState { hold, .. }) = self.reading.take()
            && let Some(connection) = hold.release()
        {
            self.shared.pool.put(Arc::clone(&self.target), connection);
        }
    }

    fn broken(&self, source: impl Error + Send + Sync + 'static) -> HttpError {
        // A connection closed here looks like that too.
        match self.bounds.is_over() {
            Some(over) => self.bounds.error(&over, true),
            None => {
                let host = self.target.host.clone();
                self.failed(HttpError::Exchange { host, source: Box::new(source) })
            }
        }
    }
}

impl Stream for HttpStream {
    type Item = Result<Bytes, HttpError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let piece = ready!(this.poll_decoded(cx)).transpose();
        match &piece {
            Some(Ok(_)) => {}
            Some(Err(_)) => this.reading = None,
            None => this.keep_connection(),
        }
        Poll::Ready(piece)
    }
}

toolcrib_core::__internal::debug_fields!(
    HttpStream,
    stream,
    status = stream.status,
    host = stream.target.host,
    arrived = stream.arrived,
    ..
);

/// The idle time since the reader first waited for the next chunk. Nothing is read from the network
/// before that, so the time of a slow reader does not count against the server.
struct Pause {
    limit: Option<Duration>,
    timer: Option<Pin<Box<Sleep>>>,
    runs: bool,
}

impl Pause {
    fn new(limit: Option<Duration>) -> Self {
        Self { limit, timer: None, runs: false }
    }

    fn end(&mut self) {
        self.runs = false;
    }

    /// Ready, with the limit, when it is reached. The first poll starts the timer.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Duration> {
        let Some(limit) = self.limit else { return Poll::Pending };
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(limit)));
        if !self.runs {
            // A deadline that overflows `Instant` is treated as none.
            let Some(ends) = Instant::now().checked_add(limit) else { return Poll::Pending };
            timer.as_mut().reset(ends);
            self.runs = true;
        }
        timer.as_mut().poll(cx).map(|()| limit)
    }
}
