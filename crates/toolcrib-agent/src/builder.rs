use std::{sync::Arc, time::Duration};

use toolcrib_core::{IntoTool, Model, Policy, ToolProvider};
use toolcrib_engine::{BuildError, Engine, EngineBuilder, Limits, Plugin, Skills};

use crate::{agent::Agent, options::Settings};

/// Builds an [`Agent`] with an engine of its own.
#[derive(Default)]
#[must_use = "nothing is checked until `build`"]
pub struct AgentBuilder {
    engine: EngineBuilder,
    model: Option<Arc<dyn Model>>,
    providers: Vec<Arc<dyn ToolProvider>>,
    settings: Settings,
}

/// An agent that cannot be built as asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// Nobody to ask.
    #[error("the agent has no model; call `.model(..)`")]
    NoModel,
    /// One provider would silently replace the other.
    #[error(
        "`tool_provider` was called twice, with `{first}` and `{second}`; \
         put them together with `concat([..])`"
    )]
    TwoProviders {
        /// The first provider's path.
        first: String,
        /// The second provider's path.
        second: String,
    },
    /// A run without an iteration can do nothing.
    #[error("`max_iterations` must be at least 1")]
    NoIterations,
    /// The engine cannot be built.
    #[error(transparent)]
    Engine(#[from] BuildError),
}

impl Agent {
    /// Starts an agent with an engine of its own.
    pub fn builder() -> AgentBuilder {
        AgentBuilder::default()
    }
}

impl AgentBuilder {
    /// Sets the model. Required.
    pub fn model(self, model: impl Model) -> Self {
        self.shared_model(Arc::new(model))
    }

    /// Sets a model that others use too.
    pub fn shared_model(mut self, model: Arc<dyn Model>) -> Self {
        self.model = Some(model);
        self
    }

    /// Sets the system text.
    pub fn system(mut self, text: impl Into<Arc<str>>) -> Self {
        self.settings.system = text.into();
        self
    }

    /// Adds a tool.
    pub fn tool(mut self, tool: impl IntoTool) -> Self {
        self.engine = self.engine.tool(tool);
        self
    }

    /// Adds tools, in order.
    pub fn tools<T: IntoTool>(mut self, tools: impl IntoIterator<Item = T>) -> Self {
        self.engine = self.engine.tools(tools);
        self
    }

    /// Sets the provider. There is one; several are put together with
    /// [`concat`](toolcrib_core::concat).
    pub fn tool_provider(mut self, provider: Arc<dyn ToolProvider>) -> Self {
        self.providers.push(provider);
        self
    }

    /// Adds a plugin.
    pub fn plugin(mut self, plugin: impl Plugin + 'static) -> Self {
        self.engine = self.engine.plugin(plugin);
        self
    }

    /// Sets the skills.
    pub fn skills(mut self, skills: Skills) -> Self {
        self.engine = self.engine.skills(skills);
        self
    }

    /// Sets the policy.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.engine = self.engine.policy(policy);
        self
    }

    /// Sets the limits of calls.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.engine = self.engine.limits(limits);
        self
    }

    /// Changes whatever else an engine can be told: reducers, an approver, a journal.
    pub fn engine(mut self, change: impl FnOnce(EngineBuilder) -> EngineBuilder) -> Self {
        self.engine = change(self.engine);
        self
    }

    /// Sets how many iterations a run may have. Default: 10.
    pub fn max_iterations(mut self, iterations: u32) -> Self {
        self.settings.max_iterations = iterations;
        self
    }

    /// Sets how long a run may take. Default: 10 minutes.
    pub fn turn_timeout(mut self, timeout: Duration) -> Self {
        self.settings.turn_timeout = timeout;
        self
    }

    /// Checks everything and builds.
    ///
    /// # Errors
    /// [`AgentError`] says what to change.
    pub fn build(self) -> Result<Agent, AgentError> {
        let model = self.model.ok_or(AgentError::NoModel)?;
        if self.settings.max_iterations == 0 {
            return Err(AgentError::NoIterations);
        }
        if let [first, second, ..] = self.providers.as_slice() {
            return Err(AgentError::TwoProviders { first: first.path(), second: second.path() });
        }
        let engine: Engine =
            self.providers.into_iter().fold(self.engine, EngineBuilder::provider).build()?;
        Ok(Agent::new(engine, model, self.settings))
    }
}

impl std::fmt::Debug for AgentBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentBuilder")
            .field("engine", &self.engine)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
