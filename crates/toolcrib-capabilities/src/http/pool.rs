//! A pool of idle connections.

use std::{sync::Arc, time::Duration};

use parking_lot::{Mutex, MutexGuard};

use tokio::time::Instant;

use super::{connect::Connection, target::Target};

/// The limit of idle connections; the longest idle one is evicted. With fewer than concurrent
/// calls, connections would be opened and closed all the time.
const MAX_IDLE: usize = 128;
/// The maximum idle time. Servers close connections that are idle for longer, and a request during
/// the closing is lost.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15);

/// Idle connections, the longest idle first. They were opened under one set of address rules, and
/// may only be reused under the same rules.
#[derive(Default)]
pub(crate) struct Pool(Mutex<Vec<IdleConnection>>);

struct IdleConnection {
    target: Arc<Target>,
    connection: Connection,
    since: Instant,
}

impl Pool {
    /// The most recently used connection to the target's origin.
    pub(crate) fn take(&self, target: &Target) -> Option<Connection> {
        let now = Instant::now();
        let mut idle = self.idle();
        let old = idle.partition_point(|one| now.duration_since(one.since) >= IDLE_TIMEOUT);
        idle.drain(..old);
        loop {
            let position = idle.iter().rposition(|one| one.target.same_origin(target))?;
            let connection = idle.remove(position).connection;
            if !connection.sender.is_closed() {
                return Some(connection);
            }
        }
    }

    /// Keeps a connection whose response has been read to its end.
    pub(crate) fn put(&self, target: Arc<Target>, connection: Connection) {
        if connection.sender.is_closed() {
            return;
        }
        let mut idle = self.idle();
        if idle.len() >= MAX_IDLE {
            idle.retain(|one| !one.connection.sender.is_closed());
        }
        if idle.len() >= MAX_IDLE {
            idle.remove(0);
        }
        idle.push(IdleConnection { target, connection, since: Instant::now() });
    }

    fn idle(&self) -> MutexGuard<'_, Vec<IdleConnection>> {
        self.0.lock()
    }
}
