//! Loads a project in four phases, and reports all errors at once:
//!
//! ```text
//! Declared     the files, read; pure
//! Bound        the names, resolved; all checks between sections
//! ProjectPlan  everything that would be opened or dialed; trust decides on it
//! Project      opened
//! ```

use std::path::Path;

use super::{Project, declared::Declared, plan::ProjectPlan};
use crate::{
    error::LoadError,
    user::{options::LoadOptions, trust::consent::Review},
};

impl Project {
    /// Loads the project in a folder. Blocking: it reads files and may create databases.
    ///
    /// In [`Mode::Run`](crate::Mode::Run) nothing is created while the project's files have errors. One
    /// exception: databases are created before the statements over them are checked, one after the
    /// other, so after a failed seed the earlier databases exist.
    ///
    /// # Errors
    /// [`LoadError`], with all errors of the project's files at once.
    pub fn load(dir: &Path, options: &LoadOptions) -> Result<Self, LoadError> {
        ProjectPlan::of_folder(dir, options)?.open()
    }

    /// The actions that the project in a folder would perform with its user's authority. Blocking: it
    /// reads the files of the project. Nothing is opened, started or dialed.
    ///
    /// # Errors
    /// [`LoadError`], with all errors of the project's files at once, but for those that only what would
    /// be opened can show, such as an SQL statement over a table that does not exist.
    pub fn review(dir: &Path, options: &LoadOptions) -> Result<Review, LoadError> {
        ProjectPlan::of_folder(dir, options)?.into_review()
    }

    /// A project without a folder: only the servers of the [`imports`](LoadOptions::imports). Its
    /// root is this process's working folder, which is not read. Unless the options name one, its
    /// state folder is `toolcrib` in the user's state folder, `$XDG_STATE_HOME` or
    /// `~/.local/state`. Blocking, like [`load`](Self::load).
    ///
    /// # Errors
    /// [`LoadError`], with all errors of the files at once.
    pub fn of_imports(options: &LoadOptions) -> Result<Self, LoadError> {
        ProjectPlan::of_imports(options)?.open()
    }
}

impl ProjectPlan {
    /// Reads and checks the project in a folder. Blocking: it reads files. Nothing is opened.
    ///
    /// # Errors
    /// [`LoadError`], if its files cannot be read at all. All other errors are those of
    /// [`open`](Self::open), which reports them with what only opening can show.
    pub fn of_folder(dir: &Path, options: &LoadOptions) -> Result<Self, LoadError> {
        Declared::of_folder(dir, options)?.bind().plan()
    }

    /// The same for the servers of the [`imports`](LoadOptions::imports) alone, as in
    /// [`Project::of_imports`].
    ///
    /// # Errors
    /// [`LoadError`], as above.
    pub fn of_imports(options: &LoadOptions) -> Result<Self, LoadError> {
        Declared::of_imports(options)?.bind().plan()
    }
}
