//! Places in files.

use std::{fmt, sync::Arc};

/// A place in a file. Prints as `file:line`, for messages that point at another place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spot {
    /// The file's name in messages.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

impl Spot {
    /// The start of a file, for problems with a file as a whole.
    pub fn start_of(file: impl Into<Arc<str>>) -> Self {
        Self { file: file.into(), line: 1, column: 1 }
    }

    /// The place after `text`, if `text` starts here.
    #[must_use]
    pub fn after(&self, text: &str) -> Self {
        let file = Arc::clone(&self.file);
        match text.rsplit_once('\n') {
            None => Self { file, line: self.line, column: self.column + text.chars().count() },
            Some((before, last)) => Self {
                file,
                line: self.line + 1 + before.matches('\n').count(),
                column: 1 + last.chars().count(),
            },
        }
    }
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A value and its place, for later checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    /// The start of the value.
    pub at: Spot,
}
