//! The configured behavior of a server, and its counters.

use std::{collections::VecDeque, mem, sync::atomic::AtomicU64, time::Duration};

use parking_lot::{Mutex, MutexGuard};
use rmcp::{Peer, RoleServer, model::ErrorCode, service::SubscriptionSink};
use toolcrib_core::{CancellationToken, Tool};

/// State shared by all connections of one server.
pub(super) struct Script {
    pub(super) legacy: bool,
    pub(super) page_size: usize,
    pub(super) calls: AtomicU64,
    pub(super) lists: AtomicU64,
    pub(super) connections: AtomicU64,
    pub(super) cancelled: AtomicU64,
    state: Mutex<State>,
}

pub(super) struct State {
    pub(super) tools: Vec<Tool>,
    pub(super) fail_calls: VecDeque<Refusal>,
    pub(super) fail_lists: VecDeque<Refusal>,
    pub(super) delay: Duration,
    pub(super) crash_during_call: bool,
    pub(super) refuse: usize,
    /// The tokens that end each connection.
    pub(super) ends: Vec<CancellationToken>,
    pub(super) listeners: Vec<Listener>,
}

/// A protocol error as a response.
pub(super) struct Refusal {
    pub(super) code: i32,
    pub(super) message: String,
}

impl From<Refusal> for rmcp::ErrorData {
    fn from(refusal: Refusal) -> Self {
        Self::new(ErrorCode(refusal.code), refusal.message, None)
    }
}

/// A receiver of change notifications.
#[derive(Clone)]
pub(super) enum Listener {
    /// Before 2026-07-28: every connected client.
    Peer(Peer<RoleServer>),
    /// Since then: every subscriber.
    Subscription(SubscriptionSink),
}

impl Script {
    pub(super) fn new(tools: Vec<Tool>) -> Self {
        Self {
            legacy: false,
            page_size: usize::MAX,
            calls: AtomicU64::new(0),
            lists: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            cancelled: AtomicU64::new(0),
            state: Mutex::new(State {
                tools,
                fail_calls: VecDeque::new(),
                fail_lists: VecDeque::new(),
                delay: Duration::ZERO,
                crash_during_call: false,
                refuse: 0,
                ends: Vec::new(),
                listeners: Vec::new(),
            }),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Announces changed tools to all receivers; those that are gone are removed.
    pub(super) async fn announce(&self) {
        let listeners = mem::take(&mut self.state().listeners);
        for listener in listeners {
            let told = match &listener {
                Listener::Peer(peer) => peer.notify_tool_list_changed().await.is_ok(),
                Listener::Subscription(sink) => sink.notify_tool_list_changed().await.is_ok(),
            };
            if told {
                self.state().listeners.push(listener);
            }
        }
    }

    pub(super) fn crash(&self) {
        let ends = mem::take(&mut self.state().ends);
        for end in ends {
            end.cancel();
        }
    }
}
