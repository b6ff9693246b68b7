//! The search for the project's folder.

use std::path::{Path, PathBuf};

use crate::file::PROJECT_FILE;

/// No folder upward contains a project file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "neither `{}` nor a folder above it contains {PROJECT_FILE}; `toolcrib init` writes a small \
     project",
    start.display()
)]
pub struct NoProjectError {
    /// The start of the search.
    pub start: PathBuf,
}

/// The nearest folder with a `toolcrib.toml`: `start` itself, else the first above it.
///
/// # Errors
/// [`NoProjectError`] if there is none up to the root, or if `start` does not exist.
pub fn find(start: &Path) -> Result<PathBuf, NoProjectError> {
    let none = || NoProjectError { start: start.to_owned() };
    let start = start.canonicalize().map_err(|_| none())?;
    start
        .ancestors()
        .find(|dir| dir.join(PROJECT_FILE).is_file())
        .map(Path::to_owned)
        .ok_or_else(none)
}
