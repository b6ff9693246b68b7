//! The agent.

use std::sync::Arc;

use toolcrib_core::{Event, Model, Subscription};
use toolcrib_engine::Engine;

use crate::{
    options::{RunOptions, Settings},
    run::{AgentParts, Run},
};

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
pub struct Agent(Arc<AgentParts>);

impl Agent {
    /// An agent on an engine that is there already.
    pub fn new(engine: Engine, model: Arc<dyn Model>, settings: Settings) -> Self {
        Self(Arc::new(AgentParts { engine, model, settings, conversations: Arc::default() }))
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.0.engine
    }

    /// The model.
    pub fn model(&self) -> &Arc<dyn Model> {
        &self.0.model
    }

    /// This agent on another engine, such as one [with](Engine::with_plugin) or
    /// [without](Engine::without_plugin) a plugin. Runs that have begun stay as they are.
    #[must_use]
    pub fn with_engine(&self, engine: Engine) -> Self {
        Self(Arc::new(AgentParts {
            engine,
            model: Arc::clone(&self.0.model),
            settings: self.0.settings.clone(),
            conversations: Arc::clone(&self.0.conversations),
        }))
    }

    /// Listens to all runs of this agent; see [`Events::on`](toolcrib_core::Events::on).
    pub fn on(
        &self,
        pattern: impl Into<Arc<str>>,
        listener: impl Fn(&Event) + Send + Sync + 'static,
    ) -> Subscription {
        self.0.engine.events().on(pattern, listener)
    }

    /// Prepares a run; it happens while it is awaited, and ends when it is dropped.
    pub fn run(&self, message: impl Into<Arc<str>>, options: impl Into<RunOptions>) -> Run {
        Run::new(Arc::clone(&self.0), message.into(), options.into())
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
