//! What a server was told to do, and what it has counted.

use std::{
    collections::VecDeque,
    mem,
    sync::{Mutex, MutexGuard, PoisonError, atomic::AtomicU64},
    time::Duration,
};

use rmcp::{Peer, RoleServer, model::ErrorCode, service::SubscriptionSink};
use toolcrib_core::{CancellationToken, Tool};

/// What all connections of one server have in common.
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
    /// What ends each of the connections.
    pub(super) ends: Vec<CancellationToken>,
    pub(super) listeners: Vec<Listener>,
}

/// An answer that is an error of the protocol.
pub(super) struct Refusal {
    pub(super) code: i32,
    pub(super) message: String,
}

impl From<Refusal> for rmcp::ErrorData {
    fn from(refusal: Refusal) -> Self {
        Self::new(ErrorCode(refusal.code), refusal.message, None)
    }
}

/// One that is told when the tools change.
#[derive(Clone)]
pub(super) enum Listener {
    /// Before 2026-07-28: whoever is connected.
    Peer(Peer<RoleServer>),
    /// Since then: whoever asked to be told.
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
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells all who listen that the tools changed; who is gone is forgotten.
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
