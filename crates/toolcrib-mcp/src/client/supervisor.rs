//! Supervises one server: connects on demand, notices a lost connection, backs off after failures.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicUsize},
    },
    time::Duration,
};

use futures_util::FutureExt as _;
use parking_lot::{Mutex, MutexGuard};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use toolcrib_core::{
    __internal::{Flight, panic_text},
    Breaker, BreakerState, Permit,
};

use super::{
    McpError,
    flight::{Landing, Outcome, flight},
    live::LiveConnection,
    scope::IdentityScope,
    sessions::Sessions,
    settings::Settings,
    shared::Shared,
    state::{ConnectResult, Phase, State},
    status::{ServerState, ServerStatus, StateChange, UnmatchedPattern},
};
use crate::{
    connection::{
        Caller, CallerContext, Connection, Opening, Redaction, WireObserver,
        types::{ServerNotice, Signals},
    },
    server::{CallerAccess, name::ServerName},
};

/// A connection that lasts this long counts as stable.
const STABLE: Duration = Duration::from_secs(10);

/// How long a lost connection may take to end before another is opened in any case.
const CLOSE_GRACE: Duration = Duration::from_secs(5);

/// Why the supervisor closes a connection.
const HANGS: &str = "it did not answer several times in a row when asked for its tools";

/// Supervises one session of a server. All its work runs in the server's `tasks` and ends with
/// `shutdown`; cancellations of calls may be sent a moment later.
pub(super) struct Supervisor {
    shared: Arc<Shared>,
    /// Whose session it is.
    whose: IdentityScope,
    /// The access of its identity.
    access: CallerAccess,
    /// The sessions of the server, including this one.
    sessions: Weak<Sessions>,
    /// The number of calls and listings that use it now: while it is not 0, it is not evicted.
    pub(super) users: AtomicUsize,
    /// Whether a call or another request ran in it: then the server may have state for its client.
    pub(super) had_call: AtomicBool,
    breaker: Breaker,
    shutdown: CancellationToken,
    state: Mutex<State>,
}

/// The connection, for a task that needs it.
enum ConnectionLookup {
    Live(Arc<LiveConnection>),
    Soon(Flight<Option<ConnectResult>>),
}

impl Supervisor {
    pub(super) fn new(
        shared: Arc<Shared>,
        sessions: Weak<Sessions>,
        whose: IdentityScope,
        access: CallerAccess,
        shutdown: CancellationToken,
    ) -> Arc<Self> {
        Arc::new(Self {
            breaker: Breaker::new(shared.settings.breaker),
            shared,
            sessions,
            whose,
            access,
            users: AtomicUsize::new(0),
            had_call: AtomicBool::new(false),
            shutdown,
            state: Mutex::new(State::new()),
        })
    }

    pub(super) fn name(&self) -> &ServerName {
        &self.shared.name
    }

    pub(super) fn whose(&self) -> &IdentityScope {
        &self.whose
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(super) fn server(&self) -> &Arc<str> {
        &self.shared.server
    }

    pub(super) fn origin(&self) -> &Arc<str> {
        &self.shared.origin
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    pub(super) fn sessions(&self) -> &Weak<Sessions> {
        &self.sessions
    }

    pub(super) fn tick(&self) {
        self.shared.changes.send_modify(|ticks| *ticks = ticks.wrapping_add(1));
    }

    fn tick_at(self: &Arc<Self>, time: Instant, first: impl FnOnce(&mut State) + Send + 'static) {
        let supervisor = Arc::clone(self);
        self.spawn(async move {
            sleep_until(time).await;
            supervisor.with(first);
            supervisor.tick();
        });
    }

    pub(super) fn is_watched(&self) -> bool {
        self.shared.changes.receiver_count() > 0
    }

    /// Spawns work that ends with the client at the latest.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let shutdown = self.shutdown.clone();
        self.shared.tasks.spawn(async move {
            tokio::select! {
                biased;
                () = shutdown.cancelled() => {}
                () = work => {}
            }
        });
    }

    pub(super) fn flight<T: Send + 'static>(&self) -> (Landing<T>, Outcome<T>) {
        flight(&self.shutdown)
    }

    /// Read access to the state.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // Code under the lock keeps the state consistent at every point.
        self.state.lock()
    }

    /// Changes the state, and notifies the listeners afterwards.
    pub(super) fn with<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.state();
        let outcome = change(&mut state);
        let now = self.server_state(&state);
        if now != state.reports.told {
            let failed = matches!(now, ServerState::BackingOff | ServerState::Open);
            let lost = state.reports.told == ServerState::Ready && now != ServerState::Closed;
            let change = StateChange {
                server: Arc::clone(&self.shared.server),
                from: state.reports.told,
                to: now,
                reason: state.last_error.clone().filter(|_| failed || lost),
            };
            state.reports.told = now;
            if !self.shared.listeners.is_empty() {
                state.reports.waiting.push(change);
            }
        }
        let deliver = !state.reports.waiting.is_empty() && !state.reports.delivering;
        state.reports.delivering |= deliver;
        drop(state);
        if deliver {
            self.deliver();
        }
        outcome
    }

    /// Notifies the listeners, in order, including of changes made meanwhile.
    fn deliver(&self) {
        loop {
            let waiting = {
                let mut state = self.state();
                if state.reports.waiting.is_empty() {
                    state.reports.delivering = false;
                    return;
                }
                std::mem::take(&mut state.reports.waiting)
            };
            for change in &waiting {
                for listener in &self.shared.listeners {
                    // A panic of a listener must not end the supervisor.
                    let _ = catch_unwind(AssertUnwindSafe(|| listener(change)));
                }
            }
        }
    }

    fn server_state(&self, state: &State) -> ServerState {
        match &state.phase {
            Phase::Idle if state.connecting.trouble().is_none() => ServerState::Idle,
            Phase::Idle if self.breaker.state() != BreakerState::Closed => ServerState::Open,
            Phase::Idle => ServerState::BackingOff,
            Phase::Connecting(..) => ServerState::Connecting,
            Phase::Ready(_) => ServerState::Ready,
            Phase::Closed => ServerState::Closed,
        }
    }

    /// The patterns that match none of the tools of the last listing.
    pub(super) fn unmatched(&self) -> Vec<UnmatchedPattern> {
        let last = self.state().list.last.clone();
        let Some(list) = last else { return Vec::new() };
        let mut unmatched = self.settings().unmatched(&list.names());
        unmatched.extend(list.foreign_tools().iter().map(UnmatchedPattern::of_skill));
        unmatched
    }

    pub(super) fn status(&self) -> ServerStatus {
        let state = self.state();
        let info = state.info.as_ref();
        let shown = |text: &str| self.settings().redactor.text(text).into();
        let waits =
            matches!(state.phase, Phase::Idle).then(|| state.connecting.trouble()).flatten();
        ServerStatus {
            name: Arc::clone(&self.shared.server),
            target: Arc::clone(&self.shared.target),
            state: self.server_state(&state),
            epoch: state.epoch,
            server: info.map(|info| shown(&info.name)),
            server_version: info.map(|info| shown(&info.version)),
            protocol: info.map(|info| shown(&info.protocol)),
            tools: state.list.last.as_ref().map(|list| list.catalog().offered().len()),
            withheld_by_provider: state
                .list
                .last
                .as_ref()
                .map(|list| list.catalog().withheld_by_provider().len()),
            last_error: state.last_error.clone(),
            list_warning: state.list.warning,
            next_try_in: waits
                .map(|trouble| trouble.until.saturating_duration_since(Instant::now())),
        }
    }

    /// The connection, opened if there is none. All waiters share one attempt, which continues
    /// without them.
    pub(super) async fn connection(self: &Arc<Self>) -> ConnectResult {
        loop {
            let reached = self.with(|state| self.reach(state))?;
            let flight = match reached {
                ConnectionLookup::Live(live) => return Ok(live),
                ConnectionLookup::Soon(flight) => flight,
            };
            match flight.await {
                Some(connected) => return connected,
                // It broke off: the client is closed, or the runtime is ending.
                None => tokio::task::yield_now().await,
            }
        }
    }

    /// The same, for as long as a server that owes a response is [awaited](State::awaited_until). One
    /// that has failed is not awaited.
    pub(super) async fn connection_within(self: &Arc<Self>, limit: Duration) -> ConnectResult {
        let (reached, until) = self.with(|state| {
            let has_failed = state.connecting.trouble().is_some();
            let reached = self.reach(state);
            (reached, (!has_failed).then(|| state.awaited_until(limit)))
        });
        if let ConnectionLookup::Live(live) = reached? {
            return Ok(live);
        }
        let connected = match until {
            Some(until) => timeout_at(until, self.connection()).await.ok(),
            None => None,
        };
        connected.unwrap_or_else(|| Err(self.unreachable(&self.state())))
    }

    /// Whether a connection without a session is replaced by one with a session, in which the server can ask
    /// the client. One in which other requests run stays until a later call.
    pub(super) fn replaces_by_session(&self, live: &LiveConnection) -> bool {
        self.shared.connect.prefers_session(self.whose.abilities)
            && live.connection().retire("it asks inside of calls, which needs a session")
    }

    /// The present connection.
    pub(super) fn live(&self) -> Option<Arc<LiveConnection>> {
        match &self.state().phase {
            Phase::Ready(live) => Some(Arc::clone(live)),
            _ => None,
        }
    }

    fn reach(self: &Arc<Self>, state: &mut State) -> Result<ConnectionLookup, McpError> {
        match &state.phase {
            Phase::Closed => return Err(self.closed_error()),
            Phase::Ready(live) => return Ok(ConnectionLookup::Live(Arc::clone(live))),
            Phase::Connecting(_, attempt) => {
                if attempt.clone().now_or_never().is_none() {
                    return Ok(ConnectionLookup::Soon(attempt.clone()));
                }
            }
            Phase::Idle => {}
        }
        if state.connecting.blocks() {
            return Err(self.unreachable(state));
        }
        let Ok(permit) = self.breaker.admit() else {
            return Err(self.unreachable(state));
        };
        state.requests();
        state.attempts += 1;
        let (landing, outcome) = self.flight();
        let flight = outcome.shared();
        state.phase = Phase::Connecting(state.attempts, flight.clone());
        self.shared.tasks.spawn(Arc::clone(self).attempt(state.attempts, landing, permit));
        Ok(ConnectionLookup::Soon(flight))
    }

    /// One attempt, and its connection until the end.
    async fn attempt(
        self: Arc<Self>,
        attempt: u64,
        landing: Landing<ConnectResult>,
        permit: Permit,
    ) {
        let under_way = AttemptGuard { supervisor: &self, attempt };
        let signals = SupervisorSignals { supervisor: Arc::downgrade(&self) };
        let before = self.state().closing.clone();
        let awaited = Opening::default();
        let opening = async {
            // Two connections to one server could conflict: over a lock, a file, a port.
            if let Some(before) = before {
                let _ = timeout(CLOSE_GRACE, before.cancelled()).await;
            }
            let owner = &self.whose.owner();
            let caller = CallerContext { owner, access: &self.access };
            let (signals, abilities) = (Arc::new(signals), self.whose.abilities);
            self.shared.connect.connect(signals, abilities, caller, &awaited).await
        };
        // The timeout starts here, however long others take to start.
        let starting = tokio::select! {
            biased;
            () = landing.abandoned() => return,
            starting = self.shared.starts.acquire() => starting,
        };
        let allowed = self.shared.settings.start_timeout;
        let opened = tokio::select! {
            biased;
            () = landing.abandoned() => return,
            opened = timeout(allowed, AssertUnwindSafe(opening).catch_unwind()) => opened,
        };
        drop(starting);
        let problem = match opened {
            Ok(Ok(Ok(connection))) => {
                let Some(live) = self.connected(attempt, &connection) else {
                    return connection.close().await;
                };
                landing.land(Ok(Arc::clone(&live)));
                drop(under_way);
                return self.keep(live, connection, permit).await;
            }
            Ok(Ok(Err(error))) => error.to_string(),
            Ok(Err(panic)) => format!("what connects to it panicked: {}", panic_text(&*panic)),
            Err(_) => format!("it was not connected within {allowed:?}{}", awaited.stray()),
        };
        permit.failed();
        let error = self.with(|state| {
            if matches!(state.phase, Phase::Connecting(current, _) if current == attempt) {
                state.phase = Phase::Idle;
            }
            self.cannot_connect(state, problem.into());
            self.unreachable(state)
        });
        landing.land(Err(error));
    }

    /// Puts a new connection into use; `None` if it is no longer needed.
    fn connected(
        self: &Arc<Self>,
        attempt: u64,
        connection: &Arc<Connection>,
    ) -> Option<Arc<LiveConnection>> {
        let live = self.with(|state| {
            if !matches!(state.phase, Phase::Connecting(current, _) if current == attempt) {
                return None;
            }
            state.epoch += 1;
            let live = Arc::new(LiveConnection::new(Arc::clone(connection), state.epoch));
            state.phase = Phase::Ready(Arc::clone(&live));
            state.info = Some(connection.server().clone());
            state.connecting.works();
            if let Some(level) = state.log_level.clone() {
                self.send_log_level(&live, level);
            }
            Some(live)
        })?;
        self.announce(ServerNotice::Connected);
        self.announce_missed(&live);
        Some(live)
    }

    /// Watches a connection until it ends.
    async fn keep(
        self: Arc<Self>,
        live: Arc<LiveConnection>,
        connection: Arc<Connection>,
        permit: Permit,
    ) {
        // Dropped on every path, also when the runtime ends.
        let in_use = ConnectionGuard { supervisor: &self, live: &live };
        let gone = CancellationToken::new();
        let _gone = gone.clone().drop_guard();
        self.state().closing = Some(gone);
        let mut permit = Some(permit);
        let mut closed = std::pin::pin!(connection.closed());
        let reason = loop {
            tokio::select! {
                biased;
                () = self.shutdown.cancelled() => break None,
                reason = &mut closed => break Some(reason),
                () = live.hangs().cancelled() => {
                    break Some(format!("{HANGS}{}", connection.stray()).into());
                }
                () = sleep_until(live.since() + STABLE), if permit.is_some() => {
                    if let Some(permit) = permit.take() {
                        permit.succeeded();
                    }
                    self.with(|state| {
                        state.lost_early = 0;
                        state.connecting.healthy();
                    });
                }
            }
        };
        if let Some(reason) = reason {
            self.lost(&live, reason, permit);
        }
        drop(in_use);
        connection.close().await;
    }

    /// A connection ended by itself. If its tools were listed, it is reopened in the background,
    /// unless it keeps ending.
    fn lost(self: &Arc<Self>, live: &LiveConnection, reason: Arc<str>, early: Option<Permit>) {
        self.with(|state| {
            if !matches!(&state.phase, Phase::Ready(ready) if ready.epoch() == live.epoch()) {
                return;
            }
            state.phase = Phase::Idle;
            state.last_error = Some(Arc::clone(&reason));
            if let Some(permit) = early {
                state.lost_early += 1;
                if state.lost_early > 1 {
                    permit.failed();
                    return self.cannot_connect(state, reason);
                }
            }
            if state.list.last.is_some() {
                self.relist_in_background(state);
            }
        });
    }

    fn cannot_connect(self: &Arc<Self>, state: &mut State, problem: Arc<str>) {
        state.last_error = Some(Arc::clone(&problem));
        state.connecting.failed(problem);
        if let BreakerState::Open { retry_in } = self.breaker.state() {
            state.connecting.wait(retry_in);
        }
        self.failing(state.connecting.trouble().map(|trouble| trouble.until));
    }

    /// Announces that the list may be gone, and again when the server may be retried.
    pub(super) fn failing(self: &Arc<Self>, until: Option<Instant>) {
        self.tick();
        if let Some(until) = until
            && self.is_watched()
        {
            self.tick_at(until, |_| {});
        }
    }

    pub(super) fn unreachable(&self, state: &State) -> McpError {
        let trouble = state.connecting.trouble();
        McpError::Unreachable {
            server: Arc::clone(&self.shared.server),
            problem: trouble
                .map_or_else(|| "an attempt is in progress".into(), |t| Arc::clone(&t.problem)),
            failures: state.connecting.count(),
            next_try_in: trouble.map_or(Duration::ZERO, |trouble| {
                trouble.until.saturating_duration_since(Instant::now())
            }),
        }
    }

    /// The [stray messages](Connection::stray) of the open connection, if there is one.
    pub(super) fn stray(&self) -> String {
        match &self.state().phase {
            Phase::Ready(live) => live.connection().stray(),
            _ => String::new(),
        }
    }

    pub(super) fn closed_error(&self) -> McpError {
        McpError::Closed { server: Arc::clone(&self.shared.server) }
    }

    /// The server announced changed tools, or gave reason to assume a change.
    pub(super) fn tools_changed(self: &Arc<Self>) {
        let until = {
            let mut state = self.state();
            state.list.announced += 1;
            let Some(until) = state.list.pace.waits_until() else {
                drop(state);
                return self.tick();
            };
            // It is not queried yet. Watchers are notified when it can be.
            if state.list.pace.announcing || !self.is_watched() {
                return;
            }
            state.list.pace.announcing = true;
            until
        };
        self.tick_at(until, |state| state.list.pace.announcing = false);
    }

    /// Ends everything, without waiting.
    pub(super) fn end(&self) {
        self.with(|state| {
            state.phase = Phase::Closed;
            state.list.kept = None;
        });
        self.shutdown.cancel();
        self.tick();
    }
}

/// Resets the state if an attempt ends without a result: given up, or by a panic.
struct AttemptGuard<'a> {
    supervisor: &'a Supervisor,
    attempt: u64,
}

impl Drop for AttemptGuard<'_> {
    fn drop(&mut self) {
        self.supervisor.with(|state| {
            if matches!(state.phase, Phase::Connecting(current, _) if current == self.attempt) {
                state.phase = Phase::Idle;
            }
        });
    }
}

/// Resets the state when a connection is no longer supervised, whatever the reason.
struct ConnectionGuard<'a> {
    supervisor: &'a Supervisor,
    live: &'a LiveConnection,
}

impl Drop for ConnectionGuard<'_> {
    fn drop(&mut self) {
        self.supervisor.with(|state| {
            if matches!(&state.phase, Phase::Ready(ready) if ready.epoch() == self.live.epoch()) {
                state.phase = Phase::Idle;
            }
        });
        self.live.over().cancel();
    }
}

/// Receives a connection's signals for its supervisor, which it does not keep alive.
struct SupervisorSignals {
    supervisor: Weak<Supervisor>,
}

impl Signals for SupervisorSignals {
    fn tools_changed(&self) {
        if let Some(supervisor) = self.supervisor.upgrade() {
            supervisor.tools_changed();
        }
    }

    fn notice(&self, notice: ServerNotice) {
        if let Some(supervisor) = self.supervisor.upgrade() {
            // Skills are resources, and listed with the tools.
            if supervisor.settings().skills && matches!(notice, ServerNotice::ResourcesChanged) {
                supervisor.tools_changed();
            }
            supervisor.noticed(notice);
        }
    }

    fn client(&self) -> Option<Caller> {
        let supervisor = self.supervisor.upgrade()?;
        let client = supervisor.shared.only_client(&supervisor.whose)?;
        Some(Caller::new(client, Arc::clone(supervisor.server()), CancellationToken::new()))
    }

    fn redactor(&self) -> Redaction {
        let supervisor = self.supervisor.upgrade();
        supervisor.map(|supervisor| supervisor.settings().redactor.clone()).unwrap_or_default()
    }

    fn observer(&self) -> Option<WireObserver> {
        self.supervisor.upgrade()?.settings().observer.clone()
    }
}
