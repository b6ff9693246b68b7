//! What ends an exchange from outside: its caller, or its time.

use std::{
    future::pending,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    task::{JoinError, JoinHandle},
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::{connect::Connection, error::HttpError};

/// How long an exchange goes on at most.
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

/// What has ended it.
pub(super) enum Over {
    Cancelled,
    TimedOut { after: Duration },
}

impl Bounds {
    /// The time begins now. Of what ends after all time there is, nobody sees the end.
    pub(super) fn new(host: String, cancel: CancellationToken, timeout: Option<Duration>) -> Self {
        let ends = |after| Some(Time { after, ends: Instant::now().checked_add(after)? });
        Self { host, cancel, time: timeout.and_then(ends) }
    }

    /// Waits until it is over.
    pub(super) async fn over(&self) -> Over {
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
            () = self.cancel.cancelled() => Over::Cancelled,
            after = timed_out => Over::TimedOut { after },
        }
    }

    /// Whether it is over by now.
    pub(super) fn is_over(&self) -> Option<Over> {
        if self.cancel.is_cancelled() {
            return Some(Over::Cancelled);
        }
        let Time { after, ends } = self.time?;
        (Instant::now() >= ends).then_some(Over::TimedOut { after })
    }

    pub(super) fn error(&self, over: &Over, sent: bool) -> HttpError {
        let host = self.host.clone();
        match *over {
            Over::Cancelled => HttpError::Cancelled { host, sent },
            Over::TimedOut { after } => HttpError::TimedOut { host, after, sent },
        }
    }
}

/// A connection whose answer is being read. It is closed as soon as its [`Bounds`] end it, also
/// while nobody reads, and when this is dropped.
pub(super) struct Leash {
    connection: Arc<Mutex<Option<Connection>>>,
    watcher: JoinHandle<Over>,
}

impl Leash {
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

    /// Whether it was closed, and by what.
    pub(super) fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<Result<Over, JoinError>> {
        Poll::Ready(ready!(Pin::new(&mut self.watcher).poll(cx)))
    }

    /// The connection, to be used again, unless it was closed.
    pub(super) fn release(&self) -> Option<Connection> {
        take(&self.connection)
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        self.watcher.abort();
        // The watcher may hold on to it for a while.
        drop(take(&self.connection));
    }
}

fn take(connection: &Mutex<Option<Connection>>) -> Option<Connection> {
    connection.lock().unwrap_or_else(PoisonError::into_inner).take()
}
