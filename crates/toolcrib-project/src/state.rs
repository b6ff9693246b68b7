//! The state folder: the one place where a project writes.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The state folder of a project that is given no other.
const DEFAULT_FOLDER: &str = ".toolcrib";

/// A state folder, which need not exist yet.
#[derive(Debug, Clone)]
pub(crate) struct StateFolder {
    path: PathBuf,
    /// Whether it lies in the project because nobody chose another.
    is_default: bool,
}

impl StateFolder {
    /// # Errors
    /// When the process has no working folder to which a chosen path is relative.
    pub(crate) fn new(root: &Path, chosen: Option<&Path>) -> io::Result<Self> {
        Ok(match chosen {
            Some(path) => Self { path: std::path::absolute(path)?, is_default: false },
            None => Self { path: root.join(DEFAULT_FOLDER), is_default: true },
        })
    }

    /// The state folder of whoever has no project: `toolcrib` among the user's states. `None` where
    /// the user has no home.
    pub(crate) fn of_user() -> Option<Self> {
        let folder = |name| {
            let path = PathBuf::from(std::env::var_os(name)?);
            path.is_absolute().then_some(path)
        };
        let states =
            folder("XDG_STATE_HOME").or_else(|| Some(folder("HOME")?.join(".local/state")))?;
        Some(Self { path: states.join("toolcrib"), is_default: false })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the folder if it is missing. The one in the project hides itself from git; a folder
    /// that somebody chose may be in use for other things.
    pub(crate) fn make(&self) -> io::Result<()> {
        fs::create_dir_all(&self.path)?;
        let ignore = self.path.join(".gitignore");
        if self.is_default && !ignore.exists() {
            fs::write(ignore, "*\n")?;
        }
        Ok(())
    }
}
