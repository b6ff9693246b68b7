//! What a supervisor knows of its server, behind one short lock.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    McpError,
    backoff::Backoff,
    flight::{Flight, InFlight, Kept},
    listed::Listed,
    live::Live,
    status::{ServerState, StateChange},
};
use crate::connection::ServerInfo;

/// The first gap between two listings that a server provoked in vain; it doubles with each.
const FIRST_GAP: Duration = Duration::from_millis(100);
/// The longest such gap.
const LONGEST_GAP: Duration = Duration::from_secs(30);

/// What comes of an attempt to connect.
pub(super) type Connected = Result<Arc<Live>, McpError>;
/// What comes of asking for the list.
pub(super) type Relisted = Result<Arc<Listed>, McpError>;

pub(super) enum Phase {
    /// Not connected; whether that is because something failed, the back-off knows.
    Idle,
    /// The attempt of that number is under way, and goes on when nobody waits for it: one that is
    /// slower than all who wait would else begin again with each, and never fail.
    Connecting(u64, Flight<Connected>),
    Ready(Arc<Live>),
    Closed,
}

pub(super) struct State {
    pub(super) phase: Phase,
    /// How many attempts there have been, and how many of them connected.
    pub(super) attempts: u64,
    pub(super) epoch: u64,
    /// Fires when nothing is left of the connection before.
    pub(super) closing: Option<CancellationToken>,
    /// How many connections in a row were lost soon after they began.
    pub(super) lost_early: u32,
    pub(super) connecting: Backoff,
    pub(super) info: Option<ServerInfo>,
    pub(super) last_error: Option<Arc<str>>,
    pub(super) list: List,
    pub(super) reports: Reports,
}

/// The last listing, and what is known of how long it holds.
#[derive(Default)]
pub(super) struct List {
    pub(super) last: Option<Arc<Listed>>,
    /// The connection that it came by.
    pub(super) epoch: u64,
    pub(super) expires: Option<Instant>,
    /// How often the server said that it is another, and how much of that was said before it was
    /// asked for what `last` is.
    pub(super) announced: u64,
    pub(super) heard: u64,
    /// Whether the server took long to list its tools anew.
    pub(super) is_slow: bool,
    pub(super) pace: Pace,
    pub(super) backoff: Backoff,
    /// The listing of that number is under way.
    pub(super) under_way: Option<InFlight<Relisted>>,
    pub(super) listings: u64,
    /// Set while the list is got anew in the background, after a connection was lost or a failure.
    pub(super) kept: Option<Kept>,
}

/// Keeps a server that says "changed" again and again from being asked again and again.
#[derive(Default)]
pub(super) struct Pace {
    gap: Duration,
    not_before: Option<Instant>,
    /// Whether somebody is going to say that there is a change, once the gap is over.
    pub(super) announcing: bool,
}

impl Pace {
    /// The server was asked because it had said "changed".
    pub(super) fn asked(&mut self, in_vain: bool) {
        self.gap =
            if in_vain { (self.gap * 2).clamp(FIRST_GAP, LONGEST_GAP) } else { Duration::ZERO };
        self.not_before = Some(Instant::now() + self.gap);
    }

    /// When it may be asked next for that reason, if not now.
    pub(super) fn waits_until(&self) -> Option<Instant> {
        self.not_before.filter(|time| *time > Instant::now())
    }
}

/// What listeners have not been told yet.
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
            connecting: Backoff::default(),
            info: None,
            last_error: None,
            list: List::default(),
            reports: Reports { told: ServerState::Idle, waiting: Vec::new(), delivering: false },
        }
    }

    /// The list, as long as it holds and needs no asking.
    pub(super) fn fresh(&self) -> Option<&Arc<Listed>> {
        let last = self.list.last.as_ref()?;
        let holds = if self.is_listed() {
            let expired = self.list.expires.is_some_and(|time| time <= Instant::now());
            let told =
                self.list.announced != self.list.heard && self.list.pace.waits_until().is_none();
            !expired && !told
        } else {
            // While it is got anew behind a connection that was lost, the old one stands.
            self.renewing()
        };
        holds.then_some(last)
    }

    /// Whether the last list is of the connection that there is.
    fn is_listed(&self) -> bool {
        matches!(&self.phase, Phase::Ready(live) if live.epoch() == self.list.epoch)
    }

    /// The list of this connection, though it may hold no longer.
    pub(super) fn renewable(&self) -> Option<Arc<Listed>> {
        self.list.last.clone().filter(|_| self.is_listed())
    }

    /// Whether list and connection are renewed in the background after the connection was lost, and
    /// nothing has failed yet.
    fn renewing(&self) -> bool {
        self.list.kept.is_some()
            && self.connecting.trouble().is_none()
            && self.list.backoff.trouble().is_none()
            && self.list.under_way.as_ref().is_some_and(|flight| flight.join().is_some())
    }
}
