//! The state folder: the only folder that a project writes to.

use std::{
    fs::{self, DirBuilder, OpenOptions, Permissions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use crate::private::folder_of_user;

/// The default state folder.
const DEFAULT_FOLDER: &str = ".toolcrib";

/// A state folder, which may not exist yet.
#[derive(Debug, Clone)]
pub(crate) struct StateFolder {
    path: PathBuf,
    /// Whether it is in the project by default.
    is_default: bool,
}

impl StateFolder {
    /// # Errors
    /// When the process has no working folder for a relative path.
    pub(crate) fn new(root: &Path, chosen: Option<&Path>) -> io::Result<Self> {
        Ok(match chosen {
            Some(path) => {
                let path = std::path::absolute(path)?;
                Self { path, is_default: false }
            }
            None => Self { path: root.join(DEFAULT_FOLDER), is_default: true },
        })
    }

    /// The state folder without a project: `toolcrib` in the user's state folder. `None` if the
    /// user has no home.
    pub(crate) fn of_user() -> Option<Self> {
        let states = folder_of_user("XDG_STATE_HOME", ".local/state")?;
        Some(Self { path: states.join("toolcrib"), is_default: false })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the folder is in the project, so that the accepted owner of the project's files
    /// applies to it.
    pub(crate) fn is_default(&self) -> bool {
        self.is_default
    }

    /// Refuses a symlink: the author of the project would decide where state is written. A missing
    /// folder is accepted.
    pub(crate) fn check(&self) -> io::Result<()> {
        refuse_link(&self.path)
    }

    /// A subfolder for files of one purpose.
    ///
    /// # Errors
    /// If a symlink is in its place.
    pub(crate) fn folder(&self, name: &str) -> io::Result<PathBuf> {
        let folder = self.path.join(name);
        refuse_link(&folder).map(|()| folder)
    }

    /// Creates the folder if it is missing, for its owner alone. A folder in the project loses the
    /// access rights of others and is hidden from git; a chosen folder may be in use for other
    /// things.
    pub(crate) fn make(&self) -> io::Result<()> {
        self.check()?;
        DirBuilder::new().recursive(!self.is_default).mode(0o700).create(&self.path).or_else(
            |error| match error.kind() {
                io::ErrorKind::AlreadyExists if self.path.is_dir() => Ok(()),
                _ => Err(error),
            },
        )?;
        self.check()?;
        if !self.is_default {
            return Ok(());
        }
        let mode = fs::metadata(&self.path)?.permissions().mode();
        if mode & 0o077 != 0 {
            // Ignored where the disk has no modes, or the folder belongs to another, accepted user.
            let _ = fs::set_permissions(&self.path, Permissions::from_mode(mode & 0o700));
        }
        let options = OpenOptions::new().write(true).create_new(true).mode(0o600).clone();
        match options.open(self.path.join(".gitignore")) {
            Ok(mut ignore) => ignore.write_all(b"*\n"),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn refuse_link(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => {
            Err(io::Error::other(format!("{} is a symbolic link", path.display())))
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
