use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::connection::{CallAnswer, CallRequest, Connection, RequestError};

/// How long a request that was not sent waits to hear that its connection is over.
const SETTLE: Duration = Duration::from_millis(100);

/// A connection while it is used.
pub(super) struct Live {
    connection: Arc<dyn Connection>,
    /// Which connection to the server it is, from 1.
    epoch: u64,
    since: Instant,
    /// Fires when the supervisor has taken note that it is over.
    over: CancellationToken,
}

impl Live {
    pub(super) fn new(connection: Arc<dyn Connection>, epoch: u64) -> Self {
        Self { connection, epoch, since: Instant::now(), over: CancellationToken::new() }
    }

    pub(super) fn connection(&self) -> &dyn Connection {
        &*self.connection
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

    pub(super) async fn call(&self, request: CallRequest) -> Result<CallAnswer, RequestError> {
        self.connection.call_tool(request).await
    }

    /// Waits until it is known whether the connection outlived a request that was not sent.
    pub(super) async fn settled(&self) {
        let _ = timeout(SETTLE, self.over.cancelled()).await;
    }
}
