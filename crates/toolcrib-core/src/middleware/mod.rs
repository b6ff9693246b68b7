//! Code around turns, iterations and calls, and the other ports of the pipe.

pub(crate) mod ports;

use std::{error::Error, sync::Arc};

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub use self::ports::{Journal, Reducer, ReducerContext};
pub use crate::tool::pending_call::PendingCall;
use crate::{
    names::identity::Identity, registry::ToolRegistry, tool::output::ToolOutput,
    turn::signals::TurnSignals,
};

/// A [`Middleware`]'s decision on a call. None of them asks a person: use a
/// [`Rule::ask`](crate::Rule::ask) and an [`Approver`](crate::Approver).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum CallDecision {
    /// The call continues unchanged.
    Proceed,
    /// The call returns to the `validate` stage with these arguments. All middleware decides again,
    /// except one that would only see its own rewrite.
    Rewrite(Value),
    /// The tool is not run: this is its output, as if the tool had returned it and a reducer had
    /// trimmed it.
    Answer(ToolOutput),
    /// The call is denied; the text is for the model.
    Deny(String),
}

/// A turn that a runner drives, as passed to the turn and iteration hooks of [`Middleware`].
#[derive(Debug, Clone, Copy)]
pub struct TurnContext<'a> {
    /// The tools of the turn. Edits apply from the next iteration, and end with the turn.
    pub registry: &'a ToolRegistry,
    /// The iteration, from 1; before the turn 0, and after it the number of iterations.
    pub iteration: u32,
    /// The identity that the run acts for.
    pub identity: &'a Identity,
    /// The run's id.
    pub turn_id: &'a Arc<str>,
    /// The id of the turn's personality.
    pub personality: &'a Arc<str>,
    /// The executor's ack or nack. A middleware may signal in its place.
    pub signals: &'a TurnSignals,
    /// Firing it ends the turn as cancelled.
    pub cancellation: &'a CancellationToken,
}

impl AsRef<TurnSignals> for TurnContext<'_> {
    fn as_ref(&self) -> &TurnSignals {
        self.signals
    }
}

/// The result of a [`Middleware`]'s hook around turns and iterations: continue, or an error that
/// ends the turn.
pub type HookResult = Result<(), Box<dyn Error + Send + Sync>>;

/// Code around turns, iterations and calls, for decisions that rules cannot express. Each hook is
/// optional. One value serves many turns concurrently.
///
/// The hook *call* runs after validation and policy and before approval, so the call that it lets
/// through is the one that is approved and run. It fails closed: an error, a panic, or no decision
/// within the call's time limit denies.
///
/// The hooks around a turn and its iterations run where a runner drives the turn, which an agent's
/// loop does. *Before* runs in the order of the engine, *after* in reverse. Each middleware whose
/// *before* succeeded gets its *after*, in any case. An error or a panic ends the turn, as does
/// taking longer than a call may; once the turn is cancelled, no further *before* begins, and
/// running hooks get the short grace period of a tool.
///
/// Neighbors: a [`Policy`](crate::Policy) is data and decides on visibility too; to ask a person,
/// use a [`Rule::ask`](crate::Rule::ask) in it and an [`Approver`](crate::Approver). A
/// [`Reducer`] sees the output; a [`CapabilityGranter`](crate::CapabilityGranter)
/// limits the body's access. [`call_middleware`] makes one of a function.
pub trait Middleware: Send + Sync + 'static {
    /// The name in events and messages.
    fn name(&self) -> &str;

    /// Decides on one call. Default: the call continues unchanged.
    fn call<'a>(
        &'a self,
        _call: PendingCall<'a>,
    ) -> BoxFuture<'a, Result<CallDecision, Box<dyn Error + Send + Sync>>> {
        Box::pin(async { Ok(CallDecision::Proceed) })
    }

    /// Runs before the first iteration of a turn.
    fn before_turn<'a>(&'a self, _cx: TurnContext<'a>) -> BoxFuture<'a, HookResult> {
        Box::pin(async { Ok(()) })
    }

    /// Runs after the last iteration of a turn, however it ended.
    fn after_turn<'a>(&'a self, _cx: TurnContext<'a>) -> BoxFuture<'a, HookResult> {
        Box::pin(async { Ok(()) })
    }

    /// Runs before the tools of an iteration are listed.
    fn before_iteration<'a>(&'a self, _cx: TurnContext<'a>) -> BoxFuture<'a, HookResult> {
        Box::pin(async { Ok(()) })
    }

    /// Runs after the executor's part of an iteration, including the last one.
    fn after_iteration<'a>(&'a self, _cx: TurnContext<'a>) -> BoxFuture<'a, HookResult> {
        Box::pin(async { Ok(()) })
    }
}

/// Makes a [`Middleware`] of a function that decides on calls immediately.
///
/// ```
/// use toolcrib_core::{CallDecision, call_middleware};
///
/// let guard = call_middleware("office-hours", |call| {
///     Ok(if call.tool.annotations().destructive {
///         CallDecision::Deny("nothing is deleted at night; try again in the morning".into())
///     } else {
///         CallDecision::Proceed
///     })
/// });
/// # let _ = guard;
/// ```
pub fn call_middleware<F>(name: impl Into<Arc<str>>, decide: F) -> impl Middleware
where
    F: Fn(&PendingCall<'_>) -> Result<CallDecision, Box<dyn Error + Send + Sync>>
        + Send
        + Sync
        + 'static,
{
    FnMiddleware { name: name.into(), decide }
}

struct FnMiddleware<F> {
    name: Arc<str>,
    decide: F,
}

impl<F> Middleware for FnMiddleware<F>
where
    F: Fn(&PendingCall<'_>) -> Result<CallDecision, Box<dyn Error + Send + Sync>>
        + Send
        + Sync
        + 'static,
{
    fn name(&self) -> &str {
        &self.name
    }

    fn call<'a>(
        &'a self,
        call: PendingCall<'a>,
    ) -> BoxFuture<'a, Result<CallDecision, Box<dyn Error + Send + Sync>>> {
        Box::pin(async move { (self.decide)(&call) })
    }
}
