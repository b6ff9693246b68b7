//! Requests the list of a server's tools when it is needed.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, Weak},
    time::Duration,
};

use futures_util::FutureExt as _;
use rmcp::model::SKILLS_EXTENSION_ID;
use tokio::time::{Instant, timeout};
use toolcrib_core::{
    __internal::{Flight, panic_text},
    Audience, Lanes,
};

use super::{
    McpError,
    call::{METHOD_NOT_FOUND, RemoteCall},
    flight::Landing,
    listed::{Definitions, ServerListing},
    live::LiveConnection,
    pages::{Pages, PagesError, all_pages},
    skills::{ListedSkills, LoadSkill, SkillList},
    state::{ListResult, Phase, State},
    supervisor::Supervisor,
};
use crate::connection::{
    bounded,
    types::{RemoteTool, RequestError},
};

/// How long an iteration waits for a list that replaces an existing one.
const RENEWED_WITHIN: Duration = Duration::from_secs(1);

/// The state of the list, available without waiting.
pub(super) enum ListState {
    Fresh(Arc<ServerListing>),
    /// This list is outdated, and the server is being queried for another.
    Renewing(Arc<ServerListing>, Flight<Option<ListResult>>),
    /// It failed, and is not awaited until it succeeds.
    Failed(McpError),
    /// The server has to be queried.
    Ask,
}

impl Supervisor {
    /// The state for an iteration. It waits for a server that has never failed; for one that has
    /// failed, it gets the error at once, and the next attempt runs in the background.
    pub(super) fn known(self: &Arc<Self>) -> ListState {
        let state = self.state();
        if matches!(state.phase, Phase::Closed) {
            return ListState::Failed(self.closed_error());
        }
        if let Some(list) = state.fresh() {
            return ListState::Fresh(Arc::clone(list));
        }
        drop(state);
        self.with(|state| {
            let Some(error) = self.trouble(state) else {
                let Some(last) = state.renewable() else { return ListState::Ask };
                let flight = self.relist(state);
                state.list.kept = Some(flight.clone());
                return match state.list.is_slow {
                    true => ListState::Fresh(last),
                    false => ListState::Renewing(last, flight),
                };
            };
            if !state.connecting.blocks() && !state.list.failures.blocks() {
                self.relist_in_background(state);
            }
            ListState::Failed(error)
        })
    }

    /// The error that prevents a list.
    fn trouble(&self, state: &State) -> Option<McpError> {
        if state.connecting.trouble().is_some() {
            return Some(self.unreachable(state));
        }
        state.list.failures.trouble().map(|trouble| McpError::NotListed {
            server: Arc::clone(self.server()),
            problem: Arc::clone(&trouble.problem),
            failures: state.list.failures.count(),
            next_try_in: trouble.until.saturating_duration_since(Instant::now()),
        })
    }

    /// The list, from memory or from the server.
    pub(super) async fn list(self: &Arc<Self>) -> ListResult {
        loop {
            let flight = self.with(|state| {
                if matches!(state.phase, Phase::Closed) {
                    return Err(self.closed_error());
                }
                if let Some(list) = state.fresh() {
                    return Ok(Err(Arc::clone(list)));
                }
                if state.list.failures.blocks()
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
            match flight.await {
                Some(relisted) => return relisted,
                None => tokio::task::yield_now().await,
            }
        }
    }

    /// The same for an iteration. If changes are watched, the request continues without the
    /// iteration, so that a slow server is announced once it is connected.
    pub(super) async fn list_for_menu(self: &Arc<Self>) -> ListResult {
        if self.is_watched() {
            self.with(|state| {
                let is_closed = matches!(state.phase, Phase::Closed);
                if !is_closed && state.fresh().is_none() && !state.list.failures.blocks() {
                    self.relist_in_background(state);
                }
            });
        }
        self.list().await
    }

    /// The list being requested, or the previous one if that takes long: other servers' tools are
    /// waiting too. A server that was slow once is not awaited again until it is quick.
    pub(super) async fn renewed(
        self: &Arc<Self>,
        before: Arc<ServerListing>,
        flight: Flight<Option<ListResult>>,
    ) -> ListResult {
        match timeout(RENEWED_WITHIN, flight).await {
            Ok(Some(relisted)) => return relisted,
            Ok(None) => {}
            Err(_) => self.with(|state| state.list.is_slow = true),
        }
        Ok(before)
    }

    /// A new list from the server.
    pub(super) async fn list_anew(self: &Arc<Self>) -> ListResult {
        // One that is under way may have been answered before this was asked.
        let before = self.state().list.under_way();
        if let Some(before) = before {
            before.await;
        }
        loop {
            let flight = self.with(|state| match state.phase {
                Phase::Closed => Err(self.closed_error()),
                _ => Ok(self.relist(state)),
            })?;
            match flight.await {
                Some(relisted) => return relisted,
                None => tokio::task::yield_now().await,
            }
        }
    }

    /// Lists in the background, with or without a waiter.
    pub(super) fn relist_in_background(self: &Arc<Self>, state: &mut State) {
        state.list.kept = Some(self.relist(state));
    }

    /// Asks the server, once for all who wait.
    fn relist(self: &Arc<Self>, state: &mut State) -> Flight<Option<ListResult>> {
        if let Some(flight) = state.list.under_way() {
            return flight;
        }
        state.requests();
        state.list.flights.begin((), |number| {
            let (landing, outcome) = self.flight();
            let supervisor = Arc::clone(self);
            self.spawn(async move { supervisor.relisting(number, landing).await });
            outcome
        })
    }

    async fn relisting(self: &Arc<Self>, number: u64, landing: Landing<ListResult>) {
        // However often the connection is lost and reopened meanwhile.
        let allowed = self.settings().start_timeout.saturating_add(self.settings().list_timeout);
        let relisted = tokio::select! {
            biased;
            () = landing.abandoned() => return,
            relisted = timeout(allowed, self.ask()) => relisted.unwrap_or_else(|_| {
                let stray = self.stray();
                Err(self.not_listed(&format!("it did not answer within {allowed:?}{stray}")))
            }),
        };
        // The result comes first: a request in between finds it, or finds nothing in progress.
        landing.land(relisted);
        self.with(|state| {
            // One that was begun since then is kept for itself.
            if state.list.flights.is_current(&(), number) {
                state.list.kept = None;
            }
        });
    }

    async fn ask(self: &Arc<Self>) -> ListResult {
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
                    let skills = self.ask_skills(&live).await;
                    self.with(|state| state.list.is_slow = began.elapsed() > RENEWED_WITHIN);
                    return self.listed(&live, pages, skills, announced).await;
                }
                Ok(Ok(Err(PagesError::Request {
                    error:
                        RequestError::Lost(_)
                        | RequestError::Failed { .. }
                        | RequestError::SessionLost(_)
                        | RequestError::NotSent(_),
                    ..
                }))) if !lost_before => {
                    lost_before = true;
                    live.settled().await;
                    continue;
                }
                // A server without tools: it may offer something else.
                Ok(Ok(Err(PagesError::Request {
                    error: RequestError::Refused { code: METHOD_NOT_FOUND, .. },
                    ..
                }))) if live.connection().server().capabilities.tools.is_none() => {
                    let pages = Pages { tools: Vec::new(), bytes: 0, ttl: None, warning: None };
                    let skills = self.ask_skills(&live).await;
                    return self.listed(&live, pages, skills, announced).await;
                }
                Ok(Ok(Err(error))) => error.to_string(),
                Ok(Err(panic)) => format!("what asks it panicked: {}", panic_text(&*panic)),
                Err(_) => {
                    format!("it did not answer within {allowed:?}{}", live.connection().stray())
                }
            };
            return Err(self.not_listed(&problem));
        }
    }

    /// The server's skills, if they are wanted. Their failure leaves its tools.
    async fn ask_skills(self: &Arc<Self>, live: &LiveConnection) -> Option<ListedSkills> {
        if !self.settings().skills {
            return None;
        }
        let extensions = live.connection().server().capabilities.extensions.as_ref();
        if !extensions.is_some_and(|all| all.contains_key(SKILLS_EXTENSION_ID)) {
            let problem =
                format!("the server does not declare the extension `{SKILLS_EXTENSION_ID}`");
            return Some(ListedSkills { entries: Err(problem), ttl: None });
        }
        let allowed = self.settings().list_timeout;
        let asked = timeout(allowed, self.all("skills/list", "skills")).await;
        let asked = match asked {
            Ok(asked) => asked.map_err(|error| error.message),
            Err(_) => {
                Err(format!("it did not answer within {allowed:?}{}", live.connection().stray()))
            }
        };
        Some(match asked {
            Ok((entries, ttl)) => ListedSkills { entries: Ok(entries), ttl },
            Err(problem) => {
                let problem = bounded(&problem, &self.settings().redactor);
                ListedSkills {
                    entries: Err(format!("its skills cannot be listed: {problem}")),
                    ttl: None,
                }
            }
        })
    }

    fn not_listed(self: &Arc<Self>, problem: &str) -> McpError {
        let problem: Arc<str> = bounded(problem, &self.settings().redactor).into();
        self.with(|state| {
            state.last_error = Some(Arc::clone(&problem));
            state.list.failures.failed(problem);
            self.failing(state.list.failures.trouble().map(|trouble| trouble.until));
            self.trouble(state).unwrap_or_else(|| self.closed_error())
        })
    }

    /// Takes a list in, and says so if it is another. When it was asked for, changes had been
    /// `announced` that many times.
    async fn listed(
        self: &Arc<Self>,
        live: &LiveConnection,
        pages: Pages,
        skills: Option<ListedSkills>,
        announced: u64,
    ) -> ListResult {
        let (this, Pages { tools, bytes, ttl, warning }) = (Arc::clone(self), pages);
        let of_skills = skills.as_ref().and_then(|skills| skills.ttl);
        let stated = match skills {
            None => ttl,
            Some(_) => ttl.zip(of_skills).map(|(tools, skills)| tools.min(skills)),
        };
        let made = move || this.made(tools, skills);
        let made = Lanes::of_process().run_large(bytes, self.server(), made).await;
        let made = made.map_err(|problem| self.not_listed(&problem))?;
        let (listed, changed) = made.map_err(|problem| self.not_listed(&problem))?;
        let recovered = self.with(|state| {
            let list = &mut state.list;
            list.warning = warning;
            list.last = Some(Arc::clone(&listed));
            // After a reconnect it may be offered again to those whom it was taken from.
            let is_new = std::mem::replace(&mut list.epoch, live.epoch()) != live.epoch();
            let ttl = [ttl, of_skills].into_iter().flatten().filter(|ttl| !ttl.is_zero()).min();
            list.expires = ttl.and_then(|ttl| Instant::now().checked_add(ttl));
            list.stated = stated.map(|ttl| (Instant::now(), ttl));
            if std::mem::replace(&mut list.heard, announced) != announced {
                list.pace.asked(!changed);
            }
            let recovered = is_new || list.failures.trouble().is_some();
            list.failures.healthy();
            recovered
        });
        if changed || recovered {
            self.tick();
        }
        Ok(listed)
    }

    /// A list, and whether it is another than the one before.
    fn made(
        self: &Arc<Self>,
        tools: Vec<RemoteTool>,
        skills: Option<ListedSkills>,
    ) -> Result<(Arc<ServerListing>, bool), Arc<str>> {
        let before = self.state().list.last.clone();
        let audience = match self.settings().trusted {
            true => Audience::User,
            false => Audience::Dashboard,
        };
        let definitions =
            Definitions { server: self.name(), origin: self.origin(), settings: self.settings() };
        let listed =
            definitions.make(tools, before.as_deref(), |remote, annotations| RemoteCall {
                sessions: Weak::clone(self.sessions()),
                server: Arc::clone(self.server()),
                // What has no name is never called.
                tool: remote.name.as_deref().unwrap_or_default().into(),
                marked: remote.marked.clone(),
                read_only: annotations.read_only,
                repeatable: annotations.read_only || annotations.idempotent,
                audience,
            })?;
        let skills = skills.map(|skills| {
            let body = |skills| LoadSkill {
                sessions: Weak::clone(self.sessions()),
                server: Arc::clone(self.server()),
                skills,
            };
            let before = before.as_ref().and_then(|before| before.skills());
            SkillList::new(&definitions, skills, before, listed.catalog(), body)
        });
        let listed = ServerListing::new(listed, skills.transpose()?, &definitions);
        Ok(match before {
            Some(before) if before.same(&listed) => (before, false),
            _ => (Arc::new(listed), true),
        })
    }
}
