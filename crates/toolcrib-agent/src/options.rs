//! What an agent and a run of it are told.

use std::{sync::Arc, time::Duration};

use toolcrib_core::{Message, ToolChoice};
use toolcrib_engine::TurnOptions;

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

/// How one run differs from others. Everything may be left out; where there is nothing but the
/// [`TurnOptions`], they can be given instead.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct RunOptions {
    /// On whose behalf, with which skills, what cancels it.
    pub turn: TurnOptions,
    /// What was said before: the [messages](crate::RunOutcome::messages) of an earlier run.
    pub history: Vec<Message>,
    /// What the model may or must call in each iteration, from the first one on; in later ones it
    /// is free. A model that does not keep to it fails the run. The wrap-up is without calls in
    /// any case.
    pub tool_choices: Vec<ToolChoice>,
    /// How long this run may take. Default: the agent's.
    pub turn_timeout: Option<Duration>,
}

impl From<TurnOptions> for RunOptions {
    fn from(turn: TurnOptions) -> Self {
        Self { turn, ..Self::default() }
    }
}

impl RunOptions {
    /// Says what was said before.
    #[must_use]
    pub fn history(mut self, messages: impl Into<Vec<Message>>) -> Self {
        self.history = messages.into();
        self
    }

    /// Says what the model may or must call in each iteration, from the first one on.
    #[must_use]
    pub fn tool_choices(mut self, choices: impl Into<Vec<ToolChoice>>) -> Self {
        self.tool_choices = choices.into();
        self
    }

    /// Sets how long this run may take.
    #[must_use]
    pub fn turn_timeout(mut self, timeout: Duration) -> Self {
        self.turn_timeout = Some(timeout);
        self
    }
}
