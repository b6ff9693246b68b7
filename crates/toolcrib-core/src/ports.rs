//! Ports that a call passes on its way: each is absent or given when an engine is built.

use std::{error::Error, sync::Arc};

use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::{
    context::ToolContext,
    digest::Digest,
    identity::Identity,
    output::{ErrorCode, ToolError, ToolOutput},
    tool::Tool,
};

/// A call on its way to being run: what middleware, approvers, scopers and journals see of it.
#[derive(Debug)]
pub struct PendingCall<'a> {
    /// The tool.
    pub tool: &'a Tool,
    /// The call's id, as the model gave it.
    pub call_id: &'a Arc<str>,
    /// What it passes, validated. To a middleware: what will run unless one rewrites it; to all
    /// others: exactly what will run.
    pub args: &'a Value,
    /// The content id of tool and arguments.
    pub args_digest: Digest,
    /// On whose behalf.
    pub identity: &'a Identity,
    /// The run's id.
    pub run_id: &'a Arc<str>,
    /// Who acts: the id of the turn's personality.
    pub personality: &'a Arc<str>,
}

/// What an approver says of a call that a rule wants asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Approval {
    /// It may run.
    Approved,
    /// It may not, and what the model is told.
    Refused(String),
}

/// Decides on calls that a rule with the effect `ask` matches, such as [`Rule::ask`](crate::Rule::ask).
/// Without one they are denied, unless the turn has people to ask. A panicking approver denies. [`call_approver`] makes one of a
/// function.
pub trait Approver: Send + Sync + 'static {
    /// Decides. May wait for a person; cancellation drops the future.
    fn approve<'a>(&'a self, call: PendingCall<'a>) -> BoxFuture<'a, Approval>;
}

/// An [`Approver`] made from a function that looks at the call and gives a future, which may wait
/// for a person. What the future needs of the call it takes out first.
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
    Approving(decide)
}

struct Approving<F>(F);

impl<F, Fut> Approver for Approving<F>
where
    F: Fn(&PendingCall<'_>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Approval> + Send + 'static,
{
    fn approve<'a>(&'a self, call: PendingCall<'a>) -> BoxFuture<'a, Approval> {
        // The function runs where a panic of it denies, as one of the future does.
        Box::pin(async move { (self.0)(&call).await })
    }
}

/// Bounds a call before it runs: hands it what it declared, refuses what cannot be enforced.
pub trait Scoper: Send + Sync + 'static {
    /// The context that the body gets.
    ///
    /// # Errors
    /// A refusal; the body is not run.
    fn scope(&self, call: PendingCall<'_>, cx: ToolContext) -> Result<ToolContext, ToolError>;
}

/// Writes down that a call is about to have its effect, and how it ended.
///
/// Intent before effect, outcome after: a process that is killed at any instant can then tell
/// what may have happened.
pub trait Journal: Send + Sync + 'static {
    /// Called before the body runs; it only runs once this has succeeded.
    fn intent<'a>(
        &'a self,
        call: PendingCall<'a>,
    ) -> BoxFuture<'a, Result<(), Box<dyn Error + Send + Sync>>>;

    /// Called after the body settled; `None` is success.
    fn outcome<'a>(&'a self, call: PendingCall<'a>, code: Option<ErrorCode>) -> BoxFuture<'a, ()>;
}

/// Trims one tool's output to what matters, before anything is cut. Deterministic and free of
/// side effects; one that panics leaves the output as it was.
pub trait Reducer: Send + Sync + 'static {
    /// The tool whose output it knows, by exact name.
    fn tool_name(&self) -> &str;

    /// The trimmed output. What the call cost is kept whatever comes back.
    fn reduce(&self, output: ToolOutput, args: &Value) -> ToolOutput;
}
