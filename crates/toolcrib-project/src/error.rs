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
    /// There is no such folder.
    #[error("there is no folder `{}`; name the one in which {PROJECT_FILE} lies", dir.display())]
    NoFolder {
        /// The folder.
        dir: PathBuf,
    },
    /// It is a file.
    #[error("`{}` is a file; name the folder in which {PROJECT_FILE} lies", path.display())]
    NotAFolder {
        /// The file.
        path: PathBuf,
    },
    /// There is no project file in the folder.
    #[error(
        "there is no {PROJECT_FILE} in `{}`; `toolcrib init` writes a small project",
        dir.display()
    )]
    NoProject {
        /// The folder.
        dir: PathBuf,
    },
    /// The model that the [options](crate::LoadOptions::model) name cannot be used. What is wrong
    /// inside its script is among the [`Diagnostics`](Self::Diagnostics).
    #[error("{problem}")]
    Model {
        /// What is wrong, with what to write instead.
        problem: String,
    },
    /// A file of [`imports`](crate::LoadOptions::imports) cannot be read. What is wrong inside it is
    /// among the [`Diagnostics`](Self::Diagnostics).
    #[error("{}: {problem}", path.display())]
    Import {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// There is no project whose folder could keep what is written, no state folder was chosen, and
    /// the user has no home.
    #[error("no state folder: neither XDG_STATE_HOME nor HOME is set; choose one")]
    NoState,
    /// Its files are fine, and a declared database cannot be used: another process is in the way,
    /// or its file is damaged.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The state folder cannot be made or used.
    #[error("the state folder {} cannot be used: {source}; choose another", path.display())]
    State {
        /// The folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The [consent](crate::LoadOptions::consent) refused the project.
    #[error("{message}")]
    NotTrusted {
        /// Why, and what to do.
        message: String,
    },
    /// The [consent](crate::LoadOptions::consent) refused to replace the databases. They stay as they
    /// were.
    #[error("the databases were not replaced")]
    NotReplaced,
    /// Cancelled before it was done.
    #[error("cancelled while the project was loaded")]
    Cancelled,
}
