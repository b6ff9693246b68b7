//! A conversation with the agent, turn by turn, in a session or without one: that of `chat` and of
//! `acp`.

use std::{sync::Arc, time::Duration};

use toolcrib_agent::{Agent, RunOptions, RunOutcome, Session};
use toolcrib_core::{CancellationToken, Event, Message, UsageStore};
use toolcrib_engine::TurnOptions;
use toolcrib_project::Project;

use super::{agent, budget, run_session::ChosenSession};
use crate::{
    args::{RunSession, Situation},
    problem::Problem,
    project::turn::{export_spans, turn_options},
};

pub(crate) struct Conversation<'a> {
    project: &'a Project,
    agent: Agent,
    /// Its skills may change between turns.
    pub(crate) situation: Situation,
    history: History,
    /// Counts the usage of all runs.
    usage_store: Option<Arc<dyn UsageStore>>,
    timeout: Option<Duration>,
}

/// The turns before the next one.
enum History {
    /// A session that begins with the first turn.
    Later(Option<ChosenSession>),
    Stored(Session),
    /// Without a session.
    Unstored(Arc<Vec<Message>>),
}

impl<'a> Conversation<'a> {
    /// Finds or chooses the session. A new one is not created yet.
    pub(crate) async fn begin(
        project: &'a Project,
        situation: &Situation,
        session: &RunSession,
        timeout: Option<Duration>,
        tells: bool,
        cancellation: &CancellationToken,
    ) -> Result<Self, Problem> {
        let mut situation = situation.clone();
        let chosen = ChosenSession::find(project, &situation, session).await?;
        if let Some(chosen) = &chosen {
            chosen.adapt(&mut situation)?;
        }
        let agent = agent::agent(project, &situation, tells).await?;
        export_spans(agent.engine())?;
        let usage_store = match &chosen {
            Some(chosen) => Some(chosen.usage_store()),
            None => budget::store_without_session(project).await?,
        };
        let history = match chosen {
            None => History::Unstored(Arc::default()),
            Some(chosen) if chosen.is_new() => History::Later(Some(chosen)),
            Some(chosen) => History::Stored(chosen.open(&situation, tells, cancellation).await?),
        };
        Ok(Self { project, agent, situation, history, usage_store, timeout })
    }

    pub(crate) fn agent(&self) -> &Agent {
        &self.agent
    }

    /// The open session; `None` without one, and before a new one is [created](Self::create).
    pub(crate) fn session(&self) -> Option<&Session> {
        match &self.history {
            History::Stored(session) => Some(session),
            History::Later(_) | History::Unstored(_) => None,
        }
    }

    pub(crate) fn is_stored(&self) -> bool {
        !matches!(self.history, History::Unstored(_))
    }

    /// Creates the session, if it is new.
    pub(crate) async fn create(
        &mut self,
        tells: bool,
        cancellation: &CancellationToken,
    ) -> Result<(), Problem> {
        if let History::Later(chosen) = &mut self.history
            && let Some(chosen) = chosen.take()
        {
            let session = chosen.open(&self.situation, tells, cancellation).await?;
            self.history = History::Stored(session);
        }
        Ok(())
    }

    /// The options of the next turn, without an approver.
    pub(crate) fn turn(&self, cancellation: CancellationToken) -> Result<TurnOptions, Problem> {
        let mut turn = turn_options(self.project, &self.situation, cancellation)?;
        if self.session().is_some() {
            // It has the conversation.
            turn.conversation = None;
        }
        Ok(turn)
    }

    /// Runs a turn to its end.
    pub(crate) async fn run(
        &mut self,
        message: String,
        turn: TurnOptions,
        listener: impl Fn(&Event) + Send + Sync + 'static,
    ) -> Result<RunOutcome, Problem> {
        let mut options = RunOptions::from(turn);
        options.turn_timeout = self.timeout;
        options.usage_store.clone_from(&self.usage_store);
        match &self.history {
            History::Stored(session) => options.session = Some(session.clone()),
            History::Unstored(messages) => options.history = messages.to_vec(),
            History::Later(_) => {}
        }
        let run = self.agent.run(message, options);
        let listening = run.on("*", listener)?;
        let outcome = run.await;
        listening.unsubscribe();
        if let History::Unstored(messages) = &mut self.history {
            messages.clone_from(&outcome.messages);
        }
        Ok(outcome)
    }

    /// Ends the lease of the session.
    pub(crate) async fn close(self) {
        if let History::Stored(session) = self.history {
            // Its failure is not one of the conversation: the lease expires.
            let _ = session.close().await;
        }
    }
}
