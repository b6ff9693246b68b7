//! Middleware around a turn and around its iterations.

use std::{panic::AssertUnwindSafe, sync::Arc};

use futures_util::{FutureExt as _, future::BoxFuture};
use tokio::time::sleep;
use toolcrib_core::{__internal::panic_text, HookResult, Middleware, TurnContext};

use super::state::TurnState;
use crate::user_future::UserFuture;

/// A middleware ended the turn.
#[derive(Debug, thiserror::Error)]
#[error("{middleware} failed {place}: {problem}")]
#[non_exhaustive]
pub struct MiddlewareError {
    /// The middleware, and its plugin.
    pub middleware: Arc<str>,
    /// The hook: `before the turn`, `after the turn`, `before the iteration`, `after the
    /// iteration`.
    pub place: &'static str,
    /// The problem, redacted.
    pub problem: String,
}

/// A pair of hooks, before and after.
pub(super) struct HookPair {
    before: Hook,
    after: Hook,
}

struct Hook {
    name: &'static str,
    ask: for<'a> fn(&'a dyn Middleware, TurnContext<'a>) -> BoxFuture<'a, HookResult>,
}

pub(super) const TURN: HookPair = HookPair {
    before: Hook { name: "before the turn", ask: |one, cx| one.before_turn(cx) },
    after: Hook { name: "after the turn", ask: |one, cx| one.after_turn(cx) },
};

pub(super) const ITERATION: HookPair = HookPair {
    before: Hook { name: "before the iteration", ask: |one, cx| one.before_iteration(cx) },
    after: Hook { name: "after the iteration", ask: |one, cx| one.after_iteration(cx) },
};

/// The middleware whose *before* hook has run.
pub(super) struct Passage {
    place: &'static HookPair,
    passed: usize,
}

impl Passage {
    pub(super) fn of(place: &'static HookPair) -> Self {
        Self { place, passed: 0 }
    }

    /// Runs in order, until one fails or the turn is cancelled.
    pub(super) async fn before(
        &mut self,
        turn: &TurnState,
        iteration: u32,
    ) -> Result<(), MiddlewareError> {
        for brought in &turn.engine.middleware {
            if turn.cancellation.is_cancelled() {
                break;
            }
            let named = &brought.item;
            asked(turn, iteration, &self.place.before, &*named.middleware, &named.label).await?;
            self.passed += 1;
        }
        Ok(())
    }

    /// Runs for all whose *before* hook has run, in reverse order; returns the first failure.
    pub(super) async fn after(
        self,
        turn: &TurnState,
        iteration: u32,
    ) -> Result<(), MiddlewareError> {
        let mut outcome = Ok(());
        for brought in turn.engine.middleware.iter().take(self.passed).rev() {
            let named = &brought.item;
            let side = &self.place.after;
            let passed = asked(turn, iteration, side, &*named.middleware, &named.label).await;
            outcome = outcome.and(passed);
        }
        outcome
    }
}

async fn asked(
    turn: &TurnState,
    iteration: u32,
    side: &Hook,
    middleware: &dyn Middleware,
    label: &Arc<str>,
) -> Result<(), MiddlewareError> {
    let cx = TurnContext {
        registry: turn.registry(),
        iteration,
        identity: turn.identity(),
        turn_id: turn.events.turn_id(),
        personality: &turn.personality.id,
        signals: &turn.signals,
        cancellation: &turn.cancellation,
    };
    let limits = turn.engine.limits;
    let passing = UserFuture::answer(
        || (side.ask)(middleware, cx),
        |passed| passed.map_err(|error| error.to_string()),
    );
    let too_late = async {
        tokio::select! {
            () = sleep(limits.tool_timeout) => "it took longer than a call may",
            () = async {
                turn.cancellation.cancelled().await;
                sleep(limits.cancel_grace).await;
            } => "the run was cancelled, and it did not stop",
        }
    };
    let passed = tokio::select! {
        biased;
        passed = AssertUnwindSafe(passing).catch_unwind() => {
            passed.unwrap_or_else(|panic| Err(format!("it panicked: {}", panic_text(&*panic))))
        }
        problem = too_late => Err(problem.to_owned()),
    };
    passed.map_err(|problem| MiddlewareError {
        middleware: Arc::clone(label),
        place: side.name,
        problem: turn.engine.redactor.text(&problem).into_owned(),
    })
}
