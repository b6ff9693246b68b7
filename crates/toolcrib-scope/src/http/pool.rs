//! Connections that wait for the next request to the same origin.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::{connect::Connection, target::Target};

/// How many wait at most; the one that waited longest makes room. Fewer than there are calls at the
/// same time would mean to open and close connections all the time.
const MAX_IDLE: usize = 128;
/// How long one is taken again. Servers close what idles for longer, and a request that meets the
/// closing is lost.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15);

/// Idle connections, the longest idle first. They were made under one set of rules for addresses,
/// and may only serve where the same rules hold.
#[derive(Default)]
pub(crate) struct Pool(Mutex<Vec<Idle>>);

struct Idle {
    target: Arc<Target>,
    connection: Connection,
    since: Instant,
}

impl Pool {
    /// The connection to the target's origin that has waited shortest.
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

    /// Keeps a connection whose answer has been read to its end.
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
        idle.push(Idle { target, connection, since: Instant::now() });
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
