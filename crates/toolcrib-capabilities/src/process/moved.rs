//! The report about a file that a sandbox moved away.

use std::{fmt, path::PathBuf};

/// A file, or a folder, that a program in a sandbox made and that would run or steer code when a person
/// opens the folder around it, enters it, or uses version control in it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MovedFile {
    /// The path of the file before it moved.
    pub path: PathBuf,
    /// Why it is protected, or why it is still there.
    pub reason: String,
    /// Whether it was moved to the trash, or beside, under a name that nothing reads.
    pub is_moved: bool,
}

impl fmt::Display for MovedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, reason, is_moved } = self;
        let path = path.display().to_string();
        let (path, what) =
            (path.escape_debug(), if *is_moved { "moved to the trash" } else { "not moved" });
        write!(f, "[protected] {path} was {what}: {reason}")
    }
}
