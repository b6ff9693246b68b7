//! A person decides on calls that a policy rule with the effect `ask` matches. This module has the
//! port [`ApprovalStore`] and its types; the feature `approvals` adds `TerminalApprover`, which asks
//! at the terminal, and `Approvals`, which let calls wait for a decision from another process. The
//! port of deciding itself is [`Approver`](crate::policy::Approver).

#[cfg(feature = "approvals")]
#[doc(inline)]
pub use toolcrib_approvals::*;
#[doc(inline)]
pub use toolcrib_core::{
    ApprovalGrant, ApprovalState, ApprovalStore, ApprovalStoreError, ArgumentPart,
    NotStorableError, ParkedCall, SecretReference, Settlement, StoredApproval, StoredArguments,
};
