use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::connection::{
    Connection,
    types::{CallAnswer, CallRequest, RequestError},
};

/// How long a request that was not sent waits for the end of its connection to be noticed.
const SETTLE: Duration = Duration::from_millis(100);

/// An open connection in use.
pub(super) struct LiveConnection {
    connection: Arc<Connection>,
    /// The number of the connection to the server, from 1.
    epoch: u64,
    since: Instant,
    /// Fires when the supervisor has recorded its end.
    over: CancellationToken,
    /// Fires when it must be closed because the server no longer responds.
    hangs: CancellationToken,
    /// The number of consecutive list requests without a response.
    unanswered: AtomicU32,
}

impl LiveConnection {
    pub(super) fn new(connection: Arc<Connection>, epoch: u64) -> Self {
        Self {
            connection,
            epoch,
            since: Instant::now(),
            over: CancellationToken::new(),
            hangs: CancellationToken::new(),
            unanswered: AtomicU32::new(0),
        }
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }

    pub(super) fn since(&self) -> Instant {
        self.since
    }

    pub(super) fn over(&self) -> &CancellationToken {
        &self.over
    }

    pub(super) fn hangs(&self) -> &CancellationToken {
        &self.hangs
    }

    /// The server responded to a list request, in any way.
    pub(super) fn answers(&self) {
        self.unanswered.store(0, Ordering::Relaxed);
    }

    /// The server did not respond; the connection is given up after this number of times in a row.
    pub(super) fn does_not_answer(&self, at_most: u32) {
        if self.unanswered.fetch_add(1, Ordering::Relaxed).saturating_add(1) >= at_most {
            self.hangs.cancel();
        }
    }

    pub(super) async fn call(&self, request: CallRequest) -> Result<CallAnswer, RequestError> {
        self.connection.call_tool(request).await
    }

    /// Waits until it is known whether the connection survived a request that was not sent.
    pub(super) async fn settled(&self) {
        let _ = timeout(SETTLE, self.over.cancelled()).await;
    }
}
