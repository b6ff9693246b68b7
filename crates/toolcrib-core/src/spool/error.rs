//! Why something cannot be kept, or not be read any more.

use std::{io, sync::Arc};

use super::SpoolWriter;

/// A content that cannot be kept or read. The texts name no path and no other owner, so a model may
/// read them; the system's own words are the [source](std::error::Error::source).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpoolError {
    /// This owner has nothing under the id: it never had, or it was removed, or has expired.
    #[error("there is no artifact `{id}`")]
    Unknown {
        /// The id asked for.
        id: Arc<str>,
    },
    /// The id is in use.
    #[error("there is an artifact `{id}` already")]
    Taken {
        /// The id.
        id: Arc<str>,
    },
    /// What the store writes to has no room left.
    #[error("the disk is full")]
    Full {
        /// What the system said.
        source: io::Error,
    },
    /// It is more than one turn or session may keep.
    #[error("it is more than the {limit} bytes that a {whose} may keep")]
    Quota {
        /// How many bytes may be kept.
        limit: u64,
        /// Whose limit it is: `turn` or `session`.
        whose: &'static str,
    },
    /// The conversation that it would belong to has ended, and what was kept of it was let go of.
    #[error("the conversation that it belongs to is over")]
    Over,
    /// It was kept, and was taken away behind the store's back.
    #[error("the content of this artifact is no longer there")]
    Gone {
        /// What the system said.
        source: io::Error,
    },
    /// The system failed.
    #[error("it could not be {doing}")]
    Io {
        /// What was not done, such as `written`.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl SpoolError {
    /// What a failure of the system means to who reads or writes: a full disk, an exhausted quota of
    /// the system and a limit on the size of files are [`Full`](Self::Full), something that is not
    /// found is [`Gone`](Self::Gone).
    pub fn of_io(doing: &'static str, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => Self::Full { source },
            io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof => Self::Gone { source },
            _ => Self::Io { doing, source },
        }
    }

    /// That a result was not kept and why, with the system's own words: for the operator.
    pub fn why_not_kept(&self) -> String {
        match std::error::Error::source(self) {
            Some(source) => format!("the result was not kept: {self}: {source}"),
            None => format!("the result was not kept: {self}"),
        }
    }
}

/// A content that was written and is not kept under an id.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// Somebody else has the id. Nothing is lost: another id may be tried.
    #[error("there is an artifact `{id}` already")]
    Taken {
        /// The id.
        id: Arc<str>,
        /// All that was written.
        writer: Box<dyn SpoolWriter>,
    },
    /// The store failed, and nothing of it is left.
    #[error(transparent)]
    Failed(#[from] SpoolError),
}

impl From<CommitError> for SpoolError {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Taken { id, .. } => Self::Taken { id },
            CommitError::Failed(error) => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_from_other_failures() {
        let of = |kind: io::ErrorKind| SpoolError::of_io("written", kind.into()).to_string();
        assert_eq!(of(io::ErrorKind::StorageFull), "the disk is full");
        assert_eq!(of(io::ErrorKind::QuotaExceeded), "the disk is full");
        assert_eq!(of(io::ErrorKind::NotFound), "the content of this artifact is no longer there");
        assert_eq!(of(io::ErrorKind::PermissionDenied), "it could not be written");
    }
    #[test]
    fn an_operator_reads_the_systems_own_words_where_there_are_some() {
        let full = SpoolError::Full { source: io::Error::other("no space on sda1") };
        assert_eq!(
            full.why_not_kept(),
            "the result was not kept: the disk is full: no space on sda1"
        );
        let over = "the result was not kept: the conversation that it belongs to is over";
        assert_eq!(SpoolError::Over.why_not_kept(), over);
    }
}
