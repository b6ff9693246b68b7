//! Why a project cannot be loaded.

use std::{io, path::PathBuf};

use toolcrib_config::Diagnostics;
use toolcrib_scope::database::DatabaseError;

use crate::PROJECT_FILE;

/// A project that cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// Something is wrong in the project's files. Warnings are among the problems too.
    #[error("{0}")]
    Diagnostics(Diagnostics),
    /// There is no project file in the folder.
    #[error("there is no {PROJECT_FILE} in {}; `init` writes a small project", dir.display())]
    NoProject {
        /// The folder.
        dir: PathBuf,
    },
    /// Its files are fine, and a declared database cannot be used: another process is in the way,
    /// or its file is damaged.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The state folder cannot be made.
    #[error("the state folder {} cannot be made: {source}; choose another", path.display())]
    State {
        /// The folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Cancelled before it was done.
    #[error("cancelled while the project was loaded")]
    Cancelled,
}
