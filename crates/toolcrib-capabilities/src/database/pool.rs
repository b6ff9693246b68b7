//! Idle connections for reuse.

use std::path::Path;

use parking_lot::Mutex;

use super::{
    connection::GuardedConnection,
    guard::Access,
    make::{SideFiles, open},
};

/// More are opened if needed, and closed after use.
const MAX_IDLE: usize = 4;

/// A pool for each access.
pub(crate) struct Pools {
    readers: Pool,
    writers: Pool,
    explorers: Pool,
}

impl Pools {
    /// The pools of a file that was opened for the first time with `reader`.
    pub(crate) fn new(beside: SideFiles, reader: GuardedConnection) -> Self {
        let new = |access| Pool { access, beside, idle: Mutex::default() };
        let pools = Self {
            readers: new(Access::Read),
            writers: new(Access::Write),
            explorers: new(Access::Explore),
        };
        pools.readers.put_back(reader);
        pools
    }

    pub(crate) fn of(&self, access: Access) -> &Pool {
        match access {
            Access::Read => &self.readers,
            Access::Write => &self.writers,
            Access::Explore => &self.explorers,
        }
    }
}

pub(crate) struct Pool {
    access: Access,
    beside: SideFiles,
    idle: Mutex<Vec<GuardedConnection>>,
}

impl Pool {
    /// An idle connection, or a new one to the file.
    pub(crate) fn take(&self, file: &Path) -> rusqlite::Result<GuardedConnection> {
        let idle = self.idle.lock().pop();
        idle.map_or_else(|| open(file, self.access, self.beside), Ok)
    }

    /// Returns a connection to the pool, unless the pool is full, the connection is not known to be
    /// clean, or it would not see concurrent writes.
    pub(crate) fn put_back(&self, connection: GuardedConnection) {
        let mut idle = self.idle.lock();
        let stays_true = self.beside == SideFiles::Kept;
        if idle.len() < MAX_IDLE && stays_true && connection.is_settled() {
            idle.push(connection);
        }
    }
}
