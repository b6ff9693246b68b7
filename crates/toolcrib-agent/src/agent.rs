//! The agent, and a run of it.

use std::{future::IntoFuture, path::PathBuf, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use toolcrib_core::{
    CancellationToken, Event, EventStream, Events, Message, Model, SkillId, Subscription,
};
use toolcrib_engine::Engine;

use crate::{builder::AgentBuilder, outcome::RunOutcome, run};

/// A model, an engine and a loop. One agent serves many runs at the same time; cloning shares it.
///
/// ```
/// # use toolcrib_agent::{Agent, RunOptions};
/// # use toolcrib_core::{Tool, ToolContext};
/// # use toolcrib_models::ScriptedModel;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = ScriptedModel::from_toml("script:inline", r#"
///     [[rule]]
///     called = "time"
///     text = "It is {{ results.time }}."
///
///     [[rule]]
///     calls = [{ tool = "time" }]
/// "#)?;
/// let agent = Agent::builder()
///     .model(model)
///     .system("You tell the time.")
///     .tool(Tool::builder("time")
///         .description("The time of day.")
///         .handler(|_: serde_json::Value, _: ToolContext| async { "noon" })?)
///     .build()?;
/// let outcome = agent.run("What time is it?", RunOptions::default()).await;
/// assert_eq!(&*outcome.into_answer()?, "It is noon.");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Agent(pub(crate) Arc<AgentParts>);

pub(crate) struct AgentParts {
    pub(crate) engine: Engine,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) settings: Settings,
}

/// What an agent is told beside its engine and its model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The system text. A sentence on fenced results follows it, then the skills that a run
    /// begins with.
    pub system: Arc<str>,
    /// How many iterations a run may have; then one wrap-up call without tools. Default: 10.
    pub max_iterations: u32,
    /// How long a run may take. Default: 10 minutes.
    pub turn_timeout: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self { system: Arc::default(), max_iterations: 10, turn_timeout: Duration::from_secs(600) }
    }
}

impl Agent {
    /// Starts an agent with an engine of its own.
    pub fn builder() -> AgentBuilder {
        AgentBuilder::default()
    }

    /// An agent on an engine that is there already.
    pub fn new(engine: Engine, model: Arc<dyn Model>, settings: Settings) -> Self {
        Self(Arc::new(AgentParts { engine, model, settings }))
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.0.engine
    }

    /// Listens to all runs of this agent; see [`Events::on`].
    pub fn on(
        &self,
        pattern: impl Into<Arc<str>>,
        listener: impl Fn(&Event) + Send + Sync + 'static,
    ) -> Subscription {
        self.0.engine.events().on(pattern, listener)
    }

    /// Prepares a run; it happens while it is awaited, and ends when it is dropped.
    pub fn run(&self, message: impl Into<Arc<str>>, options: RunOptions) -> Run {
        Run { agent: Arc::clone(&self.0), message: message.into(), options, events: Events::new() }
    }
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent")
            .field("model", &self.0.model.name())
            .field("engine", &self.0.engine)
            .finish_non_exhaustive()
    }
}

/// How one run differs from others. Everything may be left out.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct RunOptions {
    /// The customer or organisation.
    pub tenant: Option<Arc<str>>,
    /// The person or service that the run acts for.
    pub principal: Option<Arc<str>>,
    /// The session; it is the conversation that identities carry. Default: the run's id.
    pub session: Option<Arc<str>>,
    /// Ends the run and everything it does.
    pub cancellation: Option<CancellationToken>,
    /// Skills that are active from the start, the last of them as the active one.
    pub skills: Vec<SkillId>,
    /// What was said before.
    pub history: Vec<Message>,
    /// How long this run may take. Default: the agent's.
    pub turn_timeout: Option<Duration>,
    /// Where tools start relative paths. Default: the process's working folder.
    pub working_dir: Option<PathBuf>,
}

impl RunOptions {
    /// Names the principal.
    #[must_use]
    pub fn principal(mut self, principal: impl Into<Arc<str>>) -> Self {
        self.principal = Some(principal.into());
        self
    }

    /// Names the tenant.
    #[must_use]
    pub fn tenant(mut self, tenant: impl Into<Arc<str>>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }

    /// Names the session.
    #[must_use]
    pub fn session(mut self, session: impl Into<Arc<str>>) -> Self {
        self.session = Some(session.into());
        self
    }

    /// Sets what cancels the run.
    #[must_use]
    pub fn cancellation(mut self, cancellation: CancellationToken) -> Self {
        self.cancellation = Some(cancellation);
        self
    }

    /// Activates a skill from the start.
    #[must_use]
    pub fn skill(mut self, skill: SkillId) -> Self {
        self.skills.push(skill);
        self
    }

    /// Says what was said before: the [messages](RunOutcome::messages) of an earlier run.
    #[must_use]
    pub fn history(mut self, messages: impl Into<Vec<Message>>) -> Self {
        self.history = messages.into();
        self
    }

    /// Sets how long this run may take.
    #[must_use]
    pub fn turn_timeout(mut self, timeout: Duration) -> Self {
        self.turn_timeout = Some(timeout);
        self
    }
}

/// A run that is prepared: listen to it, then await it.
#[must_use = "a run does nothing until it is awaited"]
pub struct Run {
    agent: Arc<AgentParts>,
    message: Arc<str>,
    options: RunOptions,
    events: Events,
}

impl Run {
    /// This run's events as a queue that ends with the run; see [`Events::stream`].
    pub fn events(&self) -> EventStream {
        self.events.stream()
    }

    /// Listens to this run alone; see [`Events::on`].
    pub fn on(
        &self,
        pattern: impl Into<Arc<str>>,
        listener: impl Fn(&Event) + Send + Sync + 'static,
    ) -> Subscription {
        self.events.on(pattern, listener)
    }
}

impl IntoFuture for Run {
    type Output = RunOutcome;
    type IntoFuture = BoxFuture<'static, RunOutcome>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(
            async move { run::run(&self.agent, self.message, self.options, self.events).await },
        )
    }
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run").field("options", &self.options).finish_non_exhaustive()
    }
}
