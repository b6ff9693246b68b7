use std::sync::Arc;

use toolcrib_core::ApprovalStoreError;

use crate::key::KeyError;

/// A decision that cannot be made. The text is for the operator.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApprovalError {
    /// The store cannot be used, or has no such call.
    #[error(transparent)]
    Store(#[from] ApprovalStoreError),
    /// The key cannot be used.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The call waited too long.
    #[error("the approval `{id}` has expired; the call has to be made again")]
    Expired {
        /// The id.
        id: Arc<str>,
    },
    /// The stored call is not the one that was parked.
    #[error(
        "the stored call of the approval `{id}` was changed after it was parked, so it is not \
         settled; the call has to be made again"
    )]
    Changed {
        /// The id.
        id: Arc<str>,
    },
    /// The grant would not cover the call that it is made from.
    #[error("the call itself does not match `{condition}`, so the grant would not cover it")]
    NotCovered {
        /// The condition.
        condition: Arc<str>,
    },
    /// A grant cannot be made from a call with a secret.
    #[error(
        "the arguments of `{id}` contain a secret, so no grant can be made of them; approve the \
         call alone"
    )]
    GrantOfSecret {
        /// The id.
        id: Arc<str>,
    },
}
