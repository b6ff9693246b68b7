//! What all sessions of one server share.

use std::sync::Arc;

use tokio::sync::{Semaphore, watch};
use tokio_util::task::TaskTracker;

use super::{builder::Settings, name::ServerName, status::StateChange};
use crate::connection::Connect;

/// How many sessions of one server connect at the same time: each may start a program.
const STARTS: usize = 4;

/// Called at each change of state.
pub(super) type Listener = Box<dyn Fn(&StateChange) + Send + Sync>;

/// A server as it is declared, and what its sessions have in common.
pub(super) struct Shared {
    pub(super) name: ServerName,
    /// The server's name as others share it.
    pub(super) server: Arc<str>,
    /// `mcp:git`.
    pub(super) origin: Arc<str>,
    /// `mcp__git__*`.
    pub(super) pattern: String,
    pub(super) target: Arc<str>,
    pub(super) connect: Arc<dyn Connect>,
    pub(super) settings: Settings,
    pub(super) listeners: Vec<Listener>,
    pub(super) changes: watch::Sender<u64>,
    /// Those of all sessions, evicted ones too.
    pub(super) tasks: TaskTracker,
    /// A permit is held while a session connects.
    pub(super) starts: Semaphore,
}

impl Shared {
    pub(super) fn new(
        name: ServerName,
        connect: Arc<dyn Connect>,
        settings: Settings,
        listeners: Vec<Listener>,
    ) -> Self {
        Self {
            server: name.as_str().into(),
            origin: format!("mcp:{name}").into(),
            pattern: name.pattern(),
            target: connect.target().into(),
            name,
            connect,
            settings,
            listeners,
            changes: watch::Sender::new(0),
            tasks: TaskTracker::new(),
            starts: Semaphore::new(STARTS),
        }
    }
}
