//! The port to the marks of decisions that are over.

use std::fmt;

use crate::store_error::SessionStoreError;

/// The statement of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ApprovalMark {
    /// The decision on a call was used.
    Used,
    /// The grant was revoked.
    Revoked,
}

impl ApprovalMark {
    /// Every mark of an approval.
    pub const ALL: [Self; 2] = [Self::Used, Self::Revoked];

    /// The mark as one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Used => "used",
            Self::Revoked => "revoked",
        }
    }
}

/// Marks decisions that are over, for all machines with one key. A mark is only ever added until its
/// decision would have expired, so an older copy of the [`ApprovalStore`](super::ApprovalStore) revives no
/// decision. A person who sets that store back must not set the marks back too: keep them in another
/// database, or under a role that only inserts. All methods block.
pub trait MarkStore: Send + Sync + 'static {
    /// Marks a decision, durably: of several that do so, one gets `true`. `until_ms` is the end of its
    /// validity, in milliseconds since 1970.
    ///
    /// # Errors
    /// A failure of the store; the decision must not be used then.
    fn mark(&self, mark: ApprovalMark, id: &str, until_ms: u64) -> Result<bool, SessionStoreError>;

    /// The ids that have the mark, of those given, in any order.
    ///
    /// # Errors
    /// A failure of the store; none of them must be used then.
    fn marked(&self, mark: ApprovalMark, ids: &[&str]) -> Result<Vec<String>, SessionStoreError>;
}

impl fmt::Debug for dyn MarkStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MarkStore")
    }
}
