//! Settings of an agent and options of a run.

use std::{sync::Arc, time::Duration};

use toolcrib_core::{Message, ToolChoice};
use toolcrib_engine::TurnOptions;

use crate::session::Session;

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
}

/// Limits of one turn, which end a loop that makes no progress or costs too much. A resumed turn
/// counts what it did before; only denials are counted anew.
///
/// At a limit of calls or denials, the calls beyond it are not made, and the model answers with the
/// results that it has, without further calls. At a limit of tokens or cost no further call and no
/// further request is made, and the answer says so. Either way the run ends with
/// [`Stopped::LimitReached`](crate::Stopped::LimitReached), after the event
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
    /// A cost that is not known is not limited. Default: none.
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
