//! Connections that wait for the next request to the same origin.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
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
    origin: Origin,
    connection: Connection,
    since: Instant,
}

/// Scheme, host and port.
type Origin = (bool, String, u16);

impl Pool {
    /// The connection to the target's origin that has waited shortest.
    pub(crate) fn take(&self, target: &Target) -> Option<Connection> {
        let origin = origin(target);
        let mut idle = self.idle();
        idle.retain(|one| one.since.elapsed() < IDLE_TIMEOUT && !one.connection.sender.is_closed());
        let position = idle.iter().rposition(|one| one.origin == origin)?;
        Some(idle.remove(position).connection)
    }

    /// Keeps a connection whose answer has been read to its end.
    pub(crate) fn put(&self, target: &Target, connection: Connection) {
        if connection.sender.is_closed() {
            return;
        }
        let mut idle = self.idle();
        if idle.len() >= MAX_IDLE {
            idle.remove(0);
        }
        idle.push(Idle { origin: origin(target), connection, since: Instant::now() });
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn origin(target: &Target) -> Origin {
    (target.https, target.host.clone(), target.port)
}
