//! A turn: what is kept from one iteration to the next.

mod admission;
mod around;
mod context;
mod drive;
mod executor;
mod iteration;
mod options;
mod skills;
mod state;

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, OnceLock},
    time::{Duration, Instant},
};

use toolcrib_core::{
    ActivatedBy, AlreadyRegistered, CancellationToken, Catalog, DiscoveryError,
    DiscoveryErrorClass, EventKind, FailedListing, Identity, Lifetime, ListContext, RunEvents,
    SkillId, Tool, ToolCall, ToolProvider, ToolRegistry, ToolResult, TurnSignals,
};
use uuid::Uuid;

use self::{admission::Admitted, skills::OwnTools, state::TurnState};
pub use self::{
    around::MiddlewareError,
    context::IterationContext,
    drive::{TurnEnd, TurnFailure},
    executor::{Executed, Executor, ExecutorError},
    iteration::Iteration,
    options::{TurnError, TurnOptions},
};
use crate::{
    compose::{Composed, Situation, compose},
    discover::{Discovered, Needs, Pending, Undiscovered, ask},
    halt::{Halt, Halting},
    parts::EngineParts,
    personality::Personality,
    pipe::CallsMade,
    redactor::Redactor,
    reliability::{Recovery, ReliabilityError},
    sessions::{TurnSession, is_in},
    skills::{ActiveSkills, Snapshot},
    sources::{Notice, Source},
};

/// An iteration that could not begin: nothing is offered, nothing can be called.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IterationError {
    /// A provider or a gate failed.
    #[error("the tools of this step could not be listed: {0}")]
    Discovery(#[source] DiscoveryError),
    /// A source failed, and rules gave it up.
    #[error("the tools of this step could not be listed: {0}")]
    Reliability(#[source] Box<ReliabilityError>),
    /// Two sources offer one name, and neither says who yields.
    #[error(transparent)]
    Collision(#[from] AlreadyRegistered),
    /// A middleware does not let a skill be active that no call activated.
    #[error(transparent)]
    Skill(TurnError),
    /// The turn was cancelled.
    #[error("the run was cancelled")]
    Cancelled,
    /// The turn was acked or nacked: it has no further iteration.
    #[error("the turn is over: its executor has signalled")]
    Over,
}

/// One turn of a conversation: the state that iterations share. Dropping it ends whatever it and
/// its iterations still do.
pub struct Turn {
    state: Arc<TurnState>,
    /// How many iterations have begun.
    iteration: u32,
    /// What the last menu offered for its iteration only.
    expiring: Vec<Tool>,
    /// `read_skill` and its like, as the last provider.
    own: Option<OwnTools>,
    /// The skills that the caller activated, until the middleware has let them pass.
    unasked: Vec<SkillId>,
    /// Whether what was kept of the conversation goes with the turn.
    ends_conversation: bool,
    session: TurnSession,
    composed: Option<Arc<Composed>>,
    spare: Catalog,
    source_timeout: Option<Duration>,
}

/// An iteration whose providers are asked: what [`Turn::begin_for`] gives. Dropping it ends the
/// listings.
pub struct Beginning {
    turn: Arc<TurnState>,
    number: u32,
    skills: Snapshot,
    registry: Arc<ToolRegistry>,
    pending: Pending,
}

impl Beginning {
    /// Which iteration of the turn it will be, from 1.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Waits for the providers.
    pub async fn listed(self) -> Listed {
        let Self { turn, number, skills, registry, pending } = self;
        Listed { turn, number, skills, registry, discovered: pending.answered().await }
    }
}

/// What the providers of an iteration came to, for [`Turn::offer`].
pub struct Listed {
    turn: Arc<TurnState>,
    number: u32,
    skills: Snapshot,
    registry: Arc<ToolRegistry>,
    discovered: Result<Discovered, Undiscovered>,
}

impl Turn {
    /// Whether a turn could begin, without beginning one.
    pub(crate) fn may_begin(engine: &EngineParts, options: &TurnOptions) -> Result<(), TurnError> {
        let identity = Identity {
            tenant: options.tenant.clone(),
            principal: options.principal.clone(),
            conversation: options.conversation.clone().unwrap_or_default(),
        };
        Admitted::by(engine, options, &identity).map(drop)
    }

    /// Begins a turn of these parts. What is wrong with the skills as they are now is told by its
    /// events.
    pub(crate) fn begin(
        engine: Arc<EngineParts>,
        options: TurnOptions,
        problems: Vec<Arc<str>>,
    ) -> Result<Self, TurnError> {
        let ends_conversation = options.ends_conversation || options.conversation.is_none();
        let run_id =
            options.run_id.clone().unwrap_or_else(|| Uuid::now_v7().simple().to_string().into());
        let identity = Arc::new(Identity {
            tenant: options.tenant.clone(),
            principal: options.principal.clone(),
            conversation: options.conversation.clone().unwrap_or_else(|| Arc::clone(&run_id)),
        });
        let Admitted { personality, skills, roles, roles_by_claims } =
            Admitted::by(&engine, &options, &identity)?;
        let active_skills = Arc::new(ActiveSkills::new(Arc::clone(&skills)));
        active_skills
            .report(problems.into_iter().map(|problem| EventKind::SkillReloadFailed { problem }));
        for skill in &options.skills {
            active_skills.activate(skill, ActivatedBy::Caller);
        }
        let own = if skills.is_empty() || options.without_read_skill {
            None
        } else {
            Some(OwnTools::new(&engine, &active_skills).map_err(TurnError::ReadSkill)?)
        };
        let events = RunEvents::new(run_id, identity, engine.events.clone(), options.events);
        let events = Arc::new(events);
        // A token of its own: ending this turn must not end what the caller shares it with.
        let cancellation =
            options.cancellation.map_or_else(CancellationToken::new, |token| token.child_token());
        let recovery = engine.reliability.as_ref().map(|reliability| {
            Recovery::new(reliability, &events, &engine.redactor, &cancellation)
        });
        let mut session = engine.sessions.begin(events.identity());
        session.tools.retain(|tool| engine.has_plugin_of(tool));
        let state = Arc::new(TurnState {
            roles: roles.into(),
            roles_by_claims: roles_by_claims.into(),
            events,
            active_skills,
            personality,
            cancellation,
            halting: Halting::default(),
            working_dir: options.working_dir.unwrap_or_else(|| PathBuf::from(".")).into(),
            registry: OnceLock::new(),
            signals: TurnSignals::new(),
            made: CallsMade::default(),
            offered: Mutex::default(),
            questions: options.questions,
            engine,
            recovery,
        });
        for tool in &session.tools {
            state.registry().overwrite(tool.clone());
        }
        Ok(Self {
            state,
            iteration: 0,
            expiring: Vec::new(),
            own,
            unasked: options.skills,
            ends_conversation,
            session,
            composed: None,
            spare: Catalog::new(),
            source_timeout: options.source_timeout,
        })
    }

    /// The run's id.
    pub fn run_id(&self) -> &Arc<str> {
        self.state.events.run_id()
    }

    /// On whose behalf.
    pub fn identity(&self) -> &Arc<Identity> {
        self.state.events.identity()
    }

    /// Who acts: what the turn may reach at most.
    pub fn personality(&self) -> &Arc<Personality> {
        &self.state.personality
    }

    /// The pen that writes this turn's events.
    pub fn events(&self) -> &Arc<RunEvents> {
        &self.state.events
    }

    pub(crate) fn redactor(&self) -> &Redactor {
        &self.state.engine.redactor
    }

    /// What ends everything that the turn does.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.state.cancellation
    }

    /// The call at which a rule ended the turn, once there was one, in whichever iteration. From then
    /// on iterations still list what is offered, and each call of theirs that has not begun is refused
    /// with the code `denied`.
    pub fn halted(&self) -> Option<&Halt> {
        self.state.halting.get()
    }

    /// The way to the engine's [rules](toolcrib_core::ReliabilityRule) and breakers, for what a loop of
    /// one's own does beside the engine: its model calls. `None` where there are neither.
    pub fn recovery(&self) -> Option<&Recovery> {
        self.state.recovery.as_ref()
    }

    /// How many iterations have begun.
    pub fn iterations(&self) -> u32 {
        self.iteration
    }

    /// This turn's tools. Edits count from the next iteration, and end with the turn.
    pub fn registry(&self) -> &ToolRegistry {
        self.state.registry()
    }

    /// Begins the next iteration: asks the providers, composes the menu. Iterations that began
    /// before it go on as they are.
    ///
    /// # Errors
    /// [`IterationError`]; the iteration is over before it began, and another may be tried.
    pub async fn iteration(&mut self) -> Result<Iteration, IterationError> {
        let beginning = self.begin_for(None).await?;
        self.offer(beginning.listed().await).await
    }

    /// Begins the next iteration for calls of one tool: it does not wait for sources that cannot have a
    /// tool of this name, and goes on without those of them that do not answer at once. So its menu may
    /// be smaller than that of [`iteration`](Self::iteration), but what is decided on this tool is the
    /// same.
    ///
    /// # Errors
    /// As [`iteration`](Self::iteration).
    pub async fn iteration_for(&mut self, tool: &str) -> Result<Iteration, IterationError> {
        let beginning = self.begin_for(Some(tool)).await?;
        self.offer(beginning.listed().await).await
    }

    /// The first half of [`iteration`](Self::iteration), or of
    /// [`iteration_for`](Self::iteration_for) if a tool is named: asks the providers. The turn is free
    /// while they are waited for, so that one that takes long does not hold up iterations that do not
    /// need it. [`offer`](Self::offer) is the other half. It waits only for middleware that judges
    /// the skills a caller activated.
    ///
    /// # Errors
    /// As [`iteration`](Self::iteration).
    pub async fn begin_for(&mut self, tool: Option<&str>) -> Result<Beginning, IterationError> {
        if self.state.signals.signal().is_some() {
            return Err(IterationError::Over);
        }
        self.begin_iteration();
        self.ask(tool).await
    }

    /// Counts one more iteration.
    fn begin_iteration(&mut self) -> u32 {
        self.iteration += 1;
        self.iteration
    }

    /// Asks the providers, and composes the menu of the iteration that has begun.
    async fn list(&mut self) -> Result<Iteration, IterationError> {
        let beginning = self.ask(None).await?;
        self.offer(beginning.listed().await).await
    }

    /// Asks the providers of the iteration that has begun.
    async fn ask(&mut self, tool: Option<&str>) -> Result<Beginning, IterationError> {
        self.state.report_skills(self.iteration);
        if self.state.cancellation.is_cancelled() {
            return Err(IterationError::Cancelled);
        }
        self.ask_middleware().await?;
        self.expire();
        let skills = self.state.active_skills.snapshot();
        self.tell_of_skills(&skills);
        let cx = ListContext::new(Arc::clone(self.identity()), self.state.cancellation.clone())
            .with_iteration(self.iteration)
            .with_active_skills(Arc::clone(&skills.active));
        let mut catalog = std::mem::take(&mut self.spare);
        catalog.clear();
        let registry = self.state.registry_copy();
        let has_tools = !registry.is_empty();
        let own = Source::needed(Arc::clone(&registry) as Arc<dyn ToolProvider>);
        let sources = has_tools
            .then_some(&own)
            .into_iter()
            .chain(self.state.engine.sources.iter().map(|source| &source.item))
            .chain(self.own.as_ref().map(OwnTools::source));
        let (events, redactor) = (&self.state.events, &self.state.engine.redactor);
        let recovery = self.state.recovery.as_ref();
        let needs = Needs { tool, within: self.source_timeout };
        let pending = ask(sources, events, redactor, &cx, recovery, needs, catalog);
        let turn = Arc::clone(&self.state);
        Ok(Beginning { turn, number: self.iteration, skills, registry, pending })
    }

    /// Composes the menu of an iteration that has begun, of what its providers listed.
    ///
    /// # Errors
    /// As [`iteration`](Self::iteration), and [`IterationError::Over`] for an iteration of another turn.
    pub async fn offer(&mut self, listed: Listed) -> Result<Iteration, IterationError> {
        let Listed { turn, number, skills, registry, discovered } = listed;
        if !Arc::ptr_eq(&turn, &self.state) {
            return Err(IterationError::Over);
        }
        match discovered {
            Ok(discovered) => self.compose_offer(number, discovered, skills, registry).await,
            Err(Undiscovered { failed: FailedListing { error, catalog }, gave_up }) => {
                self.spare = catalog;
                Err(match (gave_up, error.class()) {
                    (Some(gave_up), _) => {
                        IterationError::Reliability(Box::new(ReliabilityError::new(gave_up, error)))
                    }
                    (None, DiscoveryErrorClass::Cancelled) => IterationError::Cancelled,
                    (None, _) => IterationError::Discovery(error),
                })
            }
        }
    }

    /// Takes out what lived for the iteration that offered it. A tool that was registered anew
    /// meanwhile is another one, and stays.
    fn expire(&mut self) {
        for tool in std::mem::take(&mut self.expiring) {
            if is_in(self.registry(), &tool) {
                self.registry().unregister(tool.name());
            }
        }
    }

    /// Refuses calls that come when none may be made, such as at the iteration cap: each gets its
    /// one result, `not_available`, as if nothing were offered.
    pub async fn refuse(&mut self, calls: Vec<ToolCall>) -> Vec<ToolResult> {
        Iteration::of_nothing(&self.state, self.iteration).execute(calls).await
    }

    /// Composes, or uses again what still holds.
    async fn compose_offer(
        &mut self,
        number: u32,
        discovered: Discovered,
        skills: Snapshot,
        listed: Arc<ToolRegistry>,
    ) -> Result<Iteration, IterationError> {
        let began = Instant::now();
        let Discovered { mut catalog, notices } = discovered;
        self.state.active_skills.narrow(&skills.active, &skills.steps, &mut catalog);
        let steps_at = skills.at();
        let situation = self.state.situation(skills, number);
        let visibility = &self.state.engine.visibility;
        let (composed, is_new) = match self.composed.take() {
            Some(composed) if composed.holds_for(visibility, &situation, &catalog, &notices) => {
                self.spare = catalog;
                (composed, false)
            }
            old => {
                let old = old.and_then(Arc::into_inner);
                self.spare = old.map(Composed::into_catalog).unwrap_or_default();
                (self.compose(&situation, catalog, notices).await?, true)
            }
        };
        let took = began.elapsed();
        let composed = Arc::clone(self.composed.insert(composed));
        let registry = self.state.registry_now();
        if registry.has_ephemeral() {
            let brief = |tool: &&Tool| {
                tool.ephemeral() == Some(Lifetime::Iteration) && is_in(registry, tool)
            };
            self.expiring = composed.menu.tools().iter().filter(brief).cloned().collect();
        }
        self.state.report_offered(number, &composed, is_new, took);
        Ok(Iteration::new(&self.state, number, composed, listed, situation, steps_at))
    }

    /// Composes, or takes what an earlier turn composed of the same.
    async fn compose(
        &mut self,
        situation: &Situation,
        catalog: Catalog,
        notices: Vec<Notice>,
    ) -> Result<Arc<Composed>, IterationError> {
        let EngineParts { visibility, validators, recent, .. } = &*self.state.engine;
        // What is offered to this turn alone is of no use to others, and goes with it.
        let is_own = self.own.is_some() || self.state.registry.get().is_some();
        let holds = |composed: &Arc<Composed>| {
            composed.holds_for(visibility, situation, &catalog, &notices)
        };
        if !is_own && let Some(composed) = recent.get(visibility, situation).filter(holds) {
            self.spare = catalog;
            return Ok(composed);
        }
        if let Some(unknown) = validators.unknown(catalog.offered()) {
            tokio::select! {
                biased;
                () = self.state.cancellation.cancelled() => return Err(IterationError::Cancelled),
                () = validators.prepare(unknown) => {}
            }
        }
        let composed = Arc::new(compose(visibility, validators, situation, catalog, notices)?);
        if !is_own {
            recent.keep(&composed);
        }
        Ok(composed)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.state.cancellation.cancel();
        self.end();
        let engine = &self.state.engine;
        if self.ends_conversation {
            engine.sessions.forget(self.identity());
            if let Some(spooler) = &engine.spooler {
                // Here, though it blocks: after a run nothing of it goes on.
                spooler.forget(self.identity());
            }
        } else {
            if !self.is_nacked()
                && let Some(registry) = self.state.registry.get()
            {
                let baseline = &engine.registry;
                engine.sessions.take_over(self.identity(), &self.session, registry, baseline);
            }
            engine.sessions.leave(self.identity(), &self.session);
        }
    }
}

impl std::fmt::Debug for Turn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Turn")
            .field("run_id", self.run_id())
            .field("iteration", &self.iteration)
            .field("active_skills", &self.state.active_skills.now())
            .finish_non_exhaustive()
    }
}
