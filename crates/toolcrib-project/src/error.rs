//! Errors of loading a project.

use std::{io, path::PathBuf};

use toolcrib_capabilities::database::DatabaseError;
use toolcrib_config::Diagnostics;

use crate::file::PROJECT_FILE;

/// A project that cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The project's files have errors. Warnings are included.
    #[error("{0}")]
    Diagnostics(Diagnostics),
    /// The folder does not exist.
    #[error("the folder `{}` does not exist; name the folder that contains {PROJECT_FILE}", dir.display())]
    NoFolder {
        /// The folder.
        dir: PathBuf,
    },
    /// The path is a file.
    #[error("`{}` is a file; name the folder that contains {PROJECT_FILE}", path.display())]
    NotAFolder {
        /// The file.
        path: PathBuf,
    },
    /// The folder contains no project file.
    #[error(
        "`{}` contains no {PROJECT_FILE}; `toolcrib init` writes a small project",
        dir.display()
    )]
    NoProject {
        /// The folder.
        dir: PathBuf,
    },
    /// The model of the [options](crate::user::options::LoadOptions::model) cannot be used. Errors inside its
    /// script are among the [`Diagnostics`](Self::Diagnostics).
    #[error("{problem}")]
    Model {
        /// The problem, with what to write instead.
        problem: String,
    },
    /// A file of [`imports`](crate::user::options::LoadOptions::imports) cannot be read. Errors inside it are
    /// among the [`Diagnostics`](Self::Diagnostics).
    #[error("{}: {problem}", path.display())]
    Import {
        /// The file.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
    /// No state folder was chosen, the project has no folder for it, and the user has no home.
    #[error("no state folder: neither XDG_STATE_HOME nor HOME is set; choose one")]
    NoState,
    /// A declared database cannot be used, though the project's files are valid: another process
    /// uses it, or its file is damaged.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The state folder cannot be created or used.
    #[error("the state folder {} cannot be used: {source}; choose another", path.display())]
    State {
        /// The folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The [consent](crate::user::options::LoadOptions::consent) refused the project.
    #[error("{message}")]
    NotTrusted {
        /// The reason, and the next step.
        message: String,
    },
    /// The [consent](crate::user::options::LoadOptions::consent) refused to replace the databases. They are
    /// unchanged.
    #[error("the databases were not replaced")]
    NotReplaced,
    /// Cancelled before the load was finished.
    #[error("cancelled while the project was loaded")]
    Cancelled,
}
