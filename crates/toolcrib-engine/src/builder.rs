//! How an engine is built, and how plugins come and go.

use std::{
    collections::{HashMap, hash_map::Entry},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use toolcrib_core::{
    AlreadyRegistered, Approver, Catalog, Events, IntoTool, InvalidTool, Journal, ListContext,
    Listing, Middleware, Policy, Reducer, ReliabilityRule, Scoper, Secrets, Spooler, Stage, Tool,
    ToolName, ToolProvider, UnknownWordError, panic_text,
};

use crate::{
    breaker::BreakerConfig,
    compose::Visibility,
    engine::Engine,
    parts::{EngineParts, Limits},
    personality::{DuplicatePersonality, Personalities, Personality},
    plugin::{self, Brought, NamedMiddleware, Plugin, PluginError},
    redactor::Redactor,
    reliability::{ReliabilitySettings, RetryBudget},
    skills::{
        ActiveSkills, DuplicateSkill, SKILL_TOOLS, SkillSource, SkillSources, Skills, SkillsFrom,
        SkillsProvider,
    },
    sources::{OnFailure, Source},
};

/// An engine that cannot be built as asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Two tools of the baseline have one name.
    #[error(
        "two tools are called `{}`: one comes from {}, the other from {}; rename one of them, or \
         offer one through a provider and declare `on_collision` on it",
        .0.name, .0.existing, .0.incoming
    )]
    AlreadyRegistered(AlreadyRegistered),
    /// A tool of the baseline declares secrets, and nothing resolves any.
    #[error(
        "tool `{tool}` ({origin}) declares the secret `{secret}`, and the engine has no source of \
         secrets; give it one with `EngineBuilder::secrets`"
    )]
    NoSecrets {
        /// The tool.
        tool: ToolName,
        /// Where it comes from.
        origin: Arc<str>,
        /// The first secret that it declares.
        secret: Arc<str>,
    },
    /// A tool of the baseline declares what only a scoper can hand out, and there is none.
    #[error(
        "tool `{tool}` ({origin}) declares the capability `{capability}`, and the engine has no \
         scoper to hand it out; give it one with `EngineBuilder::scoper`"
    )]
    NoScoper {
        /// The tool.
        tool: ToolName,
        /// Where it comes from.
        origin: Arc<str>,
        /// The capability: `network` or `process`.
        capability: &'static str,
    },
    /// A middleware has no name to be called by in events and messages.
    #[error("a middleware{} panicked when it was asked for its name: {problem}", of(.plugin))]
    MiddlewareName {
        /// The plugin that brought it.
        plugin: Option<Arc<str>>,
        /// What it said.
        problem: String,
    },
    /// A tool's schema cannot be enforced.
    #[error("the input schema of tool `{tool}` ({origin}) cannot be enforced: {problem}")]
    Schema {
        /// The tool.
        tool: ToolName,
        /// Where it comes from.
        origin: Arc<str>,
        /// What is wrong.
        problem: Arc<str>,
    },
    /// A tool takes a name that the engine needs.
    #[error("tool `{tool}` ({origin}) has a name that is reserved while there are skills")]
    ReservedName {
        /// The tool.
        tool: ToolName,
        /// Where it comes from.
        origin: Arc<str>,
    },
    /// A tool could not be made.
    #[error(transparent)]
    InvalidTool(#[from] InvalidTool),
    /// An old listing would stand in for what a gate decides anew each time.
    #[error(
        "source `{provider}` has a gate in it and `OnFailure::Stale`: what the gate let pass before \
         would be offered without asking it; put the gate outside, \
         `gated_tools(.., cached(..), ..)` with `CacheOptions::stale_on_error`, and take \
         `OnFailure::Fail` or `Omit`"
    )]
    StaleGate {
        /// The path of the source.
        provider: Arc<str>,
    },
    /// A plugin cannot be taken.
    #[error(transparent)]
    Plugin(#[from] PluginError),
    /// Two skills have one id.
    #[error(transparent)]
    DuplicateSkill(#[from] DuplicateSkill),
    /// Two personalities have one id.
    #[error(transparent)]
    DuplicatePersonality(#[from] DuplicatePersonality),
    /// Two reducers know one tool.
    #[error("two reducers are registered for tool `{0}`; only one can decide")]
    TwoReducers(String),
    /// The tools that artifacts are looked at with could not be made.
    #[error("the tools for artifacts cannot be made")]
    Artifacts(#[source] InvalidTool),
    /// The menu of skills could not be made a tool.
    #[error("the tools that stand for skills cannot be made")]
    ReadSkill(#[source] InvalidTool),
    /// A rule on failures has a condition that holds for none.
    #[error("reliability rule {rule}: {problem}")]
    ReliabilityRule {
        /// Its label, or its number from 1.
        rule: Arc<str>,
        /// The word that no failure has.
        problem: UnknownWordError,
    },
    /// A panic would end the process instead of the call.
    #[error(
        "this program is compiled with `panic = \"abort\"`, so a panicking tool would end it; \
         set `panic = \"unwind\"`"
    )]
    PanicAborts,
}

fn of(plugin: &Option<Arc<str>>) -> String {
    plugin.as_ref().map(|plugin| format!(" of plugin `{plugin}`")).unwrap_or_default()
}

/// Builds an [`Engine`].
#[derive(Default)]
#[must_use = "nothing is checked until `build`"]
pub struct EngineBuilder {
    tools: Vec<Result<Tool, InvalidTool>>,
    sources: Vec<Source>,
    skills: Skills,
    skill_source: Option<Arc<dyn SkillSource>>,
    personalities: Vec<Personality>,
    policy: Policy,
    plugins: Vec<Box<dyn Plugin>>,
    middleware: Vec<Arc<dyn Middleware>>,
    reducers: Vec<Arc<dyn Reducer>>,
    secrets: Option<Arc<dyn Secrets>>,
    approver: Option<Arc<dyn Approver>>,
    scoper: Option<Arc<dyn Scoper>>,
    journal: Option<Arc<dyn Journal>>,
    spooler: Option<Arc<dyn Spooler>>,
    redactor: Option<Redactor>,
    limits: Limits,
    reliability: ReliabilitySettings,
}

impl EngineBuilder {
    /// Adds a tool to the baseline registry.
    pub fn tool(mut self, tool: impl IntoTool) -> Self {
        self.tools.push(tool.into_tool());
        self
    }

    /// Adds tools to the baseline registry, in order.
    pub fn tools<T: IntoTool>(mut self, tools: impl IntoIterator<Item = T>) -> Self {
        self.tools.extend(tools.into_iter().map(IntoTool::into_tool));
        self
    }

    /// Adds a provider, behind the registry and those added before. When it fails, so does the
    /// iteration; see [`source`](Self::source).
    pub fn provider(self, provider: Arc<dyn ToolProvider>) -> Self {
        self.source(provider, OnFailure::Fail)
    }

    /// Adds a provider, behind the registry and those added before, and says what happens when it
    /// cannot be listed.
    pub fn source(mut self, provider: Arc<dyn ToolProvider>, on_failure: OnFailure) -> Self {
        self.sources.push(Source::new(provider, on_failure));
        self
    }

    /// Adds several providers as one source, which is listed by the first; its alternatives are asked
    /// only when a rule says [`retry_other`](toolcrib_core::Then::RetryOther).
    pub fn source_with_alternatives(
        mut self,
        provider: Arc<dyn ToolProvider>,
        alternatives: impl IntoIterator<Item = Arc<dyn ToolProvider>>,
        on_failure: OnFailure,
    ) -> Self {
        self.sources.push(Source::new(provider, on_failure).or(alternatives));
        self
    }

    /// Adds rules on what becomes of sources, models and tools that fail, behind those added before.
    /// Default: there are none, and what fails has failed.
    pub fn reliability(mut self, rules: impl IntoIterator<Item = ReliabilityRule>) -> Self {
        self.reliability.rules.extend(rules);
        self
    }

    /// Sets how many retries rules may make, over all turns.
    pub fn retry_budget(mut self, budget: RetryBudget) -> Self {
        self.reliability.budget = budget;
        self
    }

    /// Gives each source, model or tool a breaker per tenant that outlives calls and turns: after so
    /// many failures in a row it is not tried for a while. Default: there are none.
    ///
    /// A failure counts when it says that who was asked is not well: of a source all but those of a
    /// gate, what was cancelled, and `identity_missing`; of a model those of its network, its server
    /// and its rate limits; of a tool its panic, its `timeout`, `outcome_unknown` and
    /// `not_available`. Any other answer, a no included, ends the row of failures.
    ///
    /// At most 1024 are kept per stage; beyond that the one that is tried again next is forgotten.
    pub fn breaker(mut self, stage: Stage, config: BreakerConfig) -> Self {
        self.reliability.breakers.push((stage, config));
        self
    }

    /// Sets the skills.
    pub fn skills(mut self, skills: Skills) -> Self {
        self.skills = skills;
        self.skill_source = None;
        self
    }

    /// Sets where the skills come from, in place of [`skills`](Self::skills): each turn has them as
    /// they are when it begins. Those of plugins stand behind them.
    pub fn skill_source(mut self, source: impl SkillSource + 'static) -> Self {
        self.skill_source = Some(Arc::new(source));
        self
    }

    /// Adds a personality that turns may be begun with. One called `default` is there in any case, and
    /// reaches everything unless it is given here.
    pub fn personality(mut self, personality: Personality) -> Self {
        self.personalities.push(personality);
        self
    }

    /// Sets the policy. Default: everything is allowed.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Adds a plugin, behind everything that does not come from one.
    pub fn plugin(mut self, plugin: impl Plugin + 'static) -> Self {
        self.plugins.push(Box::new(plugin));
        self
    }

    /// Adds a middleware, behind those added before. The first is asked first.
    pub fn middleware(mut self, middleware: impl Middleware) -> Self {
        self.middleware.push(Arc::new(middleware));
        self
    }

    /// Sets where the secrets come from that tools declare. Default: there are none, and a tool of
    /// the baseline that declares one fails the build.
    pub fn secrets(mut self, secrets: impl Secrets) -> Self {
        self.secrets = Some(Arc::new(secrets));
        self
    }

    /// Adds a reducer; one per tool.
    pub fn reducer(mut self, reducer: impl Reducer) -> Self {
        self.reducers.push(Arc::new(reducer));
        self
    }

    /// Sets who decides on calls that a rule wants asked about. Default: whoever answers the
    /// [questions](crate::Questions) of the turn; where nobody does, they are denied.
    pub fn approver(mut self, approver: impl Approver) -> Self {
        self.approver = Some(Arc::new(approver));
        self
    }

    /// Sets what bounds a call before it runs, and hands out what its tool declares. Default: nothing
    /// does, and a tool of the baseline that declares network or process fails the build.
    pub fn scoper(mut self, scoper: impl Scoper) -> Self {
        self.scoper = Some(Arc::new(scoper));
        self
    }

    /// Sets where intents and outcomes are written down.
    pub fn journal(mut self, journal: impl Journal) -> Self {
        self.journal = Some(Arc::new(journal));
        self
    }

    /// Keeps what is cut of results as artifacts, which a model can read by tools that are offered
    /// behind all providers; and the whole of results whose tools [ask](toolcrib_core::Spooling) for
    /// that. A body finds what it can make artifacts with as a
    /// [handle](toolcrib_core::ToolContext::handle). Default: what is cut is lost.
    pub fn artifacts(mut self, spooler: impl Spooler) -> Self {
        self.spooler = Some(Arc::new(spooler));
        self
    }

    /// Sets the secrets to redact. Default: those of the
    /// [process's environment](Redactor::from_environment).
    pub fn redactor(mut self, redactor: Redactor) -> Self {
        self.redactor = Some(redactor);
        self
    }

    /// Sets the limits.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Checks everything and builds.
    ///
    /// # Errors
    /// [`BuildError`] says what to change.
    pub fn build(self) -> Result<Engine, BuildError> {
        if cfg!(panic = "abort") {
            return Err(BuildError::PanicAborts);
        }
        self.sources.iter().try_for_each(check_gates)?;
        for (position, rule) in self.reliability.rules.iter().enumerate() {
            rule.check().map_err(|problem| BuildError::ReliabilityRule {
                rule: rule.label.clone().unwrap_or_else(|| (position + 1).to_string().into()),
                problem,
            })?;
        }
        let redactor = self.redactor.unwrap_or_else(Redactor::from_environment);
        let skill_sources = SkillSources::of_host(match self.skill_source {
            Some(source) => SkillsFrom::Source(source),
            None => SkillsFrom::Fixed(Arc::new(self.skills)),
        });
        let mut parts = EngineParts {
            plugins: Vec::new(),
            registry: Arc::default(),
            sessions: Arc::default(),
            sources: self.sources.into_iter().map(Brought::by_host).collect(),
            visibility: Arc::new(Visibility {
                personalities: Personalities::new(self.personalities)?,
                policy: self.policy,
                redactor: redactor.clone(),
                skills: skill_sources.load()?,
            }),
            recent: Arc::default(),
            skill_sources: Arc::new(skill_sources),
            validators: Arc::default(),
            redact: Arc::new(redactor.clone()),
            redactor,
            middleware: Vec::new(),
            reducers: HashMap::new(),
            secrets: self.secrets,
            approver: self.approver,
            scoper: self.scoper,
            journal: self.journal,
            spooler: self.spooler,
            limits: self.limits,
            reliability: self.reliability.build(),
            events: Events::new(),
        };
        if let Some(spooler) = &parts.spooler {
            let tools = Arc::new(ArtifactTools(spooler.tools().map_err(BuildError::Artifacts)?));
            parts.sources.push(Brought::by_host(Source::new(tools, OnFailure::Fail)));
        }
        for tool in self.tools {
            parts.add_tool(tool?)?;
        }
        for reducer in self.reducers {
            parts.add_reducer(Brought::by_host(reducer))?;
        }
        for middleware in self.middleware {
            parts.add_middleware(Brought::by_host(middleware))?;
        }
        for plugin in self.plugins {
            parts.add_plugin(&*plugin)?;
        }
        parts.check()?;
        Ok(Engine(Arc::new(parts)))
    }
}

fn check_gates(source: &Source) -> Result<(), BuildError> {
    let gated = || source.in_turn().into_iter().find(|provider| provider.is_gated());
    match source.passes_over_gate().then(gated).flatten() {
        Some(gated) => Err(BuildError::StaleGate { provider: gated.path().into() }),
        None => Ok(()),
    }
}

impl EngineParts {
    fn add_tool(&mut self, tool: Tool) -> Result<(), BuildError> {
        self.validators.check(&tool).map_err(|problem| BuildError::Schema {
            tool: tool.name().clone(),
            origin: tool.comes_from().into(),
            problem,
        })?;
        Arc::make_mut(&mut self.registry).register(tool).map_err(BuildError::AlreadyRegistered)
    }

    fn add_middleware(&mut self, brought: Brought<Arc<dyn Middleware>>) -> Result<(), BuildError> {
        let of = of(&brought.plugin);
        let named = catch_unwind(AssertUnwindSafe(|| {
            Arc::from(format!("middleware `{}`{of}", brought.item.name()))
        }));
        let label = named.map_err(|panic| BuildError::MiddlewareName {
            plugin: brought.plugin.clone(),
            problem: panic_text(&*panic).to_owned(),
        })?;
        self.middleware.push(brought.with(|middleware| NamedMiddleware { middleware, label }));
        Ok(())
    }

    fn add_reducer(&mut self, reducer: Brought<Arc<dyn Reducer>>) -> Result<(), BuildError> {
        match self.reducers.entry(reducer.item.tool_name().to_owned()) {
            Entry::Occupied(taken) => Err(BuildError::TwoReducers(taken.key().clone())),
            Entry::Vacant(free) => {
                free.insert(reducer);
                Ok(())
            }
        }
    }

    pub(crate) fn add_plugin(&mut self, plugin: &dyn Plugin) -> Result<(), BuildError> {
        let (id, brings) = plugin::register(plugin)?;
        if self.plugins.contains(&id) {
            return Err(PluginError::Twice(id).into());
        }
        for tool in brings.tools {
            self.add_tool(tool?.with_plugin(&id))?;
        }
        for source in brings.sources {
            let source = source.of_plugin(&id);
            check_gates(&source)?;
            // What reads artifacts stays last.
            let last = self.sources.len() - usize::from(self.spooler.is_some());
            self.sources.insert(last, Brought::by(&id, source));
        }
        for reducer in brings.reducers {
            self.add_reducer(Brought::by(&id, reducer))?;
        }
        for middleware in brings.middleware {
            self.add_middleware(Brought::by(&id, middleware))?;
        }
        let mut skills = brings.skill_sources;
        if !brings.skills.is_empty() {
            skills.insert(0, SkillsFrom::Fixed(Arc::new(Skills::new(brings.skills)?)));
        }
        if !skills.is_empty() {
            self.skill_sources = Arc::new(self.skill_sources.with(&id, skills));
            self.set_skills(self.skill_sources.load()?);
        }
        self.plugins.push(id);
        Ok(())
    }

    /// Whether there was such a plugin.
    pub(crate) fn remove_plugin(&mut self, id: &str) -> bool {
        let before = self.plugins.len();
        self.plugins.retain(|plugin| **plugin != *id);
        if self.plugins.len() == before {
            return false;
        }
        Arc::make_mut(&mut self.registry).retain(|tool| tool.plugin() != Some(id));
        self.sources.retain(|source| source.stays_without(id));
        self.reducers.retain(|_, reducer| reducer.stays_without(id));
        self.middleware.retain(|middleware| middleware.stays_without(id));
        self.skill_sources = Arc::new(self.skill_sources.without(id));
        let skills = self.visibility.skills.without_plugin(id);
        self.set_skills(Arc::new(skills));
        true
    }

    /// These parts with other skills.
    pub(crate) fn with_skills(&self, skills: Arc<Skills>) -> Result<Self, BuildError> {
        // Not with the very sources: whoever asked them holds these parts.
        let mut parts = self.to_change();
        parts.set_skills(skills);
        parts.check()?;
        Ok(parts)
    }

    fn set_skills(&mut self, skills: Arc<Skills>) {
        self.visibility = Arc::new(Visibility { skills, ..Visibility::clone(&self.visibility) });
    }

    /// What can only be said of the whole.
    pub(crate) fn check(&self) -> Result<(), BuildError> {
        let skills = &self.visibility.skills;
        let reserved = SKILL_TOOLS.iter().filter(|_| !skills.is_empty());
        if let Some(tool) = reserved.filter_map(|name| self.registry.get(name)).next() {
            let origin = tool.comes_from().into();
            return Err(BuildError::ReservedName { tool: tool.name().clone(), origin });
        }
        for tool in self.registry.all() {
            self.check_capabilities(&tool)?;
        }
        // Made anew for each turn; made once here so that a turn cannot fail over it.
        let told: Vec<_> = skills.iter_shared().cloned().collect();
        SkillsProvider::new(&Arc::new(ActiveSkills::new(Arc::clone(skills))), &told, &told)
            .map_err(BuildError::ReadSkill)?;
        Ok(())
    }

    /// Whether there is what can hand out what a tool declares. A tool that comes later, from a
    /// provider or into a turn's registry, is refused when it is called.
    fn check_capabilities(&self, tool: &Tool) -> Result<(), BuildError> {
        let capabilities = tool.capabilities();
        if self.secrets.is_none()
            && let Some(secret) = capabilities.secrets.first()
        {
            return Err(BuildError::NoSecrets {
                tool: tool.name().clone(),
                origin: tool.comes_from().into(),
                secret: Arc::clone(secret),
            });
        }
        if self.scoper.is_none() && capabilities.need_scoper() {
            let is_network = !capabilities.network.is_empty();
            return Err(BuildError::NoScoper {
                tool: tool.name().clone(),
                origin: tool.comes_from().into(),
                capability: if is_network { "network" } else { "process" },
            });
        }
        Ok(())
    }
}

/// What looks at artifacts, as a provider.
struct ArtifactTools(Vec<Tool>);

impl ToolProvider for ArtifactTools {
    fn id(&self) -> &'static str {
        "artifacts"
    }

    fn list(self: Arc<Self>, _cx: &ListContext, mut into: Catalog) -> Listing {
        into.offer_all(&self.0);
        Listing::now(into)
    }
}

impl std::fmt::Debug for EngineBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EngineBuilder").field("tools", &self.tools.len()).finish_non_exhaustive()
    }
}
