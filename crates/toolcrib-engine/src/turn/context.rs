use std::{
    error::Error,
    ops::{Deref, DerefMut},
    sync::Arc,
};

use serde_json::Value;
use toolcrib_core::{
    AckSubscription, AlreadySignaledError, Digest, Identity, ToolRegistry, TurnSignals,
};

use super::Iteration;
use crate::policy::questions::{NotAnsweredError, Question};

/// An [`Executor`](super::Executor)'s access to an iteration: the [`Iteration`] itself, the turn's
/// registry, and the signals that end the turn.
///
/// An executor that returns without a signal gets another iteration. It may pass the context to a
/// separate task; once the turn is over, further calls through it are refused.
#[derive(Debug)]
pub struct IterationContext(Iteration);

impl IterationContext {
    pub(super) fn new(iteration: Iteration) -> Self {
        Self(iteration)
    }

    /// The id of the turn.
    pub fn turn_id(&self) -> &Arc<str> {
        self.0.turn().events.turn_id()
    }

    /// The identity that the turn acts for.
    pub fn identity(&self) -> &Arc<Identity> {
        self.0.turn().events.identity()
    }

    /// The registry of this turn's tools. Edits apply from the next iteration on, and end with the
    /// turn.
    pub fn registry(&self) -> &ToolRegistry {
        self.0.turn().registry()
    }

    /// Signals that the turn is complete and this iteration was the last one. Actions that wait for
    /// it, such as pruning a [bound](ToolRegistry::bind_context) registry, are done when it
    /// returns. The iteration continues until the executor returns, but tools with the lifetime of
    /// an iteration can no longer be called.
    ///
    /// # Errors
    /// [`AlreadySignaledError`] when it was acked or nacked before; the first signal remains in
    /// effect.
    pub fn ack(&self) -> Result<(), AlreadySignaledError> {
        self.as_ref().ack()
    }

    /// Abandons the turn, and ends this iteration's running calls. Tools with the lifetime of an
    /// iteration stay in the registry for inspection, but are neither offered nor callable any
    /// more.
    ///
    /// # Errors
    /// [`AlreadySignaledError`] when it was acked or nacked before; the first signal remains in
    /// effect.
    pub fn nack(
        &self,
        error: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Result<(), AlreadySignaledError> {
        self.as_ref().nack(error)?;
        self.0.cancellation().cancel();
        Ok(())
    }

    /// Asks a person, and waits for the answer. The question is redacted before it is shown; the
    /// answer is passed on unchanged.
    ///
    /// # Errors
    /// [`NotAnsweredError`] with the reason for closing it.
    pub async fn wait_for(&self, question: Question) -> Result<Value, NotAnsweredError> {
        self.0.asking().ask(question).await
    }

    /// Cancels the turn, including all running work.
    pub fn abort(&self) {
        self.0.turn().cancellation.cancel();
    }

    /// How often an identical call was made in this turn: the number of calls with that
    /// [content id](toolcrib_core::args_digest) that have a result, with any outcome.
    pub fn call_count(&self, call: Digest) -> usize {
        self.0.turn().call_counter.count_of(call)
    }

    /// Runs a handler when the turn is acked; see [`TurnSignals::on_ack`].
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
