//! Settings of an agent and options of a run.

use std::{sync::Arc, time::Duration};

use toolcrib_core::{Attachment, AttachmentError, Message, ToolChoice, UsageStore};
use toolcrib_engine::TurnOptions;

use crate::{run::Child, session::Session};

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
    pub limits: TurnLimits,
    /// The budgets of all runs. Default: none.
    pub budget: Budget,
}

/// Budgets of tokens and money over all runs that share a
/// [store of usage](RunOptions::usage_store), also in other processes. A day begins at midnight UTC.
///
/// Each model request is counted after its end, and the budgets are compared before each: the
/// request that exceeds one is the last, of each run that has one in flight. Then the run ends with
/// [`EndReason::LimitReached`](crate::EndReason::LimitReached), as at a [limit](TurnLimits) of cost. A
/// request that broke off before the vendor reported its usage counts with an estimate.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Budget {
    /// For all principals together, per day.
    pub day: Allowance,
    /// For each tenant and principal, per day.
    pub principal: Allowance,
}

impl Budget {
    /// Whether it limits nothing.
    pub fn is_empty(&self) -> bool {
        self.day.is_empty() && self.principal.is_empty()
    }
}

/// An amount of tokens and money.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Allowance {
    /// The number of tokens, input and output together. Default: not limited.
    pub max_tokens: Option<u64>,
    /// The cost of models and tools, in US dollars. A run whose models do not report their cost
    /// fails with [`RunError::COST_UNKNOWN`](crate::RunError::COST_UNKNOWN). Default: not limited.
    pub max_cost_usd: Option<f64>,
}

impl Allowance {
    /// Whether it limits nothing.
    pub fn is_empty(&self) -> bool {
        self.max_tokens.is_none() && self.max_cost_usd.is_none()
    }
}

/// Limits of one turn, which end a loop that makes no progress or costs too much. A resumed turn
/// counts what it did before; only denials are counted anew.
///
/// At a limit of calls or denials, the calls beyond it are not made, and the model answers with the
/// results that it has, without further calls. At a limit of tokens or cost no further call and no
/// further request is made, and the answer says so. Either way the run ends with
/// [`EndReason::LimitReached`](crate::EndReason::LimitReached), after the event
/// `agent.limit_reached`.
///
/// Neighbor: [`Limits`](toolcrib_engine::Limits) are those of one batch of calls.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnLimits {
    /// The number of calls, refused ones included. Default: none.
    pub max_calls: Option<u32>,
    /// The number of calls of one name. Default: none.
    pub max_calls_per_tool: Option<u32>,
    /// The number of calls in a row with the same tool and arguments. Default: 10.
    pub max_identical_calls: Option<u32>,
    /// The number of calls that a rule, an approver or a middleware denies. Default: 20.
    pub max_denials: Option<u32>,
    /// The number of tokens, input and output together. The request that exceeds it is the last.
    /// Default: none.
    pub max_tokens: Option<u64>,
    /// The cost of models and tools, in US dollars. The request or call that exceeds it is the last.
    /// A run whose models do not report their cost fails with
    /// [`RunError::COST_UNKNOWN`](crate::RunError::COST_UNKNOWN). Default: none.
    pub max_cost_usd: Option<f64>,
}

impl TurnLimits {
    /// No limits.
    pub const NONE: Self = Self {
        max_calls: None,
        max_calls_per_tool: None,
        max_identical_calls: None,
        max_denials: None,
        max_tokens: None,
        max_cost_usd: None,
    };
}

impl Default for TurnLimits {
    fn default() -> Self {
        Self { max_identical_calls: Some(10), max_denials: Some(20), ..Self::NONE }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            system: Arc::default(),
            max_iterations: 10,
            turn_timeout: Duration::from_secs(600),
            limits: TurnLimits::default(),
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
    /// conversation and personality, and must have its tenant and principal. If the session cannot
    /// be written, no further call is made, and the run fails. Default: none.
    pub session: Option<Session>,
    /// The tool choice of each iteration, starting with the first; later ones are free. A model
    /// that ignores it fails the run. The wrap-up is without calls in any case.
    pub tool_choices: Vec<ToolChoice>,
    /// The timeout of this run. Default: the agent's.
    pub turn_timeout: Option<Duration>,
    /// The store that sums up the usage of runs. A [`Budget`] requires one. If it cannot be written,
    /// the run fails. Default: none.
    pub usage_store: Option<Arc<dyn UsageStore>>,
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

    /// Sets the session.
    #[must_use]
    pub fn session(mut self, session: &Session) -> Self {
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
