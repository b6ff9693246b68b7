//! Settings of an agent and options of a run.

use std::{sync::Arc, time::Duration};

use toolcrib_core::{Attachment, AttachmentError, Message, SessionOwner, ToolChoice, UsageStore};
use toolcrib_engine::TurnOptions;

use crate::{
    limits::{Budget, TurnLimits},
    session::Session,
    tally::Tally,
};

/// The settings of an agent, besides its engine and its model.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The system text. A sentence on fenced results is appended, then the skills that are active
    /// at the start of a run.
    pub system: Arc<str>,
    /// The maximum number of iterations of a run, followed by one wrap-up call without tools.
    /// Default: 10.
    pub max_iterations: u32,
    /// The timeout of a run. Default: 10 minutes.
    pub turn_timeout: Duration,
    /// The limits of a run's calls and cost.
    pub turn_limits: TurnLimits,
    /// The budgets of all runs. Default: none.
    pub budget: Budget,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            system: Arc::default(),
            max_iterations: 10,
            turn_timeout: Duration::from_secs(600),
            turn_limits: TurnLimits::default(),
            budget: Budget::default(),
        }
    }
}

/// The options of one run. All are optional; [`TurnOptions`] alone can be passed instead.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RunOptions {
    /// Identity, skills and cancellation.
    pub turn: TurnOptions,
    /// The conversation so far: the [messages](crate::RunOutcome::messages) of an earlier run.
    /// Empty with a [session](Self::session), which has its own.
    pub history: Vec<Message>,
    /// The session that the run continues, and that records it. The turn gets the session's
    /// conversation and personality, and must have its tenant and principal, which
    /// [`session`](Self::session) sets. If the session cannot be written, no further call is made,
    /// and the run fails. Default: none.
    pub session: Option<Session>,
    /// The tool choice of each iteration, starting with the first; later ones are free. A model
    /// that ignores it fails the run. The wrap-up is without calls in any case.
    pub tool_choices: Vec<ToolChoice>,
    /// The timeout of this run. Default: the agent's.
    pub turn_timeout: Option<Duration>,
    /// The store that sums up the usage of runs. A [`Budget`] requires one. If it cannot be written,
    /// the run fails. Default: the agent's [store](crate::AgentBuilder::store).
    pub usage_store: Option<Arc<dyn UsageStore>>,
    /// The number of the submitted message that the run takes.
    pub(crate) submitted: Option<u64>,
    /// Set if the run is that of a child agent.
    pub(crate) child: Option<Child>,
}

impl From<TurnOptions> for RunOptions {
    fn from(turn: TurnOptions) -> Self {
        Self { turn, ..Self::default() }
    }
}

impl RunOptions {
    /// Sets the conversation so far.
    #[must_use]
    pub fn history(mut self, messages: impl Into<Vec<Message>>) -> Self {
        self.history = messages.into();
        self
    }

    /// Sets the session, and its owner as tenant and principal unless they are set.
    #[must_use]
    pub fn session(mut self, session: &Session) -> Self {
        let SessionOwner { tenant, principal } = session.owner();
        self.turn.tenant = self.turn.tenant.or_else(|| tenant.clone());
        self.turn.principal = self.turn.principal.or_else(|| principal.clone());
        self.session = Some(session.clone());
        self
    }

    /// Attaches a file to the message. The model reads its name, size and id, and its text in a fence;
    /// tools that [declare](toolcrib_core::Capabilities::attachments) attachments open it by id.
    ///
    /// # Errors
    /// [`AttachmentError`] with too many attachments, or too many bytes together.
    pub fn attach(mut self, attachment: Attachment) -> Result<Self, AttachmentError> {
        self.turn.attachments.add(attachment)?;
        Ok(self)
    }

    /// Sets the store that sums up the usage of runs.
    #[must_use]
    pub fn usage_store(mut self, store: Arc<dyn UsageStore>) -> Self {
        self.usage_store = Some(store);
        self
    }

    /// Sets the tool choice of each iteration, starting with the first.
    #[must_use]
    pub fn tool_choices(mut self, choices: impl Into<Vec<ToolChoice>>) -> Self {
        self.tool_choices = choices.into();
        self
    }

    /// Sets the timeout of this run.
    #[must_use]
    pub fn turn_timeout(mut self, timeout: Duration) -> Self {
        self.turn_timeout = Some(timeout);
        self
    }
}

/// The part of a child's run that its parent decides.
#[derive(Debug, Clone)]
pub(crate) struct Child {
    pub(crate) limits: TurnLimits,
    pub(crate) max_iterations: Option<u32>,
    /// How many levels of agents may follow.
    pub(crate) levels: u32,
    pub(crate) tally: Arc<Tally>,
    pub(crate) session: Option<Arc<str>>,
}
