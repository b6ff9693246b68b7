use std::{sync::Arc, time::Duration};

use toolcrib_core::{
    Approver, ArtifactPort, Clarifier, Fallback, IntoTool, Middleware, Model, Policy, Reducer,
    ReliabilityAction, ReliabilityRule, Secrets, SessionStore, ToolProvider, UsageStore,
};
use toolcrib_engine::{BuildError, Engine, EngineBuilder, Limits, Personality, Plugin, Skills};

use crate::{
    agent::Agent,
    limits::{Budget, TurnLimits},
    models::Models,
    options::Settings,
    run::parts::{AgentParts, AgentStore, PersonalityModels, no_model},
};

/// Builds an [`Agent`] with its own engine.
#[derive(Default)]
#[must_use = "nothing is checked until `build`"]
pub struct AgentBuilder {
    engine: EngineBuilder,
    model: Option<Arc<dyn Model>>,
    fallback_models: Vec<Arc<dyn Model>>,
    personality_models: PersonalityModels,
    store: Option<AgentStore>,
    settings: Settings,
}

/// An invalid configuration of an agent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// No model is set.
    #[error("the agent has no model; call `.model(..)`")]
    NoModel,
    /// A run needs at least one iteration.
    #[error("`max_iterations` must be at least 1")]
    NoIterations,
    /// A personality names a model that the agent does not have.
    #[error("{0}")]
    PersonalityModel(String),
    /// A rule names a model that the agent does not have.
    #[error(
        "a reliability rule uses the fallback model `{name}`, which the agent does not have; it \
         has {}; add it with `.fallback_model(..)`",
        known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
    )]
    UnknownFallback {
        /// The name in the rule.
        name: Arc<str>,
        /// The names of the agent's models.
        known: Vec<Arc<str>>,
    },
    /// The engine cannot be built.
    #[error(transparent)]
    Engine(#[from] BuildError),
}

impl Agent {
    /// Starts an agent with its own engine.
    pub fn builder() -> AgentBuilder {
        AgentBuilder::default()
    }
}

impl AgentBuilder {
    /// Sets the model that the agent calls. Required. An [`Arc`] of one can be shared by several
    /// agents.
    pub fn model(mut self, model: impl Model) -> Self {
        self.model = Some(Arc::new(model));
        self
    }

    /// Adds a fallback model, used when a rule says so, after those added before:
    /// [`retry_other`](ReliabilityAction::RetryOther) uses the next,
    /// [`fallback`](ReliabilityAction::fallback_model) the one with a name. A run keeps the model
    /// that it switched to; the next run starts with the first. A personality that names its model
    /// uses no other.
    pub fn fallback_model(mut self, model: impl Model) -> Self {
        self.fallback_models.push(Arc::new(model));
        self
    }

    /// Adds rules for failed sources, models and tools; see [`EngineBuilder::reliability`].
    pub fn reliability(mut self, rules: impl IntoIterator<Item = ReliabilityRule>) -> Self {
        self.engine = self.engine.reliability(rules);
        self
    }

    /// Adds a [personality](Personality) that turns can have. One that names a model needs a
    /// [`personality_model`](Self::personality_model).
    pub fn personality(mut self, personality: Personality) -> Self {
        self.engine = self.engine.personality(personality);
        self
    }

    /// Sets the model of a [personality](toolcrib_engine::Personality::model) that names its own,
    /// by the personality's id. Required for every personality that names one.
    pub fn personality_model(
        mut self,
        personality: impl Into<Arc<str>>,
        model: impl Model,
    ) -> Self {
        let models = Models::new(Arc::new(model), Vec::new());
        self.personality_models.insert(personality.into(), models);
        self
    }

    /// Sets the system text, for personalities without their own.
    pub fn system(mut self, text: impl Into<Arc<str>>) -> Self {
        self.settings.system = text.into();
        self
    }

    /// Adds a tool to the agent.
    pub fn tool(mut self, tool: impl IntoTool) -> Self {
        self.engine = self.engine.tool(tool);
        self
    }

    /// Adds tools, in order.
    pub fn tools<T: IntoTool>(mut self, tools: impl IntoIterator<Item = T>) -> Self {
        self.engine = self.engine.tools(tools);
        self
    }

    /// Adds a provider after the tools and the providers added before; see
    /// [`EngineBuilder::provider`].
    pub fn provider(mut self, provider: Arc<dyn ToolProvider>) -> Self {
        self.engine = self.engine.provider(provider);
        self
    }

    /// Adds a plugin to the engine.
    pub fn plugin(mut self, plugin: impl Plugin + 'static) -> Self {
        self.engine = self.engine.plugin(plugin);
        self
    }

    /// Sets the skills that a model can activate.
    pub fn skills(mut self, skills: Skills) -> Self {
        self.engine = self.engine.skills(skills);
        self
    }

    /// Sets the policy that decides on tools and calls.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.engine = self.engine.policy(policy);
        self
    }

    /// Sets what decides on calls that a rule wants approved; see [`EngineBuilder::approver`].
    pub fn approver(mut self, approver: impl Approver) -> Self {
        self.engine = self.engine.approver(approver);
        self
    }

    /// Sets what answers the questions of tools; see [`EngineBuilder::clarifier`].
    pub fn clarifier(mut self, clarifier: impl Clarifier) -> Self {
        self.engine = self.engine.clarifier(clarifier);
        self
    }

    /// Adds a middleware; see [`EngineBuilder::middleware`].
    pub fn middleware(mut self, middleware: impl Middleware) -> Self {
        self.engine = self.engine.middleware(middleware);
        self
    }

    /// Adds a reducer of the results of one tool; see [`EngineBuilder::reducer`].
    pub fn reducer(mut self, reducer: impl Reducer) -> Self {
        self.engine = self.engine.reducer(reducer);
        self
    }

    /// Sets the source of the secrets that tools declare; see [`EngineBuilder::secrets`].
    pub fn secrets(mut self, secrets: impl Secrets) -> Self {
        self.engine = self.engine.secrets(secrets);
        self
    }

    /// Sets the store of large results; see [`EngineBuilder::artifacts`].
    pub fn artifacts(mut self, artifact_port: impl ArtifactPort) -> Self {
        self.engine = self.engine.artifacts(artifact_port);
        self
    }

    /// Sets the store of [sessions](Agent::session) and of the usage of all runs. Default: none; then
    /// a run that needs one has it in its [options](crate::RunOptions).
    pub fn store<S: SessionStore + UsageStore>(mut self, store: Arc<S>) -> Self {
        self.store = Some(AgentStore { sessions: Arc::clone(&store) as _, usage: store });
        self
    }

    /// Sets the limits of the calls of one iteration. Those of a whole run are
    /// [`turn_limits`](Self::turn_limits).
    pub fn limits(mut self, limits: Limits) -> Self {
        self.engine = self.engine.limits(limits);
        self
    }

    /// Changes further settings of the engine: a journal, a store of keys and values, deferred tools.
    pub fn engine(mut self, change: impl FnOnce(EngineBuilder) -> EngineBuilder) -> Self {
        self.engine = change(self.engine);
        self
    }

    /// Sets the maximum number of iterations of a run. Default: 10.
    pub fn max_iterations(mut self, iterations: u32) -> Self {
        self.settings.max_iterations = iterations;
        self
    }

    /// Sets the timeout of a run. Default: 10 minutes.
    pub fn turn_timeout(mut self, timeout: Duration) -> Self {
        self.settings.turn_timeout = timeout;
        self
    }

    /// Sets the limits of a run's calls and cost; see [`TurnLimits`] for the defaults.
    pub fn turn_limits(mut self, limits: TurnLimits) -> Self {
        self.settings.turn_limits = limits;
        self
    }

    /// Sets the budgets of all runs, which needs a [`store`](Self::store).
    pub fn budget(mut self, budget: Budget) -> Self {
        self.settings.budget = budget;
        self
    }

    /// Validates the configuration and builds the agent.
    ///
    /// # Errors
    /// [`AgentError`] with the required change.
    pub fn build(self) -> Result<Agent, AgentError> {
        let model = self.model.ok_or(AgentError::NoModel)?;
        if self.settings.max_iterations == 0 {
            return Err(AgentError::NoIterations);
        }
        let engine: Engine = self.engine.build()?;
        let own_models = self.personality_models;
        let lacks_model =
            |one: &&Arc<Personality>| one.model.is_some() && !own_models.contains_key(&one.id);
        if let Some(personality) = engine.personalities().find(lacks_model) {
            return Err(AgentError::PersonalityModel(no_model(personality)));
        }
        // Otherwise its runs would use a model that they must not use.
        let has_model =
            |id: &Arc<str>| engine.personalities().any(|one| one.id == *id && one.model.is_some());
        if let Some(id) = own_models.keys().filter(|id| !has_model(id)).min() {
            return Err(AgentError::PersonalityModel(format!(
                "a model was given for the personality `{id}`, but the engine has no personality \
                 of that id with its own model; declare one, and call `.model(..)` on it"
            )));
        }
        let models = Models::new(model, self.fallback_models);
        for rule in engine.reliability() {
            if let ReliabilityAction::Fallback(Fallback::Model(name)) = &rule.then
                && !models.names().contains(name)
            {
                let known = models.names().to_vec();
                return Err(AgentError::UnknownFallback { name: Arc::clone(name), known });
            }
        }
        Ok(Agent::of(AgentParts {
            engine,
            models,
            personality_models: own_models,
            settings: self.settings,
            store: self.store,
            conversations: Arc::default(),
        }))
    }
}

toolcrib_core::__internal::debug_fields!(AgentBuilder { engine, settings, .. });
