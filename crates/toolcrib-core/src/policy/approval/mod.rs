//! Approval of calls: the approver, its request, and the store of waiting calls.

mod arguments;
mod marks;
mod store;

use std::{fmt, future::ready, ops::Deref, sync::Arc};

use futures_util::future::BoxFuture;

pub use self::{
    arguments::{ArgumentPart, NotStorableError, SecretReference, StoredArguments},
    marks::{ApprovalMark, MarkStore},
    store::{
        ApprovalGrant, ApprovalState, ApprovalStore, ApprovalStoreError, ParkedCall, Settlement,
        StoredApproval,
    },
};
use crate::{
    policy::Rule,
    tool::{
        call_preview::CallPreview,
        clarification::{Clarification, ClarificationOutcome},
        pending_call::PendingCall,
    },
};

/// A call that a rule with the effect `ask` wants approved. It derefs to the [call](PendingCall).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ApprovalRequest<'a> {
    /// The call. Exactly these arguments run once it is approved.
    pub call: PendingCall<'a>,
    /// The rule that asks.
    pub rule: &'a Rule,
    /// The arguments as they may be stored and shown: a known secret is a reference.
    pub arguments: &'a Result<StoredArguments, NotStorableError>,
    /// The number of calls of this tool that the model makes at the same time, this one included. The
    /// others are asked about too, unless a check or a rule decides on them, so that an approver may
    /// wait for them and ask once.
    pub alike: usize,
    /// The position of this call among them, from 0.
    pub position: usize,
    /// The change that the call would make, if its tool [shows that](crate::ToolBuilder::preview). It may have
    /// changed when the call runs.
    pub preview: Option<CallPreview>,
}

impl<'a> ApprovalRequest<'a> {
    /// A request for one call.
    pub fn new(
        call: PendingCall<'a>,
        rule: &'a Rule,
        arguments: &'a Result<StoredArguments, NotStorableError>,
    ) -> Self {
        Self { call, rule, arguments, alike: 1, position: 0, preview: None }
    }
}

impl<'a> Deref for ApprovalRequest<'a> {
    type Target = PendingCall<'a>;

    fn deref(&self) -> &Self::Target {
        &self.call
    }
}

/// An approver's decision on a call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Approval {
    /// The call may run.
    Approved,
    /// The call may not run; the text is for the model.
    Refused(String),
    /// No decision was possible, and the call may not run.
    Failed {
        /// The text for the model.
        message: String,
        /// The cause, for the operator.
        cause: String,
    },
    /// The decision is open, and the call waits in a store; the text is for the model. Its result is
    /// [`AwaitingApproval`](crate::ErrorCode::AwaitingApproval). A run in a session ends, and a
    /// resumed run makes the call again.
    Parked(String),
    /// Like [`Parked`](Self::Parked), after an earlier decision on the call whose time was over.
    Expired(String),
}

/// Decides on calls that match a rule with the effect `ask`, such as
/// [`Rule::ask`](crate::Rule::ask). Without an approver they are denied, unless the turn has people
/// to ask. An approver that panics denies. [`call_approver`] makes one of a function; an [`Arc`] of one
/// is an approver, too.
pub trait Approver: Send + Sync + 'static {
    /// Decides. May wait for a person; cancellation drops the future.
    fn approve<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval>;

    /// The arguments of a call that this approver has [parked](Approval::Parked) in an earlier run
    /// of the session: a resumed run makes the call with exactly these. Default: none.
    fn parked<'a>(&'a self, call_id: &'a Arc<str>) -> BoxFuture<'a, Option<StoredArguments>> {
        let _ = call_id;
        Box::pin(ready(None))
    }

    /// The text for the model of a denial of such a call, for one whose arguments cannot be made
    /// again. The denial counts, and is over then. Default: none.
    fn denied<'a>(&'a self, call_id: &'a Arc<str>) -> BoxFuture<'a, Option<String>> {
        let _ = call_id;
        Box::pin(ready(None))
    }

    /// Asks the person who decides a question of a model. Default: no person can be asked.
    fn clarify<'a>(&'a self, question: &'a Clarification) -> BoxFuture<'a, ClarificationOutcome> {
        let _ = question;
        Box::pin(ready(ClarificationOutcome::NoPerson("the approver asks no questions".into())))
    }
}

impl<A: Approver + ?Sized> Approver for Arc<A> {
    fn approve<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        (**self).approve(request)
    }

    fn parked<'a>(&'a self, call_id: &'a Arc<str>) -> BoxFuture<'a, Option<StoredArguments>> {
        (**self).parked(call_id)
    }

    fn denied<'a>(&'a self, call_id: &'a Arc<str>) -> BoxFuture<'a, Option<String>> {
        (**self).denied(call_id)
    }

    fn clarify<'a>(&'a self, question: &'a Clarification) -> BoxFuture<'a, ClarificationOutcome> {
        (**self).clarify(question)
    }
}

impl fmt::Debug for dyn Approver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Approver")
    }
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
    F: Fn(&ApprovalRequest<'_>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Approval> + Send + 'static,
{
    FnApprover(decide)
}

struct FnApprover<F>(F);

impl<F, Fut> Approver for FnApprover<F>
where
    F: Fn(&ApprovalRequest<'_>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Approval> + Send + 'static,
{
    fn approve<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        // The function runs inside the future, so that its panic denies as the future's does.
        Box::pin(async move { (self.0)(&request).await })
    }
}
