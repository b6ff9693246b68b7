//! Records of written entries: each with a backup of the file as it was.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolcrib_core::Digest;

use super::{WriteError, folder_of_state, put, read};

/// A record that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InstalledError {
    #[error(transparent)]
    NoHome(#[from] super::NoHomeError),
    #[error(transparent)]
    File(#[from] WriteError),
    #[error("{} cannot be created: {source}", path.display())]
    Folder { path: PathBuf, source: io::Error },
    #[error("{} is not a valid record; remove it, and the entry by hand", .0.display())]
    Invalid(PathBuf),
}

/// An entry that Toolcrib has written.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct InstalledEntry {
    /// The configuration file.
    pub(crate) file: PathBuf,
    /// The entry's name.
    pub(crate) name: String,
    pub(crate) entry: Value,
    /// The entry of this name before, which another program or the user has written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) replaced: Option<Value>,
    /// The digest of the file with the entry.
    pub(crate) written: Digest,
    /// The permissions of the file before; `None` if there was no file.
    pub(crate) mode: Option<u32>,
}

/// The records of the user.
pub(crate) struct Records {
    folder: PathBuf,
}

impl Records {
    /// The records in the user's state folder.
    pub(crate) fn of_user() -> Result<Self, InstalledError> {
        Ok(Self { folder: folder_of_state()?.join("clients") })
    }

    /// The backup of a file before an entry was written.
    pub(crate) fn backup(&self, file: &Path, name: &str) -> PathBuf {
        self.path(file, name, "backup")
    }

    /// The record of an entry.
    pub(crate) fn find(
        &self,
        file: &Path,
        name: &str,
    ) -> Result<Option<InstalledEntry>, InstalledError> {
        let path = self.path(file, name, "json");
        let Some(found) = read(&path)? else { return Ok(None) };
        let record: InstalledEntry =
            serde_json::from_str(&found.text).map_err(|_| InstalledError::Invalid(path.clone()))?;
        if record.file != file || record.name != name {
            return Err(InstalledError::Invalid(path));
        }
        Ok(Some(record))
    }

    /// Writes a record, and the backup before it.
    pub(crate) fn write(
        &self,
        record: &InstalledEntry,
        before: Option<&str>,
    ) -> Result<(), InstalledError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)
            .map_err(|source| InstalledError::Folder { path: self.folder.clone(), source })?;
        let backup = self.backup(&record.file, &record.name);
        let old = read(&backup)?;
        if before.is_some() || old.is_some() {
            put(&backup, old.as_ref(), before, 0o600)?;
        }
        let path = self.path(&record.file, &record.name, "json");
        let text = serde_json::to_string_pretty(record)
            .map_err(|_| InstalledError::Invalid(path.clone()))?;
        put(&path, read(&path)?.as_ref(), Some(&text), 0o600)?;
        Ok(())
    }

    /// Removes a record and its backup.
    pub(crate) fn remove(&self, file: &Path, name: &str) {
        for end in ["json", "backup"] {
            // A record that cannot be removed is replaced by the next one.
            drop(fs::remove_file(self.path(file, name, end)));
        }
    }

    fn path(&self, file: &Path, name: &str, end: &str) -> PathBuf {
        let digest = Digest::of(format!("{}\n{name}", file.display())).to_string();
        let short: String = digest.chars().filter(char::is_ascii_alphanumeric).take(32).collect();
        self.folder.join(format!("{short}.{end}"))
    }
}
