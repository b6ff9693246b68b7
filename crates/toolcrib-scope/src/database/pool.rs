//! Connections that wait to be used again.

use std::{path::Path, sync::Mutex};

use super::{
    connection::GuardedConnection,
    guard::{Access, locked},
    make::{Beside, open},
};

/// More are opened when needed, and closed after use.
const MAX_IDLE: usize = 4;

pub(crate) struct Pool {
    access: Access,
    beside: Beside,
    idle: Mutex<Vec<GuardedConnection>>,
}

impl Pool {
    pub(crate) fn new(access: Access, beside: Beside) -> Self {
        Self { access, beside, idle: Mutex::default() }
    }

    /// An idle connection, or a new one to the file.
    pub(crate) fn take(&self, file: &Path) -> rusqlite::Result<GuardedConnection> {
        let idle = locked(&self.idle).pop();
        idle.map_or_else(|| open(file, self.access, self.beside), Ok)
    }

    /// Takes a connection back, unless enough wait already, or it is not known to be clean, or would
    /// not see what is written meanwhile.
    pub(crate) fn put_back(&self, connection: GuardedConnection) {
        let mut idle = locked(&self.idle);
        let stays_true = self.beside == Beside::Kept;
        if idle.len() < MAX_IDLE && stays_true && connection.is_settled() {
            idle.push(connection);
        }
    }
}
