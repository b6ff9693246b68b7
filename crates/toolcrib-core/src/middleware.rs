//! Code around turns, iterations and calls.

use std::{error::Error, sync::Arc};

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{
    identity::Identity, output::ToolOutput, ports::PendingCall, registry::ToolRegistry,
    signals::TurnSignals,
};

/// What a [`Middleware`] says of a call. There is no verdict to ask a person: that is what a
/// [`Rule::ask`](crate::Rule::ask) and an [`Approver`](crate::Approver) are for; a middleware decides by itself.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum CallVerdict {
    /// It goes on as it is.
    Proceed,
    /// It goes back to `validate` with these arguments. All middleware is asked again, except the
    /// one that wrote what it would be shown.
    Rewrite(Value),
    /// It is not run: this is its output, as if the tool had given it and a reducer trimmed it.
    Answer(ToolOutput),
    /// It is refused, and this is what the model is told.
    Deny(String),
}

/// A turn that a runner drives, as [`Middleware`] sees it around the turn and around its iterations.
#[derive(Debug, Clone, Copy)]
pub struct TurnContext<'a> {
    /// The tools of the turn. Edits are what the next iteration offers, and end with the turn.
    pub registry: &'a ToolRegistry,
    /// Which iteration, from 1; before the turn 0, and after it how many there were.
    pub iteration: u32,
    /// On whose behalf.
    pub identity: &'a Identity,
    /// The run's id.
    pub run_id: &'a Arc<str>,
    /// Who acts: the id of the turn's personality.
    pub personality: &'a Arc<str>,
    /// Whether the executor has said that it is done. A middleware may say so in its place.
    pub signals: &'a TurnSignals,
    /// Fire it, and the turn ends as one that was cancelled.
    pub cancellation: &'a CancellationToken,
}

impl AsRef<TurnSignals> for TurnContext<'_> {
    fn as_ref(&self) -> &TurnSignals {
        self.signals
    }
}

/// What a [`Middleware`] says around turns and iterations: go on, or an error that ends the turn.
pub type Passed = Result<(), Box<dyn Error + Send + Sync>>;

/// Code around turns, iterations and calls, for what rules cannot say. Each place may be left out. One
/// value serves many turns at the same time, and is asked anew in each.
///
/// At the place *call* it stands behind validation and policy and in front of approval, so what it lets
/// go on is what is approved and run. It fails closed: an error, a panic, or no verdict within the
/// call's time limit denies.
///
/// Around a turn and around each of its iterations it stands where a runner drives the turn, which an
/// agent's loop does. *Before* runs in the order of the engine, *after* in the opposite one. What has
/// passed *before* gets its *after*, whatever happened in between. An error or a panic ends the turn, as
/// does taking longer than a call may; once the turn is cancelled, no further *before* begins, and what
/// still runs gets the short time that a tool gets.
///
/// Neighbours: a [`Policy`](crate::Policy) is data and decides on visibility too; to ask a person,
/// use a [`Rule::ask`](crate::Rule::ask) in it and an [`Approver`](crate::Approver): a middleware
/// decides by itself. A [`Reducer`](crate::Reducer) sees what came back; a [`Scoper`](crate::Scoper)
/// bounds what the body can reach. [`call_middleware`]
/// makes one of a function.
pub trait Middleware: Send + Sync + 'static {
    /// What it is called in events and messages.
    fn name(&self) -> &str;

    /// Decides on one call. Default: it goes on as it is.
    fn call<'a>(
        &'a self,
        _call: PendingCall<'a>,
    ) -> BoxFuture<'a, Result<CallVerdict, Box<dyn Error + Send + Sync>>> {
        Box::pin(async { Ok(CallVerdict::Proceed) })
    }

    /// Before the first iteration of a turn.
    fn before_turn<'a>(&'a self, _cx: TurnContext<'a>) -> BoxFuture<'a, Passed> {
        Box::pin(async { Ok(()) })
    }

    /// After the last iteration of a turn, however it ended.
    fn after_turn<'a>(&'a self, _cx: TurnContext<'a>) -> BoxFuture<'a, Passed> {
        Box::pin(async { Ok(()) })
    }

    /// Before the tools of an iteration are listed.
    fn before_iteration<'a>(&'a self, _cx: TurnContext<'a>) -> BoxFuture<'a, Passed> {
        Box::pin(async { Ok(()) })
    }

    /// After the executor has had its iteration, the last one too.
    fn after_iteration<'a>(&'a self, _cx: TurnContext<'a>) -> BoxFuture<'a, Passed> {
        Box::pin(async { Ok(()) })
    }
}

/// A [`Middleware`] made from a function that decides on calls at once.
///
/// ```
/// use toolcrib_core::{CallVerdict, call_middleware};
///
/// let guard = call_middleware("office-hours", |call| {
///     Ok(if call.tool.annotations().destructive {
///         CallVerdict::Deny("nothing is deleted at night; try again in the morning".into())
///     } else {
///         CallVerdict::Proceed
///     })
/// });
/// # let _ = guard;
/// ```
pub fn call_middleware<F>(name: impl Into<Arc<str>>, decide: F) -> impl Middleware
where
    F: Fn(&PendingCall<'_>) -> Result<CallVerdict, Box<dyn Error + Send + Sync>>
        + Send
        + Sync
        + 'static,
{
    Deciding { name: name.into(), decide }
}

struct Deciding<F> {
    name: Arc<str>,
    decide: F,
}

impl<F> Middleware for Deciding<F>
where
    F: Fn(&PendingCall<'_>) -> Result<CallVerdict, Box<dyn Error + Send + Sync>>
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
    ) -> BoxFuture<'a, Result<CallVerdict, Box<dyn Error + Send + Sync>>> {
        Box::pin(async move { (self.decide)(&call) })
    }
}
