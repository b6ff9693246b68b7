//! Which folder is the project's.

use std::path::{Path, PathBuf};

use crate::PROJECT_FILE;

/// No folder on the way up is a project's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no {PROJECT_FILE} in `{}` or in a folder above it; `toolcrib init` writes a small \
     project",
    start.display()
)]
pub struct NoProject {
    /// Where the search began.
    pub start: PathBuf,
}

/// The nearest folder with a `toolcrib.toml`: `start` itself, else the first above it.
///
/// # Errors
/// [`NoProject`] when there is none up to the root, or `start` itself is not there.
pub fn find(start: &Path) -> Result<PathBuf, NoProject> {
    let none = || NoProject { start: start.to_owned() };
    let start = start.canonicalize().map_err(|_| none())?;
    start
        .ancestors()
        .find(|dir| dir.join(PROJECT_FILE).is_file())
        .map(Path::to_owned)
        .ok_or_else(none)
}
