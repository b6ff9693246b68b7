//! Functions as tool bodies.

use std::{any::Any, future::Future, marker::PhantomData, sync::Arc};

use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    ToolBody,
    context::ToolContext,
    output::{IntoToolOutput, ToolError, ToolOutput},
};

/// An async function.
pub(super) struct Handler<A, F> {
    function: F,
    args: PhantomData<fn(A)>,
}

impl<A, F> Handler<A, F> {
    pub(super) fn new(function: F) -> Self {
        Self { function, args: PhantomData }
    }
}

impl<A, F, Fut> ToolBody for Handler<A, F>
where
    A: DeserializeOwned + Send + 'static,
    F: Fn(A, ToolContext) -> Fut + Send + Sync + 'static,
    Fut: Future + Send + 'static,
    Fut::Output: IntoToolOutput,
{
    fn call(
        self: Arc<Self>,
        args: Value,
        cx: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let args = typed(args)?;
            (self.function)(args, cx).await.into_tool_output()
        })
    }
}

/// A blocking function, run on the blocking pool.
pub(super) struct BlockingHandler<A, F> {
    function: Arc<F>,
    args: PhantomData<fn(A)>,
}

impl<A, F> BlockingHandler<A, F> {
    pub(super) fn new(function: F) -> Self {
        Self { function: Arc::new(function), args: PhantomData }
    }
}

impl<A, F, T> ToolBody for BlockingHandler<A, F>
where
    A: DeserializeOwned + Send + 'static,
    F: Fn(A, ToolContext) -> T + Send + Sync + 'static,
    T: IntoToolOutput + 'static,
{
    fn call(
        self: Arc<Self>,
        args: Value,
        cx: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let args = typed(args)?;
            let function = Arc::clone(&self.function);
            match tokio::task::spawn_blocking(move || function(args, cx).into_tool_output()).await {
                Ok(outcome) => outcome,
                Err(error) => match error.try_into_panic() {
                    // The engine converts a panic of the body into that call's failure.
                    Ok(panic) => std::panic::resume_unwind(panic),
                    Err(error) => Err(error.into()),
                },
            }
        })
    }

    /// The body only waits for the blocking pool.
    fn runs_inline(&self) -> bool {
        true
    }
}

/// The schema was validated; remaining failures come from types that are stricter than their
/// schema, such as small integers.
///
/// A function that takes [`Value`] receives the validated instance: reading it again would expand
/// reserved keys of `serde_json`.
fn typed<A: DeserializeOwned + 'static>(args: Value) -> Result<A, ToolError> {
    let mut args = Some(args);
    if let Some(same) = (&mut args as &mut dyn Any).downcast_mut::<Option<A>>()
        && let Some(args) = same.take()
    {
        return Ok(args);
    }
    let args = args.unwrap_or_default();
    // Path tracking costs more than most calls spend on their arguments.
    if let Ok(args) = A::deserialize(&args) {
        return Ok(args);
    }
    serde_path_to_error::deserialize(args).map_err(|error| {
        let at = error.path().to_string();
        let place =
            if at == "." { "the arguments do".into() } else { format!("argument `{at}` does") };
        let mut problem = format!("{place} not have the type that the tool expects");
        // The text before it in serde's message may quote the value.
        if let Some((_, expected)) = error.inner().to_string().rsplit_once("expected ") {
            problem = format!("{problem}: {expected}");
        }
        ToolError::input_invalid(problem).caused_by(error)
    })
}
