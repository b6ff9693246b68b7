//! Builds an engine; adds and removes plugins.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use toolcrib_core::{
    __internal::panic_text, AlreadyRegisteredError, Approver, ArtifactPort, BreakerConfig,
    CapabilityGranter, Catalog, Clarifier, Events, IntoTool, InvalidToolError, Journal, KvStore,
    ListContext, Middleware, Policy, Reducer, ReliabilityRule, Secrets, Stage, Tool, ToolName,
    ToolProvider, UnknownWordError, from_fn,
};

use super::Engine;
use crate::{
    compose::{Gates, Visibility},
    deferral::Deferral,
    middleware::reducers::{DuplicateReducerError, Reducers},
    parts::{EngineParts, Limits, skill_sources::SkillSources},
    personality::{DuplicatePersonalityError, Personalities, Personality},
    plugin::{self, Contribution, NamedMiddleware, Plugin, PluginError},
    provider::{OnFailure, Source},
    reliability::{ReliabilitySettings, RetryBudget},
    secrets::Redactor,
    skills::{
        ActiveSkills, InvalidSkillError, SKILL_TOOLS, SkillOrigin, SkillSource, Skills,
        SkillsProvider,
    },
};

/// An engine that cannot be built with these parts.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Two tools of the baseline registry have the same name.
    #[error(
        "two tools are called `{}`: one comes from {}, the other from {}; rename one of them, or \
         offer one through a provider and declare `on_collision` on it",
        .0.name, .0.existing, .0.incoming
    )]
    AlreadyRegistered(AlreadyRegisteredError),
    /// A tool of the baseline registry declares secrets, and the engine has no source of secrets.
    #[error(
        "tool `{tool}` ({origin}) declares the secret `{secret}`, and the engine has no source of \
         secrets; give it one with `EngineBuilder::secrets`"
    )]
    NoSecrets {
        /// The tool.
        tool: ToolName,
        /// The tool's origin.
        origin: Arc<str>,
        /// The first secret that it declares.
        secret: Arc<str>,
    },
    /// A tool of the baseline registry declares a capability that requires a capability granter, and
    /// there is none.
    #[error(
        "tool `{tool}` ({origin}) declares the capability `{capability}`, and the engine has no \
         capability granter; give it one with `EngineBuilder::capability_granter`"
    )]
    NoCapabilityGranter {
        /// The tool.
        tool: ToolName,
        /// The tool's origin.
        origin: Arc<str>,
        /// The capability: `network`, `process`, `files` or `storage`.
        capability: &'static str,
    },
    /// A tool of the baseline registry requires a store of keys and values, and there is none.
    #[error(
        "tool `{tool}` ({origin}) keeps keys and values, and the engine has no store of them; give it \
         one with `EngineBuilder::kv`"
    )]
    NoKv {
        /// The tool.
        tool: ToolName,
        /// The tool's origin.
        origin: Arc<str>,
    },
    /// A middleware has no name for events and messages.
    #[error("a middleware{} panicked in `name`: {problem}", of(.plugin))]
    MiddlewareName {
        /// The plugin that contains it.
        plugin: Option<Arc<str>>,
        /// The panic's message.
        problem: String,
    },
    /// A tool's schema cannot be enforced.
    #[error("the input schema of tool `{tool}` ({origin}) cannot be enforced: {problem}")]
    Schema {
        /// The tool.
        tool: ToolName,
        /// The tool's origin.
        origin: Arc<str>,
        /// The reason.
        problem: Arc<str>,
    },
    /// A tool has a name that the engine reserves.
    #[error("tool `{tool}` ({origin}) has a name that is reserved while there are skills")]
    ReservedName {
        /// The tool.
        tool: ToolName,
        /// The tool's origin.
        origin: Arc<str>,
    },
    /// A tool could not be built.
    #[error(transparent)]
    InvalidTool(#[from] InvalidToolError),
    /// A stale listing would replace a decision that a gate makes again each time.
    #[error(
        "source `{provider}` has a gate in it and `OnFailure::Stale`: tools that the gate passed before \
         would be offered without a new decision; put the gate outside, \
         `gated_tools(.., cached(..), ..)` with `CacheOptions::stale_on_error`, and take \
         `OnFailure::Fail` or `Omit`"
    )]
    StaleGate {
        /// The path of the source.
        provider: Arc<str>,
    },
    /// A plugin cannot be added.
    #[error(transparent)]
    Plugin(#[from] PluginError),
    /// Two skills have one id, or a skill is not valid.
    #[error(transparent)]
    InvalidSkill(#[from] InvalidSkillError),
    /// Two personalities have one id.
    #[error(transparent)]
    DuplicatePersonality(#[from] DuplicatePersonalityError),
    /// Two reducers apply to one tool.
    #[error(transparent)]
    DuplicateReducer(#[from] DuplicateReducerError),
    /// The tools that read artifacts could not be built.
    #[error("the tools for artifacts cannot be built")]
    Artifacts(#[source] InvalidToolError),
    /// The tools for skills could not be built.
    #[error("the tools for skills cannot be built")]
    ReadSkill(#[source] InvalidToolError),
    /// A reliability rule has a condition that can never be true.
    #[error("reliability rule {rule}: {problem}")]
    ReliabilityRule {
        /// The rule's label, or its number from 1.
        rule: Arc<str>,
        /// The word that matches no failure.
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

/// Builder of an [`Engine`], with its providers and rules.
#[derive(Default)]
#[must_use = "nothing is checked until `build`"]
pub struct EngineBuilder {
    tools: Vec<Result<Tool, InvalidToolError>>,
    sources: Vec<Source>,
    skills: Skills,
    skill_source: Option<Arc<dyn SkillSource>>,
    personalities: Vec<Personality>,
    policy: Policy,
    deferral: Deferral,
    plugins: Vec<Box<dyn Plugin>>,
    middleware: Vec<Arc<dyn Middleware>>,
    reducers: Vec<Arc<dyn Reducer>>,
    secrets: Option<Arc<dyn Secrets>>,
    approver: Option<Arc<dyn Approver>>,
    clarifier: Option<Arc<dyn Clarifier>>,
    capability_granter: Option<Arc<dyn CapabilityGranter>>,
    journal: Option<Arc<dyn Journal>>,
    kv: Option<Arc<dyn KvStore>>,
    artifact_port: Option<Arc<dyn ArtifactPort>>,
    redactor: Option<Redactor>,
    limits: Limits,
    refuses_text: bool,
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

    /// Adds a provider after the registry and the providers added before. If listing it fails, the
    /// iteration fails too; see [`provider_with`](Self::provider_with).
    pub fn provider(self, provider: Arc<dyn ToolProvider>) -> Self {
        self.provider_with(provider, OnFailure::Fail)
    }

    /// Adds a provider after the registry and the providers added before, with what happens when
    /// listing it fails.
    pub fn provider_with(mut self, provider: Arc<dyn ToolProvider>, on_failure: OnFailure) -> Self {
        self.sources.push(Source::new(provider, on_failure));
        self
    }

    /// Adds several providers as one source, which is listed by the first; its alternatives are
    /// used only when a rule says [`retry_other`](toolcrib_core::ReliabilityAction::RetryOther).
    pub fn provider_with_alternatives(
        mut self,
        provider: Arc<dyn ToolProvider>,
        alternatives: impl IntoIterator<Item = Arc<dyn ToolProvider>>,
        on_failure: OnFailure,
    ) -> Self {
        self.sources.push(Source::new(provider, on_failure).or(alternatives));
        self
    }

    /// Adds reliability rules for sources, models and tools that fail, after those added before.
    /// Without a matching rule only failed requests of models are retried, twice: after the statuses
    /// 408, 429, 500, 502, 503, 504 and 529, connections that are lost before the answer begins, and
    /// empty answers. A `Retry-After` above one minute ends them at once. A rule with
    /// [`FailFast`](toolcrib_core::ReliabilityAction::FailFast) for the stage `model` turns this off.
    pub fn reliability(mut self, rules: impl IntoIterator<Item = ReliabilityRule>) -> Self {
        self.reliability.rules.extend(rules);
        self
    }

    /// Sets the retry budget of the rules, shared by all turns.
    pub fn retry_budget(mut self, budget: RetryBudget) -> Self {
        self.reliability.budget = budget;
        self
    }

    /// Gives each source, model or tool of a stage a breaker per tenant that outlives calls and
    /// turns: after the configured number of consecutive failures it is not tried for a while.
    /// Default: no breakers.
    ///
    /// Only failures that indicate an outage count. Of a source: all except those of a gate,
    /// cancellation and `identity_missing`. Of a model: those of its network, its server and its
    /// rate limits. Of a tool: its panic, its `timeout`, `outcome_unknown` and `not_available`. Any
    /// other response, including a refusal, resets the failure count.
    ///
    /// At most 1024 are kept per stage; beyond that, the one that is tried again next is evicted.
    pub fn breaker(mut self, stage: Stage, config: BreakerConfig) -> Self {
        self.reliability.breakers.push((stage, config));
        self
    }

    /// Sets the skills that a model can activate.
    pub fn skills(mut self, skills: Skills) -> Self {
        self.skills = skills;
        self.skill_source = None;
        self
    }

    /// Sets a source of skills, instead of [`skills`](Self::skills): each turn uses the skills as
    /// they are when it begins. Skills of plugins follow them.
    pub fn skill_source(mut self, source: impl SkillSource + 'static) -> Self {
        self.skill_source = Some(Arc::new(source));
        self
    }

    /// Adds a personality for turns. A personality called `default` always exists; unless it is
    /// added here, it reaches everything.
    pub fn personality(mut self, personality: Personality) -> Self {
        self.personalities.push(personality);
        self
    }

    /// Sets which permitted tools are deferred: callable, and absent from the definitions that a
    /// model reads. While there are any, `search_tools` and `call_tool` are offered; tools of these
    /// names from other sources are withheld. Default: tools that
    /// [declare](toolcrib_core::ToolBuilder::deferred) it.
    pub fn defer(mut self, deferral: Deferral) -> Self {
        self.deferral = deferral;
        self
    }

    /// Sets the policy that decides on tools and calls. Default: everything is allowed.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Adds a plugin, after everything that does not come from one.
    pub fn plugin(mut self, plugin: impl Plugin + 'static) -> Self {
        self.plugins.push(Box::new(plugin));
        self
    }

    /// Adds a middleware, after those added before. The first added is called first.
    pub fn middleware(mut self, middleware: impl Middleware) -> Self {
        self.middleware.push(Arc::new(middleware));
        self
    }

    /// Sets the source of the secrets that tools declare. Default: none, and a tool of the baseline
    /// registry that declares one fails the build.
    pub fn secrets(mut self, secrets: impl Secrets) -> Self {
        self.secrets = Some(Arc::new(secrets));
        self
    }

    /// Adds a reducer; one per tool.
    pub fn reducer(mut self, reducer: impl Reducer) -> Self {
        self.reducers.push(Arc::new(reducer));
        self
    }

    /// Sets the approver for calls that a rule wants approved, in turns without
    /// [their own](crate::TurnOptions::approver). Default: the client that answers the
    /// turn's [questions](crate::Questions); without one, such calls are denied.
    pub fn approver(mut self, approver: impl Approver) -> Self {
        self.approver = Some(Arc::new(approver));
        self
    }

    /// Sets what answers the questions of tools to the person of a turn
    /// ([`ToolContext::clarifier`](toolcrib_core::ToolContext::clarifier)), if the approver does not.
    /// Default: the client that answers the turn's [questions](crate::Questions).
    pub fn clarifier(mut self, clarifier: impl Clarifier) -> Self {
        self.clarifier = Some(Arc::new(clarifier));
        self
    }

    /// Sets what limits a call before it runs and grants the capabilities that its tool declares.
    /// Default: none, and a tool of the baseline registry that declares network or process fails
    /// the build.
    pub fn capability_granter(mut self, capability_granter: impl CapabilityGranter) -> Self {
        self.capability_granter = Some(Arc::new(capability_granter));
        self
    }

    /// Sets the journal that records intents and outcomes.
    pub fn journal(mut self, journal: impl Journal) -> Self {
        self.journal = Some(Arc::new(journal));
        self
    }

    /// Sets the store in which tools keep keys and values, as far as they
    /// [declare](toolcrib_core::Capabilities::kv) it. Default: none, and a tool of the baseline
    /// registry that requires one fails the build.
    pub fn kv(mut self, store: impl KvStore) -> Self {
        self.kv = Some(Arc::new(store));
        self
    }

    /// Keeps the cut parts of results as artifacts, which a model can read with tools that are
    /// offered after all providers; and whole results whose tools
    /// [request](toolcrib_core::ArtifactPolicy) it. A tool's body makes artifacts with a
    /// [handle](toolcrib_core::ToolContext::handle). Default: cut parts are lost.
    pub fn artifacts(mut self, artifact_port: impl ArtifactPort) -> Self {
        self.artifact_port = Some(Arc::new(artifact_port));
        self
    }

    /// Sets the secrets to redact. Default: those of the [process's
    /// environment](Redactor::from_environment).
    pub fn redactor(mut self, redactor: Redactor) -> Self {
        self.redactor = Some(redactor);
        self
    }

    /// Sets the limits of each turn.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the time of a call whose tool sets none, as [`Limits::tool_timeout`] does.
    pub fn tool_timeout(mut self, timeout: Duration) -> Self {
        self.limits.tool_timeout = timeout;
        self
    }

    /// Sets whether a value that a model wrote as text, such as `"5"` for an integer, is read as the type
    /// that the tool's schema declares: only where the schema permits no string, and only a text that is
    /// exactly the JSON of a permitted type. Otherwise such a call is refused. Default: true.
    pub fn convert_text_arguments(mut self, converts: bool) -> Self {
        self.refuses_text = !converts;
        self
    }

    /// Checks everything and builds.
    ///
    /// # Errors
    /// [`BuildError`] with what to change.
    pub fn build(self) -> Result<Engine, BuildError> {
        self.check()?;
        let redactor = self.redactor.unwrap_or_else(Redactor::from_environment);
        let skill_sources = SkillSources::of_host(match self.skill_source {
            Some(source) => SkillOrigin::Source(source),
            None => SkillOrigin::Fixed(Arc::new(self.skills)),
        });
        let mut parts = EngineParts {
            plugins: Vec::new(),
            registry: Arc::default(),
            sessions: Arc::default(),
            session_state: Arc::default(),
            sources: self.sources.into_iter().map(Contribution::by_host).collect(),
            visibility: Arc::new(Visibility {
                gates: Gates::default(),
                personalities: Personalities::new(self.personalities)?,
                policy: self.policy,
                deferral: self.deferral,
                redactor: redactor.clone(),
                skills: skill_sources.load()?,
                requests: Arc::default(),
            }),
            recent: Arc::default(),
            indexes: Arc::default(),
            skill_sources: Arc::new(skill_sources),
            validators: Arc::default(),
            redact: Arc::new(redactor.clone()),
            redactor,
            middleware: Vec::new(),
            reducers: Reducers::default(),
            resources: Arc::default(),
            secrets: self.secrets,
            approver: self.approver,
            clarifier: self.clarifier,
            capability_granter: self.capability_granter,
            journal: self.journal,
            kv: self.kv,
            artifact_port: self.artifact_port,
            limits: self.limits,
            converts_text: !self.refuses_text,
            reliability: self.reliability.build(),
            events: Events::new(),
        };
        parts.add_artifact_tools()?;
        for tool in self.tools {
            parts.add_tool(tool?)?;
        }
        for reducer in self.reducers {
            parts.add_reducer(Contribution::by_host(reducer))?;
        }
        for middleware in self.middleware {
            parts.add_middleware(Contribution::by_host(middleware))?;
        }
        for plugin in self.plugins {
            parts.add_plugin(&*plugin)?;
        }
        parts.set_gates();
        parts.check()?;
        Ok(Engine(Arc::new(parts)))
    }

    /// Checks the parts that do not depend on others.
    fn check(&self) -> Result<(), BuildError> {
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
        Ok(())
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
    fn add_artifact_tools(&mut self) -> Result<(), BuildError> {
        let Some(artifact_port) = &self.artifact_port else { return Ok(()) };
        let tools = Catalog::from(artifact_port.tools().map_err(BuildError::Artifacts)?);
        let tools = from_fn("artifacts", move |_: &ListContext| tools.clone());
        self.sources.push(Contribution::by_host(Source::new(tools, OnFailure::Fail)));
        Ok(())
    }

    fn add_tool(&mut self, tool: Tool) -> Result<(), BuildError> {
        self.validators.check(&tool).map_err(|problem| BuildError::Schema {
            tool: tool.name().clone(),
            origin: tool.origin_label().into(),
            problem,
        })?;
        Arc::make_mut(&mut self.registry).register(tool).map_err(BuildError::AlreadyRegistered)
    }

    fn add_middleware(
        &mut self,
        brought: Contribution<Arc<dyn Middleware>>,
    ) -> Result<(), BuildError> {
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

    fn add_reducer(&mut self, reducer: Contribution<Arc<dyn Reducer>>) -> Result<(), BuildError> {
        self.reducers.add(reducer)?;
        Ok(())
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
            // The artifact tools stay last.
            let last = self.sources.len() - usize::from(self.artifact_port.is_some());
            self.sources.insert(last, Contribution::by(&id, source));
        }
        for reducer in brings.reducers {
            self.add_reducer(Contribution::by(&id, reducer))?;
        }
        for middleware in brings.middleware {
            self.add_middleware(Contribution::by(&id, middleware))?;
        }
        let mut skills = brings.skill_sources;
        if !brings.skills.is_empty() {
            skills.insert(0, SkillOrigin::Fixed(Arc::new(Skills::new(brings.skills)?)));
        }
        if !skills.is_empty() {
            self.skill_sources = Arc::new(self.skill_sources.with(&id, skills));
            self.set_skills(self.skill_sources.load()?);
        }
        self.plugins.push(id);
        self.set_gates();
        Ok(())
    }

    /// Returns whether the plugin existed.
    pub(crate) fn remove_plugin(&mut self, id: &str) -> bool {
        let before = self.plugins.len();
        self.plugins.retain(|plugin| **plugin != *id);
        if self.plugins.len() == before {
            return false;
        }
        Arc::make_mut(&mut self.registry).retain(|tool| tool.plugin() != Some(id));
        self.sources.retain(|source| source.stays_without(id));
        self.reducers = self.reducers.copy(|reducer| reducer.stays_without(id));
        self.middleware.retain(|middleware| middleware.stays_without(id));
        self.skill_sources = Arc::new(self.skill_sources.without(id));
        let skills = self.visibility.skills.without_plugin(id);
        self.set_skills(Arc::new(skills));
        self.set_gates();
        true
    }

    /// The parts with other skills.
    pub(crate) fn with_skills(&self, skills: Arc<Skills>) -> Result<Self, BuildError> {
        // Not with the same sources: the caller that queried them still has these parts.
        let mut parts = self.to_change();
        parts.set_skills(skills);
        parts.check()?;
        Ok(parts)
    }

    fn set_skills(&mut self, skills: Arc<Skills>) {
        self.visibility = Arc::new(Visibility { skills, ..Visibility::clone(&self.visibility) });
    }

    fn set_gates(&mut self) {
        let sources = self.sources.iter();
        let gates = Gates::among(sources.flat_map(|source| source.item.in_turn()));
        self.visibility = Arc::new(Visibility { gates, ..Visibility::clone(&self.visibility) });
    }

    /// Checks that need all parts.
    pub(crate) fn check(&self) -> Result<(), BuildError> {
        let skills = &self.visibility.skills;
        let reserved = SKILL_TOOLS.iter().filter(|_| !skills.is_empty());
        if let Some(tool) = reserved.filter_map(|name| self.registry.get(name)).next() {
            let origin = tool.origin_label().into();
            return Err(BuildError::ReservedName { tool: tool.name().clone(), origin });
        }
        for tool in self.registry.all() {
            self.check_capabilities(&tool)?;
        }
        // Built again for each turn; built once here so that a turn cannot fail because of it.
        let told: Vec<_> = skills.iter_shared().cloned().collect();
        SkillsProvider::new(&Arc::new(ActiveSkills::new(Arc::clone(skills))), &told, &told)
            .map_err(BuildError::ReadSkill)?;
        Ok(())
    }

    /// Whether the engine can grant the capabilities that a tool declares. A tool that comes later,
    /// from a provider or in a turn's registry, is refused when it is called.
    fn check_capabilities(&self, tool: &Tool) -> Result<(), BuildError> {
        let capabilities = tool.capabilities();
        if self.secrets.is_none()
            && let Some(secret) = capabilities.secrets.first()
        {
            return Err(BuildError::NoSecrets {
                tool: tool.name().clone(),
                origin: tool.origin_label().into(),
                secret: Arc::clone(secret),
            });
        }
        if self.kv.is_none() && !capabilities.kv.is_empty() {
            let origin = tool.origin_label().into();
            return Err(BuildError::NoKv { tool: tool.name().clone(), origin });
        }
        if self.capability_granter.is_none() && tool.requires_granter() {
            return Err(BuildError::NoCapabilityGranter {
                tool: tool.name().clone(),
                origin: tool.origin_label().into(),
                capability: match capabilities {
                    granted if !granted.network.is_empty() => "network",
                    granted if !granted.process.is_empty() => "process",
                    granted if granted.all_files().next().is_some() => "files",
                    _ => "storage",
                },
            });
        }
        Ok(())
    }
}

toolcrib_core::__internal::debug_fields!(EngineBuilder, builder, tools = builder.tools.len(), ..);
