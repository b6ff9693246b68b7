use std::error::Error;

use super::{IterationContext, Turn};

/// An executor's result of an iteration. An error is a [nack](IterationContext::nack).
pub type ExecutorResult = Result<(), ExecutorError>;

/// Any error, or a text: converts from both with `?` and `into`.
#[derive(Debug)]
pub struct ExecutorError(pub(super) Box<dyn Error + Send + Sync>);

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for ExecutorError {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

/// The code that runs in each iteration of a turn: an async function of an [`IterationContext`]. An
/// agent's loop is one.
///
/// It ends the turn with [`ack`](IterationContext::ack) or [`nack`](IterationContext::nack);
/// otherwise it is called for another iteration. Cancellation does not interrupt it: watch
/// [`cancellation`](crate::Iteration::cancellation) while waiting for anything except
/// [`execute`](crate::Iteration::execute).
pub trait Executor: Send {
    /// Runs one iteration.
    fn execute(&mut self, cx: IterationContext) -> impl Future<Output = ExecutorResult> + Send;

    /// Called when the iteration limit is reached without a signal. Default: does nothing.
    fn wrap_up(&mut self, _turn: &mut Turn) -> impl Future<Output = ()> + Send {
        async {}
    }
}

impl<F, Fut> Executor for F
where
    F: FnMut(IterationContext) -> Fut + Send,
    Fut: Future<Output = ExecutorResult> + Send,
{
    fn execute(&mut self, cx: IterationContext) -> impl Future<Output = ExecutorResult> + Send {
        self(cx)
    }
}
