use std::{
    error::Error,
    ops::{Deref, DerefMut},
    sync::Arc,
};

use serde_json::Value;
use toolcrib_core::{
    AckSubscription, AlreadySignalled, Digest, Identity, ToolRegistry, TurnSignals,
};

use super::Iteration;
use crate::questions::{NotAnswered, Question};

/// What an [`Executor`](super::Executor) gets of an iteration: the [`Iteration`] itself, the turn's
/// registry, and the words that end the turn.
///
/// An executor that returns and has said nothing gets another iteration. It may hand the context on to
/// a task of its own; once the turn is over, what that still calls is refused.
#[derive(Debug)]
pub struct IterationContext(Iteration);

impl IterationContext {
    pub(super) fn new(iteration: Iteration) -> Self {
        Self(iteration)
    }

    /// The run's id.
    pub fn run_id(&self) -> &Arc<str> {
        self.0.turn().events.run_id()
    }

    /// On whose behalf.
    pub fn identity(&self) -> &Arc<Identity> {
        self.0.turn().events.identity()
    }

    /// The turn's tools. Edits count from the next iteration, and end with the turn.
    pub fn registry(&self) -> &ToolRegistry {
        self.0.turn().registry()
    }

    /// Says that the turn is done, and that this iteration was the last one; what waits for it, such as a
    /// [bound](ToolRegistry::bind_context) registry, has happened when it returns. The iteration goes on
    /// until the executor returns, without the tools that live for an iteration: those cannot be called
    /// any more.
    ///
    /// # Errors
    /// [`AlreadySignalled`] when it was acked or nacked before; the first signal stands.
    pub fn ack(&self) -> Result<(), AlreadySignalled> {
        self.as_ref().ack()
    }

    /// Gives the turn up, and ends what this iteration still calls. Tools that live for an iteration
    /// stay in the registry to be looked at, and are neither offered nor callable any more.
    ///
    /// # Errors
    /// [`AlreadySignalled`] when it was acked or nacked before; the first signal stands.
    pub fn nack(
        &self,
        error: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Result<(), AlreadySignalled> {
        self.as_ref().nack(error)?;
        self.0.cancellation().cancel();
        Ok(())
    }

    /// Asks a person, and waits for the answer. What the question holds is redacted before anybody sees
    /// it; the answer is as it was given.
    ///
    /// # Errors
    /// [`NotAnswered`] says which way it was closed.
    pub async fn wait_for(&self, question: Question) -> Result<Value, NotAnswered> {
        self.0.asking().ask(question).await
    }

    /// Cancels the turn, with all that it still does.
    pub fn abort(&self) {
        self.0.turn().cancellation.cancel();
    }

    /// How often the very same has been called in this turn: how many calls with that
    /// [content id](toolcrib_core::args_digest) have a result, whatever came of them.
    pub fn call_count(&self, call: Digest) -> usize {
        self.0.turn().made.count_of(call)
    }

    /// Does something when the turn is acked; see [`TurnSignals::on_ack`].
    pub fn on_ack(&self, handler: impl FnOnce() + Send + 'static) -> AckSubscription {
        self.as_ref().on_ack(handler)
    }
}

impl AsRef<TurnSignals> for IterationContext {
    fn as_ref(&self) -> &TurnSignals {
        &self.0.turn().signals
    }
}

impl Deref for IterationContext {
    type Target = Iteration;
    fn deref(&self) -> &Iteration {
        &self.0
    }
}

impl DerefMut for IterationContext {
    fn deref_mut(&mut self) -> &mut Iteration {
        &mut self.0
    }
}
