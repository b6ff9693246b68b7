//! A turn: the state that is kept from one iteration to the next.

mod admission;
mod around;
mod attached;
mod context;
mod drive;
mod error;
mod executor;
mod iteration;
mod options;
mod skills;
mod state;

use std::{
    mem,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use toolcrib_core::{
    ActivatedBy, CancellationToken, Catalog, ClientHandle, ClientPort, DiscoveryErrorClass,
    EventKind, Identity, Lifetime, ListContext, SkillId, Tool, ToolCall, ToolProvider,
    ToolRegistry, ToolResult, TurnEvents, TurnSignals,
};
use uuid::Uuid;

use self::{
    admission::AdmittedCaller,
    skills::SkillTools,
    state::{RevealedMenu, TurnState},
};
pub use self::{
    around::MiddlewareError,
    context::IterationContext,
    drive::TurnEnd,
    error::TurnError,
    executor::{Executor, ExecutorError, ExecutorResult},
    iteration::Iteration,
    options::TurnOptions,
};
use crate::{
    compose::{Composition, Situation, compose},
    deferral::{CALL_TOOL, RevealedTools, SEARCH_TOOLS},
    parts::{
        EngineParts,
        sessions::{TurnSession, is_listed_of},
    },
    personality::Personality,
    pipe::CallCounter,
    policy::{halt::HaltSignal, person::Person},
    provider::{
        Notice, Source,
        discover::{DiscoveredTools, DiscoveryFailure, Needs, Pending, ask},
    },
    reliability::ReliabilityContext,
    secrets::Redactor,
    skills::{ActiveSkills, Snapshot},
};
pub use crate::{
    personality::{ChildAgents, ParentTurn},
    pipe::called_name::offered_name,
    policy::HaltedByRule,
};

/// One turn of a conversation: the state that iterations share. Dropping it ends its running work
/// and that of its iterations.
pub struct Turn {
    state: Arc<TurnState>,
    /// The number of iterations begun.
    iteration: u32,
    /// The tools that the last menu offered for its iteration only.
    expiring: Vec<Tool>,
    /// `read_skill` and the other skill tools, as the last provider.
    own: Option<SkillTools>,
    /// The skills that the caller activated, until the middleware has admitted them.
    unasked: Vec<SkillId>,
    /// Whether the session's data is dropped with the turn.
    ends_conversation: bool,
    session: TurnSession,
    composed: Option<Arc<Composition>>,
    source_timeout: Option<Duration>,
}

/// An iteration whose providers are being listed, from [`Turn::begin_for`]. Dropping it ends the
/// listings.
pub struct PendingIteration {
    turn: Arc<TurnState>,
    number: u32,
    skills: Snapshot,
    registry: Arc<ToolRegistry>,
    pending: Pending,
}

impl PendingIteration {
    /// The number of the iteration in the turn, from 1.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Waits for the providers.
    pub async fn listed(self) -> IterationListing {
        let Self { turn, number, skills, registry, pending } = self;
        IterationListing { turn, number, skills, registry, discovered: pending.answered().await }
    }
}

/// The listings of an iteration's providers, for [`Turn::offer`].
pub struct IterationListing {
    turn: Arc<TurnState>,
    number: u32,
    skills: Snapshot,
    registry: Arc<ToolRegistry>,
    discovered: Result<DiscoveredTools, DiscoveryFailure>,
}

/// The identity of a turn. A conversation without a name has another one.
fn identity(options: &TurnOptions, unnamed: impl FnOnce() -> Arc<str>) -> Identity {
    Identity {
        tenant: options.tenant.clone(),
        principal: options.principal.clone(),
        conversation: options.conversation.clone().unwrap_or_else(unnamed),
    }
}

/// The state of a turn that begins.
fn state(
    engine: Arc<EngineParts>,
    events: Arc<TurnEvents>,
    active_skills: Arc<ActiveSkills>,
    caller: AdmittedCaller,
    options: TurnOptions,
) -> TurnState {
    // A separate token: ending this turn must not cancel other uses of the caller's token.
    let cancellation =
        options.cancellation.map_or_else(CancellationToken::new, |token| token.child_token());
    let working_dir: Arc<Path> = options.working_dir.unwrap_or_else(|| PathBuf::from(".")).into();
    let person = || -> Option<Arc<dyn ClientPort>> {
        Some(Arc::new(Person {
            questions: options.questions.clone()?,
            events: Arc::clone(&events),
            redactor: engine.redactor.clone(),
            cancellation: cancellation.clone(),
            roots: Some(Arc::clone(&working_dir)),
            asked: Arc::default(),
        }))
    };
    let (rules, redactor) = (&engine.reliability, &engine.redactor);
    TurnState {
        client: options.client.map(|ClientHandle(client)| client).or_else(person),
        recovery: ReliabilityContext::new(rules, &events, redactor, &cancellation),
        idempotency_scope: options
            .idempotency_scope
            .unwrap_or_else(|| Arc::clone(events.turn_id())),
        roles: caller.roles.into(),
        roles_by_claims: caller.roles_by_claims.into(),
        events,
        active_skills,
        personality: caller.personality,
        cancellation,
        halting: HaltSignal::of(options.halted),
        working_dir,
        info: options.info.into(),
        attachments: options.attachments.into(),
        registry: OnceLock::new(),
        signals: TurnSignals::new(),
        call_counter: CallCounter::default(),
        revealed: Mutex::new(RevealedMenu::new(options.revealed)),
        tainted: options.tainted.into(),
        reveal: options.reveal.unwrap_or(engine.visibility.deferral.how()),
        offered: Mutex::default(),
        questions: options.questions,
        approver: options.approver,
        journal: options.journal,
        dry_run: options.dry_run,
        keeps_nothing: options.keeps_nothing,
        shares_conversation: options.shares_conversation,
        child_agents: options.child_agents,
        engine,
    }
}

impl Turn {
    /// Whether a turn could begin, without beginning one.
    pub(crate) fn check(engine: &EngineParts, options: &TurnOptions) -> Result<(), TurnError> {
        AdmittedCaller::by(engine, options, &identity(options, Arc::default)).map(drop)
    }

    /// Begins a turn with these parts. Its events report the problems in the current skills.
    pub(crate) fn begin(
        engine: Arc<EngineParts>,
        mut options: TurnOptions,
        problems: Vec<Arc<str>>,
    ) -> Result<Self, TurnError> {
        let ends_conversation =
            options.ends_conversation || options.keeps_nothing || options.conversation.is_none();
        let turn_id =
            options.turn_id.clone().unwrap_or_else(|| Uuid::now_v7().simple().to_string().into());
        let identity = Arc::new(identity(&options, || Arc::clone(&turn_id)));
        let caller = AdmittedCaller::by(&engine, &options, &identity)?;
        let active_skills = Arc::new(ActiveSkills::new(Arc::clone(&caller.skills)));
        active_skills
            .report(problems.into_iter().map(|problem| EventKind::SkillReloadFailed { problem }));
        for skill in &options.skills {
            active_skills.activate(skill, ActivatedBy::Caller);
        }
        let own = if caller.skills.is_empty() || options.without_read_skill {
            None
        } else {
            Some(SkillTools::new(&engine, &active_skills).map_err(TurnError::ReadSkill)?)
        };
        let mut session = engine.sessions.begin(&identity);
        session.tools.retain(|tool| engine.has_plugin_of(tool));
        let (iteration, source_timeout) = (options.iterations, options.source_timeout);
        let unasked = mem::take(&mut options.skills);
        let unasked = if options.skills_admitted { Vec::new() } else { unasked };
        let own_events = mem::take(&mut options.events);
        let events = TurnEvents::new(turn_id, identity, engine.events.clone(), own_events);
        let state = Arc::new(state(engine, Arc::new(events), active_skills, caller, options));
        for tool in &session.tools {
            state.registry().overwrite(tool.clone());
        }
        Ok(Self {
            state,
            iteration,
            expiring: Vec::new(),
            own,
            unasked,
            ends_conversation,
            session,
            composed: None,
            source_timeout,
        })
    }

    /// The id of the turn.
    pub fn turn_id(&self) -> &Arc<str> {
        self.state.events.turn_id()
    }

    /// The identity that the turn acts for.
    pub fn identity(&self) -> &Arc<Identity> {
        self.state.events.identity()
    }

    /// The personality: the maximum that the turn may reach.
    pub fn personality(&self) -> &Arc<Personality> {
        &self.state.personality
    }

    /// Whether it is a [dry run](TurnOptions::dry_run).
    pub fn is_dry_run(&self) -> bool {
        self.state.dry_run
    }

    /// The turn that gave this one its task, if it is that of a child agent.
    pub fn parent(&self) -> Option<&ParentTurn> {
        self.state.personality.parent.as_deref()
    }

    /// The writer of this turn's events.
    pub fn events(&self) -> &Arc<TurnEvents> {
        &self.state.events
    }

    pub(crate) fn redactor(&self) -> &Redactor {
        &self.state.engine.redactor
    }

    /// Whether the conversation has read content of unknown authors.
    pub fn is_tainted(&self) -> bool {
        self.state.is_tainted()
    }

    /// Restricts the conversation from the next iteration on, by what another process has noted of it: that it
    /// has read content of unknown authors, that a rule ended it, and the number of its iterations so far.
    pub fn restrict(&mut self, tainted: bool, halted: Option<HaltedByRule>, iterations: u32) {
        if tainted {
            self.state.taint();
        }
        halted.into_iter().for_each(|halted| self.state.halting.halt(halted));
        self.iteration = self.iteration.max(iterations);
    }

    /// The deferred tools that the conversation has found.
    pub fn revealed(&self) -> RevealedTools {
        self.state.revealed.lock().tools.clone()
    }

    /// Cancels everything that the turn does.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.state.cancellation
    }

    /// Lets the conversation continue after this turn, although the options say that it ends with it: for a
    /// turn that another turn of the conversation replaces.
    pub fn keep_conversation(&mut self) {
        self.ends_conversation = false;
    }

    /// The call at which a rule ended the turn, if any, in any iteration. From then on iterations
    /// still list the offered tools, and each of their calls that has not begun is refused with the
    /// code `denied`.
    pub fn halted(&self) -> Option<&HaltedByRule> {
        self.state.halting.get()
    }

    /// The engine's [rules](toolcrib_core::ReliabilityRule) and breakers, for your own loop's model
    /// calls. Failed requests of models that no rule is about are retried by a default rule.
    pub fn recovery(&self) -> &ReliabilityContext {
        &self.state.recovery
    }

    /// The number of iterations begun, with those [before](TurnOptions::iterations) the turn.
    pub fn iterations(&self) -> u32 {
        self.iteration
    }

    /// The registry of this turn's tools. Edits apply from the next iteration on, and end with the
    /// turn.
    pub fn registry(&self) -> &ToolRegistry {
        self.state.registry()
    }

    /// Begins the next iteration: lists the providers, composes the menu. Earlier iterations
    /// continue unchanged.
    ///
    /// # Errors
    /// [`TurnError`]; the iteration did not begin, and another may be tried.
    pub async fn iteration(&mut self) -> Result<Iteration, TurnError> {
        let beginning = self.begin_for(None).await?;
        self.offer(beginning.listed().await).await
    }

    /// Begins the next iteration for calls of one tool: it does not wait for sources that cannot
    /// have a tool of this name, and continues without those of them that do not answer at once. So
    /// its menu may be smaller than that of [`iteration`](Self::iteration), but the decisions on
    /// this tool are the same.
    ///
    /// # Errors
    /// Those of [`iteration`](Self::iteration).
    pub async fn iteration_for(&mut self, tool: &str) -> Result<Iteration, TurnError> {
        let beginning = self.begin_for(Some(tool)).await?;
        self.offer(beginning.listed().await).await
    }

    /// The first half of [`iteration`](Self::iteration), or of
    /// [`iteration_for`](Self::iteration_for) if a tool is named: lists the providers. The turn is
    /// not borrowed meanwhile, so a slow provider does not delay iterations that do not need it.
    /// [`offer`](Self::offer) is the other half. This function waits only for middleware that
    /// judges the skills a caller activated.
    ///
    /// # Errors
    /// Those of [`iteration`](Self::iteration).
    pub async fn begin_for(&mut self, tool: Option<&str>) -> Result<PendingIteration, TurnError> {
        if self.state.signals.signal().is_some() {
            return Err(TurnError::Over);
        }
        self.begin_iteration();
        self.ask(tool).await
    }

    /// Increments the iteration count.
    fn begin_iteration(&mut self) -> u32 {
        self.iteration += 1;
        self.iteration
    }

    /// Lists the providers, and composes the menu of the iteration that has begun.
    async fn list(&mut self) -> Result<Iteration, TurnError> {
        let beginning = self.ask(None).await?;
        self.offer(beginning.listed().await).await
    }

    /// Lists the providers of the iteration that has begun.
    async fn ask(&mut self, tool: Option<&str>) -> Result<PendingIteration, TurnError> {
        self.state.report_skills(self.iteration);
        if self.state.cancellation.is_cancelled() {
            return Err(TurnError::Cancelled);
        }
        self.ask_middleware().await?;
        self.expire();
        let skills = self.state.active_skills.snapshot();
        self.tell_of_skills(&skills);
        let cx = ListContext::new(Arc::clone(self.identity()), self.state.cancellation.clone())
            .with_iteration(self.iteration)
            .with_active_skills(Arc::clone(&skills.active))
            .with_client(self.state.ruled_client(&skills, self.iteration))
            .with_wait_limit(self.source_timeout);
        let registry = self.state.registry_copy();
        let has_tools = !registry.is_empty();
        let mut own = Source::needed(Arc::clone(&registry) as Arc<dyn ToolProvider>);
        own.is_baseline = Arc::ptr_eq(&registry, &self.state.engine.registry);
        let sources = has_tools
            .then_some(&own)
            .into_iter()
            .chain(self.state.engine.sources.iter().map(|source| &source.item))
            .chain(self.own.as_ref().map(SkillTools::source));
        let (events, redactor) = (&self.state.events, &self.state.engine.redactor);
        // These two reach the tools of all sources.
        let tool = tool.filter(|tool| ![SEARCH_TOOLS, CALL_TOOL].contains(tool));
        let recovery = &self.state.recovery;
        let needs = Needs { tool, within: self.source_timeout };
        let last = self.composed.as_ref().map(|composed| composed.catalog().clone());
        let last = last.unwrap_or_default();
        let pending = ask(sources, events, redactor, &cx, recovery, needs, last);
        let turn = Arc::clone(&self.state);
        Ok(PendingIteration { turn, number: self.iteration, skills, registry, pending })
    }

    /// Composes the menu of an iteration that has begun, from its providers' listings.
    ///
    /// # Errors
    /// Those of [`iteration`](Self::iteration), and [`TurnError::Over`] for an iteration of
    /// another turn.
    pub async fn offer(&mut self, listed: IterationListing) -> Result<Iteration, TurnError> {
        let IterationListing { turn, number, skills, registry, discovered } = listed;
        if !Arc::ptr_eq(&turn, &self.state) {
            return Err(TurnError::Over);
        }
        match discovered {
            Ok(discovered) => self.compose_offer(number, discovered, skills, registry).await,
            Err(DiscoveryFailure { error, exhausted }) => Err(match (exhausted, error.class()) {
                (Some(exhausted), _) => TurnError::Reliability { exhausted, source: error },
                (None, DiscoveryErrorClass::Cancelled) => TurnError::Cancelled,
                (None, _) => TurnError::Discovery(error),
            }),
        }
    }

    /// Removes tools with the lifetime of the iteration that offered them. A tool that was
    /// registered again meanwhile is a different one, and stays.
    fn expire(&mut self) {
        for tool in std::mem::take(&mut self.expiring) {
            if is_listed_of(self.registry(), &tool) {
                self.registry().unregister(tool.name());
            }
        }
    }

    /// Refuses calls when none may be made, such as at the iteration limit: each gets its result,
    /// `not_available`, as if no tool were offered.
    pub async fn refuse(&mut self, calls: Vec<ToolCall>) -> Vec<ToolResult> {
        Iteration::of_nothing(&self.state, self.iteration).execute(calls).await
    }

    /// Composes, or reuses a result that is still valid.
    async fn compose_offer(
        &mut self,
        number: u32,
        discovered: DiscoveredTools,
        skills: Snapshot,
        listed: Arc<ToolRegistry>,
    ) -> Result<Iteration, TurnError> {
        let began = Instant::now();
        let DiscoveredTools { catalog, notices } = discovered;
        let fresh_for = catalog.listing_info().fresh_for;
        let steps_at = skills.at();
        let situation = self.state.situation(skills, number);
        let visibility = &self.state.engine.visibility;
        let (composed, is_new) = match self.composed.take() {
            Some(composed) if composed.holds_for(visibility, &situation, &catalog, &notices) => {
                (composed, false)
            }
            _ => (self.compose(&situation, catalog, notices).await?, true),
        };
        let took = began.elapsed();
        let composed = Arc::clone(self.composed.insert(composed));
        let menu = self.state.with_revealed(&composed.menu);
        let registry = self.state.registry_now();
        if registry.has_ephemeral() {
            let brief = |tool: &&Tool| {
                tool.ephemeral() == Some(Lifetime::Iteration) && is_listed_of(registry, tool)
            };
            let offered = menu.stable().iter().chain(menu.deferred());
            self.expiring = offered.filter(brief).cloned().collect();
        }
        self.state.report_offered(number, &composed, &menu, is_new, took);
        let (state, steps) = (&self.state, steps_at);
        let mut iteration = Iteration::new(state, number, composed, menu, listed, situation, steps);
        iteration.sources_fresh_for = fresh_for;
        Ok(iteration)
    }

    /// Composes, or reuses an earlier turn's result for the same input.
    async fn compose(
        &mut self,
        situation: &Situation,
        catalog: Catalog,
        notices: Vec<Notice>,
    ) -> Result<Arc<Composition>, TurnError> {
        let EngineParts { visibility, validators, recent, .. } = &*self.state.engine;
        // A result with tools of this turn alone is useless to others, and is dropped with it.
        let is_own = self.own.is_some() || self.state.registry.get().is_some();
        let holds = |composed: &Arc<Composition>| {
            composed.holds_for(visibility, situation, &catalog, &notices)
        };
        if !is_own && let Some(composed) = recent.get(situation).filter(holds) {
            return Ok(composed);
        }
        if let Some(unknown) = validators.unknown(catalog.offered()) {
            tokio::select! {
                biased;
                () = self.state.cancellation.cancelled() => return Err(TurnError::Cancelled),
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
            engine.session_state.forget(self.identity());
            if !self.state.keeps_nothing
                && let Some(artifact_port) = &engine.artifact_port
            {
                // Here, although it blocks: after a turn no work of it continues.
                artifact_port.forget(self.identity());
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

toolcrib_core::__internal::debug_fields!(
    Turn,
    turn,
    turn_id = turn.turn_id(),
    iteration = turn.iteration,
    active_skills = turn.state.active_skills.now(),
    ..
);
