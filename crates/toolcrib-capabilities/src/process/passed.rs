//! Files that a program receives for one run.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

/// Copies of files for one run of a program, in a temporary folder of this user, which is removed with
/// this value. The program reads them if its [sandbox](super::Sandbox) has the folder in `read`.
#[derive(Debug)]
pub struct PassedFiles(TempDir);

impl PassedFiles {
    /// Creates an empty folder for one call.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn new() -> io::Result<Self> {
        Ok(Self(TempDir::with_prefix("toolcrib-")?))
    }

    /// Adds a file, in place of an earlier one of the name, and returns its path. The name has no folder.
    ///
    /// # Errors
    /// If the name is none of a file, or the file cannot be written.
    #[expect(clippy::disallowed_methods, reason = "the folder is new, and of this process")]
    pub fn add(&self, name: &str, data: &[u8]) -> io::Result<PathBuf> {
        if Path::new(name).file_name().is_none_or(|file| file != name) {
            return Err(io::Error::other("the name is that of no file"));
        }
        let path = self.0.path().join(name);
        fs::write(&path, data)?;
        Ok(path)
    }

    /// The path of the folder.
    pub fn folder(&self) -> &Path {
        self.0.path()
    }
}
