use std::error::Error;

use super::{IterationContext, Turn};

/// What an executor gives back of an iteration. An error is a [nack](IterationContext::nack).
pub type Executed = Result<(), ExecutorError>;

/// Any error, or a text: `?` and `into` make it.
#[derive(Debug)]
pub struct ExecutorError(pub(super) Box<dyn Error + Send + Sync>);

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for ExecutorError {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

/// What is done in each iteration of a turn: an async function of an [`IterationContext`]. The loop of
/// an agent is one.
///
/// It ends the turn by [`ack`](IterationContext::ack) or [`nack`](IterationContext::nack); else it is
/// called for another iteration. Cancellation does not cut it off: it watches
/// [`cancellation`](crate::Iteration::cancellation) where it waits for something else than
/// [`execute`](crate::Iteration::execute).
pub trait Executor: Send {
    /// Does what is to be done in one iteration.
    fn execute(&mut self, cx: IterationContext) -> impl Future<Output = Executed> + Send;

    /// There may be no further iteration, and nothing was signalled. Default: nothing is to be done.
    fn out_of_iterations(&mut self, _turn: &mut Turn) -> impl Future<Output = ()> + Send {
        async {}
    }
}

impl<F, Fut> Executor for F
where
    F: FnMut(IterationContext) -> Fut + Send,
    Fut: Future<Output = Executed> + Send,
{
    fn execute(&mut self, cx: IterationContext) -> impl Future<Output = Executed> + Send {
        self(cx)
    }
}
