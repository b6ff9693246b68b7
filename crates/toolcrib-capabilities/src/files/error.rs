//! Errors of files, for models and for operators.

use std::{io, path::PathBuf, sync::Arc};

use toolcrib_core::{ErrorCode, InvalidImageError, ToolError};

use super::edit::EditProblem;

/// Why an operation on a file was refused or failed. It is the cause of the [`ToolError`] that a
/// [`FilesHandle`](super::FilesHandle) returns; its text is the model's text. Paths are those that
/// the model wrote, and never targets of links.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The text is not a path below the folder.
    #[error("`{path}` {problem}")]
    Path {
        /// The text, shortened and without control characters.
        path: String,
        /// The problem; ends a sentence about the path.
        problem: &'static str,
    },
    /// There is no such file or folder.
    #[error("`{path}` does not exist; list the folder for its names")]
    NotFound {
        /// The path.
        path: String,
    },
    /// It exists and must not.
    #[error("`{path}` exists; choose another name, or change that file instead")]
    Exists {
        /// The path.
        path: String,
    },
    /// A link leads out of the folder, or in a circle.
    #[error("`{path}` is not accessible: a link in it leads out of the folder or in a circle")]
    Link {
        /// The path.
        path: String,
    },
    /// The last name is a link, which is not written through or removed.
    #[error("`{path}` is a link, which is not written or removed; use the file that it names")]
    WritesLink {
        /// The path.
        path: String,
    },
    /// The floor, which no grant lifts, protects it.
    #[error("`{path}` is protected: {reason}; no permission changes that")]
    Protected {
        /// The path.
        path: String,
        /// The reason.
        reason: &'static str,
    },
    /// It is not a file.
    #[error("`{path}` is {found}, not a file")]
    NotAFile {
        /// The path.
        path: String,
        /// The kind of the found name, with its article.
        found: &'static str,
    },
    /// It is not a folder.
    #[error("`{path}` is not a folder")]
    NotAFolder {
        /// The path.
        path: String,
    },
    /// The file has other names, possibly outside the folder.
    #[error("`{path}` has several names (hard links) and is not written; write a copy of it")]
    HardLink {
        /// The path.
        path: String,
    },
    /// The folder is granted for reading only.
    #[error("the folder `{name}` is read-only")]
    ReadOnly {
        /// The folder's name.
        name: Arc<str>,
    },
    /// The file has no write permission, or not for this user.
    #[error(
        "`{path}` is read-only: its permissions forbid to change it; nothing was changed; its user can \
         permit it with chmod u+w"
    )]
    ReadOnlyFile {
        /// The path.
        path: String,
    },
    /// The file belongs to another user or group, to whom the new content could not be given.
    #[error(
        "`{path}` belongs to another user or group, which it would not after a change; nothing was \
         changed; write another file"
    )]
    Owner {
        /// The path.
        path: String,
    },
    /// The content that a change would replace cannot be kept.
    #[error("the content of `{path}` cannot be kept for an undo, so nothing was changed: {}", plain(.source))]
    NotKept {
        /// The path.
        path: String,
        /// The system's error.
        source: io::Error,
    },
    /// No change of the path by these tools is known.
    #[error(
        "there is no change of `{path}` to undo: these tools have not changed it, or all is undone"
    )]
    NothingToUndo {
        /// The path.
        path: String,
    },
    /// The turn's personality does not reach the folder.
    #[error("the folder `{name}` is not available here")]
    NotReached {
        /// The folder's name.
        name: Arc<str>,
    },
    /// A file or a content is larger than the limit.
    #[error("`{path}` has more than {limit} bytes, the limit of this folder")]
    TooLarge {
        /// The path.
        path: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// The file was never read in this conversation, changed since, or was removed.
    #[error("`{path}` {problem}")]
    Stale {
        /// The path.
        path: String,
        /// The problem and the next step; ends a sentence about the file.
        problem: &'static str,
    },
    /// The file is not text in UTF-8.
    #[error("`{path}` ({size} bytes) is {kind}")]
    NotText {
        /// The path.
        path: String,
        /// The kind of the content; ends a sentence about the file.
        kind: &'static str,
        /// The size in bytes.
        size: u64,
    },
    /// The file is an image that is not whole, so it is not shown.
    #[error("`{path}` cannot be shown: {error}")]
    Image {
        /// The path.
        path: String,
        /// The reason.
        error: InvalidImageError,
    },
    /// An encoding of text is not known.
    #[error(
        "there is no encoding {encoding:?}; use a name such as utf-16le, windows-1252, shift_jis or \
         gb18030"
    )]
    Encoding {
        /// The name, shortened.
        encoding: String,
    },
    /// A line is beyond the end.
    #[error("`{path}` has {lines} lines; there is no line {line}")]
    NoLine {
        /// The path.
        path: String,
        /// The requested line.
        line: usize,
        /// The number of lines.
        lines: usize,
    },
    /// A character is beyond the end of its line.
    #[error("line {line} of `{path}` has {columns} characters; there is no character {column}")]
    NoColumn {
        /// The path.
        path: String,
        /// The line.
        line: usize,
        /// The requested character.
        column: usize,
        /// The number of characters.
        columns: usize,
    },
    /// The text to replace is not there exactly once.
    #[error("`{path}`: {}{problem}", numbered(*.of))]
    Edit {
        /// The path.
        path: String,
        /// Of several edits, the number of the impossible one, from 1, and the number of all.
        of: Option<(usize, usize)>,
        /// The problem, with the nearest lines.
        problem: EditProblem,
    },
    /// A pattern is not valid.
    #[error("the pattern is not valid: {problem}")]
    Pattern {
        /// The problem.
        problem: String,
    },
    /// No folder for removed files is set up.
    #[error("files of the folder `{name}` cannot be removed or restored: it has no trash folder")]
    NoTrash {
        /// The folder's name.
        name: Arc<str>,
    },
    /// It changed during the operation.
    #[error("`{path}` changed meanwhile; try again")]
    Unsettled {
        /// The path.
        path: String,
    },
    /// The system refused.
    #[error("`{path}` cannot be used: {}", plain(.source))]
    Io {
        /// The path.
        path: String,
        /// The system's error.
        source: io::Error,
    },
    /// The call was cancelled.
    #[error("cancelled")]
    Cancelled,
}

impl FileError {
    /// The cause of an error of a handle.
    pub fn of(error: &ToolError) -> Option<&Self> {
        error.source.as_deref()?.downcast_ref()
    }

    pub(super) fn io(path: &str, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::NotFound => Self::NotFound { path },
            io::ErrorKind::NotADirectory => Self::NotAFolder { path },
            _ => Self::Io { path, source },
        }
    }

    fn code(&self) -> ErrorCode {
        match self {
            Self::Stale { .. } => ErrorCode::StaleWrite,
            Self::Protected { .. }
            | Self::Link { .. }
            | Self::ReadOnly { .. }
            | Self::ReadOnlyFile { .. }
            | Self::Owner { .. } => ErrorCode::Denied,
            Self::NotReached { .. } | Self::NoTrash { .. } => ErrorCode::NotAvailable,
            Self::Cancelled => ErrorCode::Cancelled,
            Self::Unsettled { .. } | Self::Io { .. } | Self::NotKept { .. } => {
                ErrorCode::ExecutionFailed
            }
            _ => ErrorCode::InputInvalid,
        }
    }

    pub(super) fn into_tool_error(self) -> ToolError {
        ToolError::new(self.code(), self.to_string()).caused_by(self)
    }
}

fn numbered(of: Option<(usize, usize)>) -> String {
    of.map(|(number, all)| format!("edit {number} of {all}: ")).unwrap_or_default()
}

/// The kind of an error of the system, without paths and numbers.
fn plain(error: &io::Error) -> String {
    error.kind().to_string()
}

/// Why a folder cannot be used for files.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenFilesError {
    /// It does not exist or cannot be opened.
    #[error("the folder {} cannot be opened: {source}", .folder.display())]
    Io {
        /// The folder.
        folder: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// It is not a folder.
    #[error("{} is not a folder", .folder.display())]
    NotAFolder {
        /// The path.
        folder: PathBuf,
    },
    /// The floor protects it.
    #[error("{} is protected: {reason}; no permission changes that", .folder.display())]
    Protected {
        /// The folder.
        folder: PathBuf,
        /// The reason.
        reason: &'static str,
    },
}
