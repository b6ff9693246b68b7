//! Gets the list of a server's tools, when it is needed.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, Weak},
    time::Duration,
};

use futures_util::FutureExt as _;
use tokio::time::{Instant, timeout};
use toolcrib_core::{Audience, panic_text};

use super::{
    McpError,
    call::RemoteCall,
    flight::{Flight, InFlight, Landing},
    listed::{Definitions, Listed},
    live::Live,
    pages::{Pages, PagesError, all_pages},
    state::{Phase, Relisted, State},
    supervisor::Supervisor,
};
use crate::connection::RequestError;

/// How long an iteration waits for a list that is to take the place of one that it has.
const RENEWED_WITHIN: Duration = Duration::from_secs(1);

/// What can be said of the list without waiting.
pub(super) enum Known {
    Fresh(Arc<Listed>),
    /// This one holds no longer, and the server is being asked for another.
    Renewing(Arc<Listed>, Flight<Relisted>),
    /// It failed, and nobody waits for it until it is better.
    Failed(McpError),
    /// The server has to be asked.
    Ask,
}

impl Supervisor {
    /// What an iteration is told. It waits for a server that has never failed; of one that has, it
    /// is told so at once, and the next try goes on without it.
    pub(super) fn known(self: &Arc<Self>) -> Known {
        let state = self.state();
        if matches!(state.phase, Phase::Closed) {
            return Known::Failed(self.closed_error());
        }
        if let Some(list) = state.fresh() {
            return Known::Fresh(Arc::clone(list));
        }
        drop(state);
        self.with(|state| {
            let Some(error) = self.trouble(state) else {
                let Some(last) = state.renewable() else { return Known::Ask };
                let flight = self.relist_in_background(state);
                return match state.list.is_slow {
                    true => Known::Fresh(last),
                    false => Known::Renewing(last, flight),
                };
            };
            if !state.connecting.blocks() && !state.list.backoff.blocks() {
                self.relist_in_background(state);
            }
            Known::Failed(error)
        })
    }

    /// What stands between us and the list.
    fn trouble(&self, state: &State) -> Option<McpError> {
        if state.connecting.trouble().is_some() {
            return Some(self.unreachable(state));
        }
        state.list.backoff.trouble().map(|trouble| McpError::NotListed {
            server: Arc::clone(self.server()),
            problem: Arc::clone(&trouble.problem),
            failures: state.list.backoff.failures(),
            next_try_in: trouble.until.saturating_duration_since(Instant::now()),
        })
    }

    /// The list, as it is known or as the server gives it.
    pub(super) async fn list(self: &Arc<Self>) -> Relisted {
        loop {
            let flight = self.with(|state| {
                if matches!(state.phase, Phase::Closed) {
                    return Err(self.closed_error());
                }
                if let Some(list) = state.fresh() {
                    return Ok(Err(Arc::clone(list)));
                }
                if state.list.backoff.blocks()
                    && let Some(error) = self.trouble(state)
                {
                    return Err(error);
                }
                Ok(Ok(self.relist(state)))
            })?;
            let flight = match flight {
                Ok(flight) => flight,
                Err(list) => return Ok(list),
            };
            match flight.landed().await {
                Some(relisted) => return relisted,
                None => tokio::task::yield_now().await,
            }
        }
    }

    /// The same for an iteration. Where changes are watched it goes on although the iteration no longer
    /// waits, so that a slow server is announced once it is there.
    pub(super) async fn list_for_menu(self: &Arc<Self>) -> Relisted {
        if self.is_watched() {
            self.with(|state| {
                let is_closed = matches!(state.phase, Phase::Closed);
                if !is_closed && state.fresh().is_none() && !state.list.backoff.blocks() {
                    self.relist_in_background(state);
                }
            });
        }
        self.list().await
    }

    /// The list that a server is being asked for, or the one before if that takes long: other servers'
    /// tools are waited for too. Of a server that took long once, nobody waits again until it is
    /// quick.
    pub(super) async fn renewed(
        self: &Arc<Self>,
        before: Arc<Listed>,
        flight: Flight<Relisted>,
    ) -> Relisted {
        match timeout(RENEWED_WITHIN, flight.landed()).await {
            Ok(Some(relisted)) => return relisted,
            Ok(None) => {}
            Err(_) => self.with(|state| state.list.is_slow = true),
        }
        Ok(before)
    }

    /// The list as the server gives it now.
    pub(super) async fn list_anew(self: &Arc<Self>) -> Relisted {
        // One that is under way may have been answered before this was asked.
        let before = self.state().list.under_way.as_ref().and_then(InFlight::join);
        if let Some(before) = before {
            before.landed().await;
        }
        loop {
            let flight = self.with(|state| match state.phase {
                Phase::Closed => Err(self.closed_error()),
                _ => Ok(self.relist(state)),
            })?;
            match flight.landed().await {
                Some(relisted) => return relisted,
                None => tokio::task::yield_now().await,
            }
        }
    }

    /// Lists in the background, whether somebody waits or not.
    pub(super) fn relist_in_background(self: &Arc<Self>, state: &mut State) -> Flight<Relisted> {
        let flight = self.relist(state);
        state.list.kept = Some(flight.keep());
        flight
    }

    /// Asks the server, once for all who wait.
    fn relist(self: &Arc<Self>, state: &mut State) -> Flight<Relisted> {
        let under_way = state.list.under_way.as_ref();
        if let Some(flight) = under_way.and_then(InFlight::join) {
            return flight;
        }
        let (landing, flight) = self.flight();
        state.list.under_way = Some(flight.remember());
        state.list.listings += 1;
        let (supervisor, number) = (Arc::clone(self), state.list.listings);
        self.spawn(async move { supervisor.relisting(number, landing).await });
        flight
    }

    async fn relisting(self: &Arc<Self>, number: u64, landing: Landing<Relisted>) {
        // However often it is lost and found meanwhile.
        let allowed = self.settings().start_timeout.saturating_add(self.settings().list_timeout);
        let relisted = tokio::select! {
            biased;
            () = landing.abandoned() => return,
            relisted = timeout(allowed, self.ask()) => relisted.unwrap_or_else(|_| {
                Err(self.not_listed(format!("it did not answer within {allowed:?}")))
            }),
        };
        // The outcome comes first: who asks in between finds it, or finds nothing under way.
        landing.land(relisted);
        self.with(|state| {
            // One that was begun since then is kept for itself.
            if state.list.listings == number {
                state.list.kept = None;
            }
        });
    }

    async fn ask(self: &Arc<Self>) -> Relisted {
        let mut lost_before = false;
        loop {
            let live = self.connection().await?;
            let (announced, began) = (self.state().list.announced, Instant::now());
            let allowed = self.settings().list_timeout;
            let asked = AssertUnwindSafe(all_pages(live.connection())).catch_unwind();
            let asked = timeout(allowed, asked).await;
            match &asked {
                Err(_) => live.does_not_answer(self.settings().breaker.failures),
                Ok(_) => live.answers(),
            }
            let problem = match asked {
                Ok(Ok(Ok(pages))) => {
                    self.with(|state| state.list.is_slow = began.elapsed() > RENEWED_WITHIN);
                    return Ok(self.listed(&live, pages, announced));
                }
                Ok(Ok(Err(PagesError::Request {
                    error: RequestError::Lost(_) | RequestError::NotSent(_),
                    ..
                }))) if !lost_before => {
                    lost_before = true;
                    live.settled().await;
                    continue;
                }
                Ok(Ok(Err(error))) => error.to_string(),
                Ok(Err(panic)) => format!("what asks it panicked: {}", panic_text(&*panic)),
                Err(_) => format!("it did not answer within {allowed:?}"),
            };
            return Err(self.not_listed(problem));
        }
    }

    fn not_listed(self: &Arc<Self>, problem: String) -> McpError {
        self.with(|state| {
            let problem: Arc<str> = problem.into();
            state.last_error = Some(Arc::clone(&problem));
            state.list.backoff.failed(problem);
            self.failing(state.list.backoff.trouble().map(|trouble| trouble.until));
            self.trouble(state).unwrap_or_else(|| self.closed_error())
        })
    }

    /// Takes a list in, and says so if it is another. When it was asked for, changes had been
    /// `announced` that many times.
    fn listed(self: &Arc<Self>, live: &Live, pages: Pages, announced: u64) -> Arc<Listed> {
        let before = self.state().list.last.clone();
        let audience = match self.settings().trusted {
            true => Audience::User,
            false => Audience::Dashboard,
        };
        let definitions =
            Definitions { server: self.name(), origin: self.origin(), settings: self.settings() };
        let listed =
            definitions.make(pages.tools, before.as_deref(), |remote, annotations| RemoteCall {
                sessions: Weak::clone(self.sessions()),
                server: Arc::clone(self.server()),
                // What has no name is never called.
                tool: remote.name.as_deref().unwrap_or_default().into(),
                read_only: annotations.read_only,
                audience,
            });
        let (listed, changed) = match before {
            Some(before) if before.same(&listed) => (before, false),
            _ => (Arc::new(listed), true),
        };
        let recovered = self.with(|state| {
            let list = &mut state.list;
            list.last = Some(Arc::clone(&listed));
            // After a reconnect it may be offered again to those whom it was taken from.
            let is_new = std::mem::replace(&mut list.epoch, live.epoch()) != live.epoch();
            let ttl = pages.ttl.filter(|ttl| !ttl.is_zero());
            list.expires = ttl.and_then(|ttl| Instant::now().checked_add(ttl));
            if std::mem::replace(&mut list.heard, announced) != announced {
                list.pace.asked(!changed);
            }
            let recovered = is_new || list.backoff.trouble().is_some();
            list.backoff.healthy();
            recovered
        });
        if changed || recovered {
            self.tick();
        }
        listed
    }
}
