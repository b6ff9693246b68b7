//! Output to a client that may have stopped reading.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures_util::future::BoxFuture;
use tokio::io::AsyncWrite;

/// Output that waits for its reader until it is given up: from then on, a write that would block
/// fails. rmcp waits for writes without a limit, and ends only then.
pub(super) struct Output<W> {
    to: W,
    /// Done when output is given up; `None` after that.
    until: Option<BoxFuture<'static, ()>>,
}

impl<W: AsyncWrite + Unpin> Output<W> {
    pub(super) fn new(to: W, until: impl Future<Output = ()> + Send + 'static) -> Self {
        Self { to, until: Some(Box::pin(until)) }
    }

    fn attempt<T>(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut W>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if let Poll::Ready(written) = write(Pin::new(&mut self.to), cx) {
            return Poll::Ready(written);
        }
        if let Some(until) = &mut self.until {
            ready!(until.as_mut().poll(cx));
            self.until = None;
        }
        Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for Output<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.attempt(cx, |to, cx| to.poll_write(cx, bytes))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.attempt(cx, W::poll_flush)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.attempt(cx, W::poll_shutdown)
    }
}
