//! Runs iterations up to a signal: the loop of the library, the agent and the command line.

use std::{error::Error, panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt as _;
use toolcrib_core::{__internal::panic_text, EventKind, Signal};

use super::{
    Executor, IterationContext, Turn, TurnError,
    around::{ITERATION, Passage, TURN},
};

/// How a driven turn ended.
#[derive(Debug)]
#[non_exhaustive]
pub enum TurnEnd {
    /// It was acked.
    Acked,
    /// It was nacked, or the executor failed or panicked.
    Nacked(Arc<dyn Error + Send + Sync>),
    /// It was cancelled.
    Cancelled,
    /// It reached the iteration limit without a signal.
    MaxIterations,
    /// It could not continue.
    Failed(TurnError),
}

impl TurnEnd {
    /// The word for it: `acked`, `nacked`, `cancelled`, `max_iterations`, `failed`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Acked => "acked",
            Self::Nacked(_) => "nacked",
            Self::Cancelled => "cancelled",
            Self::MaxIterations => "max_iterations",
            Self::Failed(_) => "failed",
        }
    }
}

impl Turn {
    /// Begins iterations and passes them to an executor until it signals, the turn is cancelled or
    /// halted, a failure occurs, or there have been `max_iterations` of them. The engine's
    /// middleware runs around the turn and around each iteration.
    ///
    /// This function emits `agent.iteration_start` and `agent.iteration_end`, on every way out.
    /// Tools with the lifetime of an iteration are removed after it, and after the last one also
    /// those that no iteration has offered; after a nack they stay in the
    /// [registry](Self::registry).
    pub async fn drive(&mut self, executor: &mut impl Executor, max_iterations: u32) -> TurnEnd {
        let mut passage = Passage::of(&TURN);
        let mut end = match passage.before(&self.state, 0).await {
            Err(error) => TurnEnd::Failed(error.into()),
            Ok(()) => self.iterate(executor, max_iterations).await,
        };
        // No further iteration could offer the tools that were registered for one.
        if !self.is_nacked()
            && let Some(registry) = self.state.registry.get()
        {
            drop(registry.prune_ephemeral());
        }
        if matches!(end, TurnEnd::MaxIterations) {
            let wrapping_up = AssertUnwindSafe(executor.wrap_up(self)).catch_unwind();
            if let Err(panic) = wrapping_up.await {
                end = self.executor_failed(panicked(&*panic));
            }
        }
        if let Err(error) = passage.after(&self.state, self.iteration).await
            && !matches!(end, TurnEnd::Failed(_))
        {
            end = TurnEnd::Failed(error.into());
        }
        end
    }

    async fn iterate(&mut self, executor: &mut impl Executor, max_iterations: u32) -> TurnEnd {
        for _ in 0..max_iterations {
            if let Some(end) = self.over() {
                return end;
            }
            let number = self.begin_iteration();
            self.state.events.emit(Some(number), || EventKind::IterationStart);
            let calls_before = self.state.call_counter.count();
            let mut passage = Passage::of(&ITERATION);
            let mut end = match passage.before(&self.state, number).await {
                Err(error) => Some(TurnEnd::Failed(error.into())),
                Ok(()) => self.execute(executor).await,
            };
            if let Err(error) = passage.after(&self.state, number).await
                && !matches!(end, Some(TurnEnd::Failed(_)))
            {
                end = Some(TurnEnd::Failed(error.into()));
            }
            // A middleware may have signaled, or cancelled.
            let end = end.or_else(|| self.over());
            if !self.is_nacked() {
                self.expire();
            }
            let tool_calls = self.state.call_counter.count() - calls_before;
            self.state.events.emit(Some(number), || EventKind::IterationEnd { tool_calls });
            if let Some(end) = end {
                return end;
            }
        }
        self.over().unwrap_or(TurnEnd::MaxIterations)
    }

    /// Lists the tools and runs the executor. Returns the turn's end, if it ended.
    async fn execute(&mut self, executor: &mut impl Executor) -> Option<TurnEnd> {
        if let Some(end) = self.over() {
            return Some(end);
        }
        let cx = match self.list().await {
            Ok(iteration) => IterationContext::new(iteration),
            Err(TurnError::Cancelled) => return Some(TurnEnd::Cancelled),
            Err(error) => return Some(TurnEnd::Failed(error)),
        };
        // Called inside, so that a panic of a function that only returns a future counts too.
        let executed = AssertUnwindSafe(async { executor.execute(cx).await }).catch_unwind().await;
        if let Some(halt) = self.halted() {
            return Some(TurnEnd::Failed(TurnError::Halted(halt.clone())));
        }
        match executed {
            Ok(Ok(())) => self.over(),
            Ok(Err(error)) => Some(self.executor_failed(error.0)),
            Err(panic) => Some(self.executor_failed(panicked(&*panic))),
        }
    }

    fn executor_failed(&self, error: Box<dyn Error + Send + Sync>) -> TurnEnd {
        if self.state.signals.signal().is_some() {
            return TurnEnd::Failed(TurnError::Executor(error));
        }
        // Meanwhile only a context that was passed on can signal, and then that signal remains in
        // effect.
        let _ = self.state.signals.nack(error);
        self.over().unwrap_or(TurnEnd::Cancelled)
    }

    /// The turn's end, once it has ended.
    fn over(&self) -> Option<TurnEnd> {
        match self.state.signals.signal() {
            Some(Signal::Ack) => Some(TurnEnd::Acked),
            Some(Signal::Nack(error)) => Some(TurnEnd::Nacked(error)),
            _ => self.state.cancellation.is_cancelled().then_some(TurnEnd::Cancelled),
        }
    }

    pub(super) fn is_nacked(&self) -> bool {
        matches!(self.state.signals.signal(), Some(Signal::Nack(_)))
    }
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> Box<dyn Error + Send + Sync> {
    format!("the executor panicked: {}", panic_text(panic)).into()
}
