//! The agent.

use std::{collections::HashMap, sync::Arc, time::Duration};

use toolcrib_core::{
    Event, Model, NewSession, SessionOwner, SessionStoreError, Subscription, UnknownEventError,
};
use toolcrib_engine::{DEFAULT_PERSONALITY, Engine};

use crate::{
    models::Models,
    options::{RunOptions, Settings},
    outcome::{RunError, RunOutcome},
    run::{
        Run,
        parts::{AgentParts, AgentStore},
    },
    session::Session,
};

/// A model, an engine and a loop. One agent serves many runs concurrently; clones share it.
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
    /// An agent on an existing engine. Its personalities use the agent's model; only an agent that
    /// is [built](Agent::builder) can have models per personality.
    pub fn new(engine: Engine, model: impl Model, settings: Settings) -> Self {
        let models = Models::new(Arc::new(model), Vec::new());
        Self::of(AgentParts {
            engine,
            models,
            personality_models: HashMap::new(),
            settings,
            store: None,
            conversations: Arc::default(),
        })
    }

    pub(crate) fn of(parts: AgentParts) -> Self {
        Self(Arc::new(parts))
    }

    /// The engine that composes the agent's menus and runs its calls.
    pub fn engine(&self) -> &Engine {
        &self.0.engine
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// The first model of runs, for personalities without their own.
    pub fn model(&self) -> &Arc<dyn Model> {
        self.0.models.first()
    }

    /// This agent on another engine, such as one [with](Engine::with_plugin) or
    /// [without](Engine::without_plugin) a plugin. Running runs are not affected.
    #[must_use]
    pub fn with_engine(&self, engine: Engine) -> Self {
        Self(Arc::new(AgentParts {
            engine,
            models: self.0.models.clone(),
            personality_models: self.0.personality_models.clone(),
            settings: self.0.settings.clone(),
            store: self.0.store.clone(),
            conversations: Arc::clone(&self.0.conversations),
        }))
    }

    /// Subscribes to all runs of this agent; see [`Events::on`](toolcrib_core::Events::on).
    ///
    /// # Errors
    /// [`UnknownEventError`] if no event matches.
    pub fn on(
        &self,
        pattern: impl Into<Arc<str>>,
        listener: impl Fn(&Event) + Send + Sync + 'static,
    ) -> Result<Subscription, UnknownEventError> {
        self.0.engine.events().on(pattern, listener)
    }

    /// Opens the owner's session of this name in the agent's [store](crate::AgentBuilder::store), or
    /// creates it, with the personality `default`. [`Session::create`] and [`Session::open`] do one of
    /// both, in any store.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use toolcrib_agent::{Agent, RunOptions};
    /// # use toolcrib_core::SessionOwner;
    /// # use toolcrib_models::ScriptedModel;
    /// # use toolcrib_store::SqliteStore;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let model = ScriptedModel::from_toml("script.toml", r#"
    /// #     [[rule]]
    /// #     text = "Hello."
    /// # "#)?;
    /// let store = Arc::new(SqliteStore::in_memory()?);
    /// let agent = Agent::builder().model(model).store(store).build()?;
    /// let session = agent.session(&SessionOwner::principal("ann"), "order-1042").await?;
    /// agent.run("Hello", RunOptions::default().session(&session)).await.into_answer()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`SessionStoreError`], such as [`InUse`](SessionStoreError::InUse) while another run has the
    /// session; if the agent has no store, [`Io`](SessionStoreError::Io).
    pub async fn session(
        &self,
        owner: &SessionOwner,
        name: &str,
    ) -> Result<Session, SessionStoreError> {
        let Some(AgentStore { sessions: store, .. }) = &self.0.store else {
            return Err(SessionStoreError::Io {
                store: "the store of the agent".to_owned(),
                doing: "opened",
                source: "it has none; set one with `AgentBuilder::store`".into(),
            });
        };
        match Session::open(Arc::clone(store), owner, name).await {
            Err(SessionStoreError::Unknown { .. }) => {
                let (owner, name) = (owner.clone(), Some(name.into()));
                let personality = DEFAULT_PERSONALITY.into();
                Session::create(Arc::clone(store), NewSession { owner, name, personality }).await
            }
            opened => opened,
        }
    }

    /// Prepares a run; it executes while it is awaited, and ends when it is dropped.
    pub fn run(&self, message: impl Into<Arc<str>>, options: impl Into<RunOptions>) -> Run {
        Run::new(Arc::clone(&self.0), Some(message.into()), options.into())
    }

    /// Prepares a run that continues the interrupted turn of a [session](RunOptions::session): one
    /// whose process was killed, or whose session could not be written.
    ///
    /// It lists the tools first. Then each call of the last response gets its result: a call that
    /// ended keeps the one that it had, and is never made again. A call that was cut off is
    /// `outcome_unknown`, except that a tool which declares that it is idempotent or changes
    /// nothing is called once more, with the same
    /// [idempotency key](toolcrib_core::ToolContext::idempotency_key). A call that had not begun
    /// passes the pipe with the tools and rules of now. Then the loop goes on. A response that was
    /// received is not requested again.
    ///
    /// The options must have the session, the same tenant and principal, and the claims of the
    /// interrupted run, which are not stored. Its skills are active again. The timeout begins again;
    /// the number of iterations goes on.
    ///
    /// If the last turn has ended, the run fails with
    /// [`NOTHING_TO_RESUME`](crate::RunError::NOTHING_TO_RESUME).
    pub fn resume(&self, options: impl Into<RunOptions>) -> Run {
        Run::new(Arc::clone(&self.0), None, options.into())
    }

    /// Prepares the next segment of a session that was [claimed](Session::claim): it [runs](Self::run) its
    /// submitted message, or [resumes](Self::resume) its turn, until the answer or until calls wait for
    /// approval. A process that dies leaves the segment to the next claim.
    ///
    /// ```
    /// # use std::{sync::Arc, time::Duration};
    /// # use toolcrib_agent::{Agent, RunOptions, Session};
    /// # use toolcrib_core::{NewSession, SessionOwner, SessionStore};
    /// # use toolcrib_models::ScriptedModel;
    /// # use toolcrib_store::SqliteStore;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let model = ScriptedModel::from_toml("script.toml", r#"
    /// #     [[rule]]
    /// #     text = "Hello."
    /// # "#)?;
    /// # let agent = Agent::builder().model(model).build()?;
    /// let store: Arc<dyn SessionStore> = Arc::new(SqliteStore::in_memory()?);
    /// let owner = SessionOwner::principal("ann");
    /// let new = NewSession { owner: owner.clone(), name: None, personality: "default".into() };
    /// let id = store.create(&new)?.id;
    /// Session::submit(&store, &owner, &id, "Hello").await?;
    ///
    /// // In another process:
    /// while let Some(session) = Session::claim(&store, None).await? {
    ///     let outcome = agent.segment(RunOptions::default().session(&session)).await;
    ///     println!("{}: {}", session.id(), outcome.end_reason);
    ///     session.end_segment(&outcome, Duration::from_secs(10)).await?;
    /// }
    /// # assert_eq!(store.find(&owner, &id)?.turns, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn segment(&self, options: impl Into<RunOptions>) -> Run {
        let mut options = options.into();
        let submitted = options.session.as_ref().and_then(Session::submitted);
        let message = submitted.map(|message| Arc::clone(&message.text));
        options.submitted = submitted.map(|message| message.number);
        Run::new(Arc::clone(&self.0), message, options)
    }
}

impl Session {
    /// Closes it after its [segment](crate::Agent::segment). If that could not begin, or the store failed, the
    /// session is [left](Self::leave) to the next claim after a time instead.
    ///
    /// # Errors
    /// [`SessionStoreError`] if the store cannot be written. Then the lease ends by itself.
    pub async fn end_segment(
        self,
        outcome: &RunOutcome,
        retry_after: Duration,
    ) -> Result<(), SessionStoreError> {
        let is_over = !outcome.turn_id.is_empty()
            && outcome.error.as_ref().is_none_or(|error| error.code != RunError::SESSION_FAILED);
        match is_over {
            true => self.close().await,
            false => self.leave(retry_after).await,
        }
    }
}

toolcrib_core::__internal::debug_fields!(
    Agent,
    agent,
    models = agent.0.models.names(),
    engine = agent.0.engine,
    ..
);
