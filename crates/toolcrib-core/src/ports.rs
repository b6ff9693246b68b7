//! Optional ports of the pipe, set when an engine is built.

use std::{error::Error, fmt, sync::Arc};

use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::{
    context::ToolContext,
    digest::Digest,
    identity::Identity,
    output::{ErrorCode, ToolError, ToolOutput},
    result::ToolResult,
    tool::Tool,
};

/// A call before it runs, as seen by middleware, approvers, granters and journals.
#[derive(Debug)]
pub struct PendingCall<'a> {
    /// The tool.
    pub tool: &'a Tool,
    /// The call's id, given by the model.
    pub call_id: &'a Arc<str>,
    /// The validated arguments. For a middleware: the arguments that run unless it rewrites them;
    /// for all others: exactly the arguments that run.
    pub args: &'a Value,
    /// The content id of tool and arguments.
    pub args_digest: Digest,
    /// The identity that the run acts for.
    pub identity: &'a Identity,
    /// The run's id.
    pub turn_id: &'a Arc<str>,
    /// The id of the turn's personality.
    pub personality: &'a Arc<str>,
}

/// An approver's decision on a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Approval {
    /// The call may run.
    Approved,
    /// The call may not run; the text is for the model.
    Refused(String),
}

/// Decides on calls that match a rule with the effect `ask`, such as
/// [`Rule::ask`](crate::Rule::ask). Without an approver they are denied, unless the turn has people
/// to ask. An approver that panics denies. [`call_approver`] makes one of a function.
pub trait Approver: Send + Sync + 'static {
    /// Decides. May wait for a person; cancellation drops the future.
    fn approve<'a>(&'a self, call: PendingCall<'a>) -> BoxFuture<'a, Approval>;
}

/// Makes an [`Approver`] of a function that receives the call and returns a future, which may wait
/// for a person. The future cannot borrow the call: copy what it needs first.
///
/// ```
/// use toolcrib_core::{Approval, call_approver};
///
/// # async fn yes_or_no(question: String) -> bool { question.len() > 3 }
/// let approver = call_approver(|call| {
///     let question = format!("Run {} with {}?", call.tool.name(), call.args);
///     async move {
///         if yes_or_no(question).await {
///             Approval::Approved
///         } else {
///             Approval::Refused("the user said no; ask what they want instead".into())
///         }
///     }
/// });
/// # let _ = approver;
/// ```
pub fn call_approver<F, Fut>(decide: F) -> impl Approver
where
    F: Fn(&PendingCall<'_>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Approval> + Send + 'static,
{
    FnApprover(decide)
}

struct FnApprover<F>(F);

impl<F, Fut> Approver for FnApprover<F>
where
    F: Fn(&PendingCall<'_>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Approval> + Send + 'static,
{
    fn approve<'a>(&'a self, call: PendingCall<'a>) -> BoxFuture<'a, Approval> {
        // The function runs inside the future, so that its panic denies as the future's does.
        Box::pin(async move { (self.0)(&call).await })
    }
}

/// Grants a call its declared capabilities before it runs, and refuses capabilities that cannot be
/// enforced.
pub trait CapabilityGranter: Send + Sync + 'static {
    /// Returns the context for the body.
    ///
    /// # Errors
    /// A refusal; the body is not run.
    fn grant(&self, call: PendingCall<'_>, cx: ToolContext) -> Result<ToolContext, ToolError>;
}

/// Records the intent of a call before its effect and its outcome afterwards.
///
/// After a process is killed at any instant, the journal shows which effects may have happened.
pub trait Journal: Send + Sync + 'static {
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
    fn reduce(&self, output: ToolOutput, args: &Value) -> ToolOutput;
}
