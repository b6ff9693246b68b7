use std::fmt;

use serde::Serialize;

/// Why a tool is missing, for a client that may know of the tool: one of these fixed texts, which
/// contain nothing of a definition. The [`Reason`](crate::Reason) is for the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MissingReason {
    /// The definition cannot be read, or breaks a limit.
    Invalid,
    /// A check refuses the definition, or it contains text that may not reach a model.
    Refused,
    /// It is new since its server was pinned.
    New,
    /// It has changed since it was pinned.
    Changed,
    /// Another tool has its name.
    SameName,
    /// It claims to be of another source.
    ForeignOrigin,
    /// It can only run as a task.
    OnlyAsTask,
    /// Its schema cannot be enforced.
    Schema,
    /// Its own check says that it is not available.
    NotAvailable,
    /// Its source cannot be listed.
    NotReady,
}

impl MissingReason {
    /// The fixed text, about the tool as `it`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "its definition is invalid",
            Self::Refused => "a check refuses its definition",
            Self::New => "it is new, and the operator has not accepted it",
            Self::Changed => "its definition has changed, and the operator has not accepted it",
            Self::SameName => "another tool has its name",
            Self::ForeignOrigin => "it claims to be of another source",
            Self::OnlyAsTask => "it can only run as a task, which is not supported",
            Self::Schema => "its schema cannot be enforced",
            Self::NotAvailable => "it is not available now",
            Self::NotReady => "its server is not ready",
        }
    }

    /// Whether a reader of a catalog may still want the definition: it is complete, and not trusted.
    pub fn is_of_content(self) -> bool {
        matches!(self, Self::Refused | Self::New | Self::Changed)
    }
}

impl fmt::Display for MissingReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
