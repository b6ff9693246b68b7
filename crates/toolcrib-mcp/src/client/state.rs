//! A supervisor's state of its server, guarded by one short lock.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use futures_util::FutureExt as _;
use tokio::time::Instant;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use toolcrib_core::__internal::{Backoff, Flight, SingleFlight, time_left};

use super::{
    McpError,
    asset_lists::Assets,
    failures::Failures,
    listed::ServerListing,
    live::LiveConnection,
    status::{ServerState, StateChange},
};
use crate::connection::types::ServerInfo;

/// The gap between two listings after the server said "changed" and nothing had.
const GAP: Backoff = Backoff { base: Duration::from_millis(100), cap: Duration::from_secs(30) };

/// The result of an attempt to connect.
pub(super) type ConnectResult = Result<Arc<LiveConnection>, McpError>;
/// The result of requesting the list.
pub(super) type ListResult = Result<Arc<ServerListing>, McpError>;

pub(super) enum Phase {
    /// Not connected; the backoff knows whether there was a failure.
    Idle,
    /// The attempt of that number is under way, and goes on without waiters: one that is
    /// slower than all who wait would else begin again with each, and never fail.
    Connecting(u64, Flight<Option<ConnectResult>>),
    Ready(Arc<LiveConnection>),
    Closed,
}

pub(super) struct State {
    pub(super) phase: Phase,
    /// The number of attempts, and the number of successful ones.
    pub(super) attempts: u64,
    pub(super) epoch: u64,
    /// Fires when nothing is left of the previous connection.
    pub(super) closing: Option<CancellationToken>,
    /// The number of consecutive connections that were lost soon after they began.
    pub(super) lost_early: u32,
    pub(super) connecting: Failures,
    pub(super) info: Option<ServerInfo>,
    pub(super) last_error: Option<Arc<str>>,
    pub(super) list: List,
    /// The lists of what it offers beside tools.
    pub(super) assets: Assets,
    /// The present subscriptions to resources, by URI.
    pub(super) subscriptions: HashMap<Arc<str>, Weak<Subscribed>>,
    /// The level of log messages that clients require.
    pub(super) log_level: Option<Arc<str>>,
    pub(super) reports: Reports,
    /// Since when it owes a response without interruption; see [`State::owes`].
    owes_since: Instant,
}

/// The last listing, and its validity.
#[derive(Default)]
pub(super) struct List {
    pub(super) last: Option<Arc<ServerListing>>,
    /// How `last` deviates from the protocol.
    pub(super) warning: Option<&'static str>,
    /// The connection that it came from.
    pub(super) epoch: u64,
    pub(super) expires: Option<Instant>,
    /// When `last` arrived, and for how long all of it is valid by the server's word.
    pub(super) stated: Option<(Instant, Duration)>,
    /// The number of announced changes, and how many of them were before the request of `last`.
    pub(super) announced: u64,
    pub(super) heard: u64,
    /// Whether the server was slow to list its tools again.
    pub(super) is_slow: bool,
    pub(super) pace: Pace,
    pub(super) failures: Failures,
    pub(super) flights: SingleFlight<(), Option<ListResult>>,
    /// A background refresh after a lost connection or a failure.
    pub(super) kept: Option<Flight<Option<ListResult>>>,
}

impl List {
    /// The listing in progress. It is polled: a finished one is not joined, although its result was not
    /// read yet.
    pub(super) fn under_way(&self) -> Option<Flight<Option<ListResult>>> {
        self.flights.join(&()).filter(|flight| flight.clone().now_or_never().is_none())
    }
}

/// Limits how often a server that keeps announcing changes is queried.
#[derive(Default)]
pub(super) struct Pace {
    /// How often in a row it was asked in vain.
    in_vain: u32,
    not_before: Option<Instant>,
    /// Whether a change will be announced once the gap is over.
    pub(super) announcing: bool,
}

impl Pace {
    /// The server was queried because it had announced a change.
    pub(super) fn asked(&mut self, in_vain: bool) {
        self.in_vain = if in_vain { self.in_vain.saturating_add(1) } else { 0 };
        self.not_before = Some(Instant::now() + GAP.longest(self.in_vain));
    }

    /// The earliest time of the next query for that reason, if not now.
    pub(super) fn waits_until(&self) -> Option<Instant> {
        self.not_before.filter(|time| *time > Instant::now())
    }
}

/// Changes that listeners have not received yet.
pub(super) struct Reports {
    pub(super) told: ServerState,
    pub(super) waiting: Vec<StateChange>,
    pub(super) delivering: bool,
}

impl State {
    pub(super) fn new() -> Self {
        Self {
            phase: Phase::Idle,
            attempts: 0,
            epoch: 0,
            closing: None,
            lost_early: 0,
            connecting: Failures::default(),
            info: None,
            last_error: None,
            list: List::default(),
            assets: Assets::default(),
            subscriptions: HashMap::new(),
            log_level: None,
            reports: Reports { told: ServerState::Idle, waiting: Vec::new(), delivering: false },
            owes_since: Instant::now(),
        }
    }

    /// Whether the server owes a response: a connection, or a list.
    fn owes(&self) -> bool {
        let is_connecting = match &self.phase {
            Phase::Connecting(_, attempt) => attempt.clone().now_or_never().is_none(),
            _ => false,
        };
        is_connecting || self.list.under_way().is_some() || self.assets.is_under_way()
    }

    /// A connection or a list is about to be requested.
    pub(super) fn requests(&mut self) {
        if !self.owes() {
            self.owes_since = Instant::now();
        }
    }

    /// Until when what it owes is waited for. All waits count from the first request without a
    /// response, so that a server that hangs costs one wait.
    pub(super) fn awaited_until(&self, limit: Duration) -> Instant {
        let since = if self.owes() { self.owes_since } else { Instant::now() };
        since + limit
    }

    /// How long the list stays valid by the server's word: zero without its word, and if it has
    /// announced a change.
    pub(super) fn fresh_for(&self) -> Duration {
        let List { stated, announced, heard, .. } = &self.list;
        match stated {
            Some((since, ttl)) if announced == heard && self.is_listed() => {
                time_left(*ttl, since.elapsed())
            }
            _ => Duration::ZERO,
        }
    }

    /// The list, while it is valid.
    pub(super) fn fresh(&self) -> Option<&Arc<ServerListing>> {
        let last = self.list.last.as_ref()?;
        let holds = if self.is_listed() {
            let expired = self.list.expires.is_some_and(|time| time <= Instant::now());
            let told =
                self.list.announced != self.list.heard && self.list.pace.waits_until().is_none();
            !expired && !told
        } else {
            // While it is renewed after a lost connection, the old one is valid.
            self.renewing()
        };
        holds.then_some(last)
    }

    /// Whether the last list is of the present connection.
    fn is_listed(&self) -> bool {
        matches!(&self.phase, Phase::Ready(live) if live.epoch() == self.list.epoch)
    }

    /// The list of this connection, which may be outdated.
    pub(super) fn renewable(&self) -> Option<Arc<ServerListing>> {
        self.list.last.clone().filter(|_| self.is_listed())
    }

    /// Whether list and connection are renewed in the background after the connection was lost,
    /// without a failure yet.
    fn renewing(&self) -> bool {
        self.list.kept.is_some()
            && self.connecting.trouble().is_none()
            && self.list.failures.trouble().is_none()
            && self.list.under_way().is_some()
    }
}

/// A subscription to the changes of a resource, until it is dropped.
pub struct Subscribed {
    pub(super) _task: AbortOnDropHandle<()>,
}
