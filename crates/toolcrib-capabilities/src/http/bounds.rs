//! The outer limits of an exchange: cancellation and timeout.

use std::{
    future::pending,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use parking_lot::Mutex;

use tokio::{
    task::{JoinError, JoinHandle},
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::{connect::Connection, error::HttpError};

/// The limits of an exchange.
#[derive(Clone)]
pub(super) struct Bounds {
    /// The host of the request's own URL.
    host: String,
    cancel: CancellationToken,
    time: Option<Time>,
}

#[derive(Clone, Copy)]
struct Time {
    after: Duration,
    ends: Instant,
}

/// The reason of an exchange's end.
pub(super) enum EndReason {
    Cancelled,
    TimedOut { after: Duration },
}

impl Bounds {
    /// Starts the deadline now. A deadline that overflows `Instant` is treated as none.
    pub(super) fn new(host: String, cancel: CancellationToken, timeout: Option<Duration>) -> Self {
        let ends = |after| Some(Time { after, ends: Instant::now().checked_add(after)? });
        Self { host, cancel, time: timeout.and_then(ends) }
    }

    /// Waits for the end.
    pub(super) async fn over(&self) -> EndReason {
        let timed_out = async {
            match self.time {
                Some(Time { after, ends }) => {
                    sleep_until(ends).await;
                    after
                }
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => EndReason::Cancelled,
            after = timed_out => EndReason::TimedOut { after },
        }
    }

    /// Whether the end is reached.
    pub(super) fn is_over(&self) -> Option<EndReason> {
        if self.cancel.is_cancelled() {
            return Some(EndReason::Cancelled);
        }
        let Time { after, ends } = self.time?;
        (Instant::now() >= ends).then_some(EndReason::TimedOut { after })
    }

    pub(super) fn error(&self, over: &EndReason, sent: bool) -> HttpError {
        let host = self.host.clone();
        match *over {
            EndReason::Cancelled => HttpError::Cancelled { host, sent },
            EndReason::TimedOut { after } => HttpError::TimedOut { host, after, sent },
        }
    }
}

/// A connection whose response is being read. It is closed as soon as its [`Bounds`] end it, also
/// without a reader, and on drop.
pub(super) struct BoundedConnection {
    connection: Arc<Mutex<Option<Connection>>>,
    watcher: JoinHandle<EndReason>,
}

impl BoundedConnection {
    pub(super) fn new(connection: Connection, bounds: Bounds) -> Self {
        let connection = Arc::new(Mutex::new(Some(connection)));
        let watched = Arc::clone(&connection);
        let watcher = tokio::spawn(async move {
            let over = bounds.over().await;
            drop(take(&watched));
            over
        });
        Self { connection, watcher }
    }

    /// Whether it was closed, and why.
    pub(super) fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<Result<EndReason, JoinError>> {
        Poll::Ready(ready!(Pin::new(&mut self.watcher).poll(cx)))
    }

    /// The connection for reuse, unless it was closed.
    pub(super) fn release(&self) -> Option<Connection> {
        take(&self.connection)
    }
}

impl Drop for BoundedConnection {
    fn drop(&mut self) {
        self.watcher.abort();
        // The watcher may keep its reference for a while.
        drop(take(&self.connection));
    }
}

fn take(connection: &Mutex<Option<Connection>>) -> Option<Connection> {
    connection.lock().take()
}
