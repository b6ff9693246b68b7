//! Optional ports of the pipe, set when an engine is built.

use std::{error::Error, fmt, sync::Arc};

use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::tool::{
    output::{ErrorCode, ToolOutput},
    pending_call::PendingCall,
    result::ToolResult,
};

/// Records the intent of a call before its effect and its outcome afterwards.
///
/// After a process is killed at any instant, the journal shows which effects may have happened.
pub trait Journal: Send + Sync + 'static {
    /// Called before a call waits for a middleware, an approver or another call of its resource. A
    /// journal that collects records writes them here: the wait may be long, and what is waited for
    /// may have effects. Called at any number of places before the intent. The default has no effect.
    fn before_wait(&self) -> BoxFuture<'_, Result<(), Box<dyn Error + Send + Sync>>> {
        Box::pin(async { Ok(()) })
    }

    /// Called before the body runs; the body runs only if this succeeds.
    fn intent<'a>(
        &'a self,
        call: PendingCall<'a>,
    ) -> BoxFuture<'a, Result<(), Box<dyn Error + Send + Sync>>>;

    /// Called after the body ends; the code `None` is success. The result is the one that the model
    /// reads. It is absent if it is not complete: the call may be retried, or its text waits for
    /// the part of the budget that other calls leave. Then another outcome with a result follows,
    /// or the intent of a retry.
    fn outcome<'a>(
        &'a self,
        call: PendingCall<'a>,
        code: Option<ErrorCode>,
        result: Option<&'a ToolResult>,
    ) -> BoxFuture<'a, ()>;
}

impl<J: Journal + ?Sized> Journal for Arc<J> {
    fn before_wait(&self) -> BoxFuture<'_, Result<(), Box<dyn Error + Send + Sync>>> {
        (**self).before_wait()
    }

    fn intent<'a>(
        &'a self,
        call: PendingCall<'a>,
    ) -> BoxFuture<'a, Result<(), Box<dyn Error + Send + Sync>>> {
        (**self).intent(call)
    }

    fn outcome<'a>(
        &'a self,
        call: PendingCall<'a>,
        code: Option<ErrorCode>,
        result: Option<&'a ToolResult>,
    ) -> BoxFuture<'a, ()> {
        (**self).outcome(call, code, result)
    }
}

impl fmt::Debug for dyn Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Journal")
    }
}

/// Trims one tool's output to its relevant parts before truncation. Deterministic and free of side
/// effects. If it panics, the output is unchanged.
pub trait Reducer: Send + Sync + 'static {
    /// The exact name of the tool.
    fn tool_name(&self) -> &str;

    /// Returns the trimmed output. The call's cost is kept in any case.
    fn reduce(&self, output: ToolOutput, cx: ReducerContext<'_>) -> ToolOutput;
}

impl fmt::Debug for dyn Reducer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reducer").field("tool_name", &self.tool_name()).finish_non_exhaustive()
    }
}

/// The call whose output a [`Reducer`] trims.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ReducerContext<'a> {
    /// The arguments of the call.
    pub args: &'a Value,
    /// The number of the turn in its session, from 1: a later turn has less room.
    pub turn: u32,
}

impl<'a> ReducerContext<'a> {
    /// A call with these arguments, in the first turn of a session.
    pub fn new(args: &'a Value) -> Self {
        Self { args, turn: 1 }
    }

    /// Sets the number of the turn in its session.
    #[must_use]
    pub fn turn(mut self, turn: u32) -> Self {
        self.turn = turn;
        self
    }
}
