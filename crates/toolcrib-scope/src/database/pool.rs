//! Connections that wait to be used again.

use std::{path::Path, sync::Mutex};

use super::{
    connection::GuardedConnection,
    guard::{Access, locked},
};

/// More are opened when needed, and closed after use.
const MAX_IDLE: usize = 4;

pub(crate) struct Pool {
    access: Access,
    idle: Mutex<Vec<GuardedConnection>>,
}

impl Pool {
    pub(crate) fn new(access: Access, first: Option<GuardedConnection>) -> Self {
        Self { access, idle: Mutex::new(first.into_iter().collect()) }
    }

    /// An idle connection, or a new one to the file.
    pub(crate) fn take(&self, file: &Path) -> rusqlite::Result<GuardedConnection> {
        let idle = locked(&self.idle).pop();
        idle.map_or_else(|| GuardedConnection::open(file, self.access), Ok)
    }

    /// Takes a connection back, unless enough wait already or it is not known to be clean.
    pub(crate) fn put_back(&self, connection: GuardedConnection) {
        let mut idle = locked(&self.idle);
        if idle.len() < MAX_IDLE && connection.is_settled() {
            idle.push(connection);
        }
    }
}
