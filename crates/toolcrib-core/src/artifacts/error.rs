//! Errors of storing and reading artifacts.

use std::{io, sync::Arc};

use super::StoreWriter;

/// An error of an artifact store. Its text contains no path and no other owner, so a model may read
/// it; the operating system's message is the [source](std::error::Error::source).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArtifactStoreError {
    /// This owner has no artifact under the id: it never existed, was removed, or has expired.
    #[error("artifact `{id}` does not exist")]
    Unknown {
        /// The requested id.
        id: Arc<str>,
    },
    /// The id is in use.
    #[error("artifact `{id}` already exists")]
    Taken {
        /// The id.
        id: Arc<str>,
    },
    /// The disk is full.
    #[error("the disk is full")]
    Full {
        /// The system's error.
        source: io::Error,
    },
    /// It exceeds the limit of a turn or session.
    #[error("it exceeds the limit of {limit} bytes per {whose}")]
    Quota {
        /// The limit in bytes.
        limit: u64,
        /// The scope of the limit: `turn` or `session`.
        whose: &'static str,
    },
    /// The conversation has ended, and its artifacts were removed.
    #[error("its conversation has ended")]
    Over,
    /// The content was deleted from the store by another program.
    #[error("the content of this artifact was deleted from the store")]
    Gone {
        /// The system's error.
        source: io::Error,
    },
    /// An I/O error.
    #[error("it could not be {doing}")]
    Io {
        /// The failed operation, such as `written`.
        doing: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

impl ArtifactStoreError {
    /// Converts an I/O error: a full disk, an exceeded quota of the system and a limit on the size
    /// of files become [`Full`](Self::Full), a missing file becomes [`Gone`](Self::Gone).
    pub fn of_io(doing: &'static str, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => Self::Full { source },
            io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof => Self::Gone { source },
            _ => Self::Io { doing, source },
        }
    }

    /// The message that a result was not kept, with the cause and the system's error: for the
    /// operator.
    pub fn operator_text(&self) -> String {
        match std::error::Error::source(self) {
            Some(source) => format!("the result was not kept: {self}: {source}"),
            None => format!("the result was not kept: {self}"),
        }
    }
}

/// A content that was written but not committed under an id.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// The id is taken. The writer is returned, so that another id can be tried.
    #[error("artifact `{id}` already exists")]
    Taken {
        /// The id.
        id: Arc<str>,
        /// The writer with all that was written.
        writer: Box<dyn StoreWriter>,
    },
    /// The store failed, and nothing was kept.
    #[error(transparent)]
    Failed(#[from] ArtifactStoreError),
}

impl From<CommitError> for ArtifactStoreError {
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
        let of =
            |kind: io::ErrorKind| ArtifactStoreError::of_io("written", kind.into()).to_string();
        assert_eq!(of(io::ErrorKind::StorageFull), "the disk is full");
        assert_eq!(of(io::ErrorKind::QuotaExceeded), "the disk is full");
        assert_eq!(
            of(io::ErrorKind::NotFound),
            "the content of this artifact was deleted from the store"
        );
        assert_eq!(of(io::ErrorKind::PermissionDenied), "it could not be written");
    }
    #[test]
    fn an_operator_reads_the_systems_own_words_where_there_are_some() {
        let full = ArtifactStoreError::Full { source: io::Error::other("no space on sda1") };
        assert_eq!(
            full.operator_text(),
            "the result was not kept: the disk is full: no space on sda1"
        );
        let over = "the result was not kept: its conversation has ended";
        assert_eq!(ArtifactStoreError::Over.operator_text(), over);
    }
}
