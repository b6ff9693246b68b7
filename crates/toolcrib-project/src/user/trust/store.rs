//! The user's consent, stored in the user's configuration folder: one file for each trusted folder,
//! replaced as a whole.

use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use toolcrib_core::Digest;

use super::consent::Review;
use crate::{
    read::owner::{ForeignFile, with_folders},
    user::private,
};

/// A longer record is not valid.
const MOST_BYTES: u64 = 64 * 1024;

/// Whether the user trusts a project.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrustState {
    /// It may be used.
    Trusted,
    /// It was never trusted.
    Unknown,
    /// It was trusted, and its files have changed since.
    Changed,
    /// Another user controls one of its files.
    Foreign(ForeignFile),
}

/// A folder or file that the user has trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TrustRecord {
    /// The folder or file, resolved.
    pub path: PathBuf,
    /// The digest of the trusted project in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// The owner, besides the user and the system, whose files in it are accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<u32>,
}

/// Trust cannot be stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// The user has no configuration folder.
    #[error("trust cannot be stored: neither XDG_CONFIG_HOME nor HOME is set to an absolute path")]
    NoHome,
    /// The record cannot be written or removed.
    #[error("trust cannot be stored in {}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// The trust records of a user. Records that another user could have written are ignored.
#[derive(Debug, Clone)]
pub struct TrustStore {
    /// `None` if the user has no configuration folder: then nothing is trusted.
    folder: Option<PathBuf>,
}

impl TrustStore {
    /// The user's store: `toolcrib/trust` in `$XDG_CONFIG_HOME` or `~/.config`.
    pub fn of_user() -> Self {
        Self { folder: private::config_of_user().map(|config| config.join("trust")) }
    }

    /// Whether a project may be used. If it was `found`, not named, its digest must be the trusted
    /// one.
    pub fn state(&self, review: &Review, found: bool) -> TrustState {
        let owned = with_folders(review.owned.clone(), review.folder.as_deref());
        let foreign = owned.iter().find_map(|one| one.foreign(&|path| self.accepted_owner(path)));
        if let Some(foreign) = foreign {
            return TrustState::Foreign(foreign);
        }
        if !found || !review.needs_trust() {
            return TrustState::Trusted;
        }
        let record = review.folder.as_deref().and_then(|folder| self.read(folder));
        match record.and_then(|record| record.digest) {
            None => TrustState::Unknown,
            Some(digest) if digest == review.digest => TrustState::Trusted,
            Some(_) => TrustState::Changed,
        }
    }

    /// The accepted owner of a path: of itself, or of the nearest folder above it.
    pub fn accepted_owner(&self, path: &Path) -> Option<u32> {
        path.ancestors().find_map(|path| self.read(path)?.owner)
    }

    /// Trusts a project as it was reviewed.
    ///
    /// # Errors
    /// [`TrustError`].
    pub fn trust(&self, review: &Review) -> Result<(), TrustError> {
        let Some(folder) = &review.folder else { return Ok(()) };
        let owner = self.read(folder).and_then(|record| record.owner);
        let path = folder.clone();
        self.write(&TrustRecord { path, digest: Some(review.digest), owner })
    }

    /// Accepts the owner of a folder or file, for it and everything below it.
    ///
    /// # Errors
    /// [`TrustError`], also if the file does not exist.
    pub fn accept_owner(&self, path: &Path) -> Result<TrustRecord, TrustError> {
        let fail = |source| TrustError::Io { path: path.to_owned(), source };
        let path = path.canonicalize().map_err(fail)?;
        let owner = Some(path.metadata().map_err(fail)?.uid());
        let digest = self.read(&path).and_then(|record| record.digest);
        let record = TrustRecord { path, digest, owner };
        self.write(&record)?;
        Ok(record)
    }

    /// Revokes the trust in a path; returns whether there was any.
    ///
    /// # Errors
    /// [`TrustError`].
    pub fn remove(&self, path: &Path) -> Result<bool, TrustError> {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let record = self.record(&path).ok_or(TrustError::NoHome)?;
        match fs::remove_file(&record) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(TrustError::Io { path: record, source }),
        }
    }

    /// All trusted paths, by path.
    pub fn list(&self) -> Vec<TrustRecord> {
        let folder = self.folder.iter().filter(|folder| private::is_private_folder(folder));
        let entries = folder.filter_map(|folder| folder.read_dir().ok());
        let records = entries
            .flatten()
            .flatten()
            .filter(|entry| entry.path().extension().is_some_and(|extension| extension == "json"));
        let mut all: Vec<_> = records.filter_map(|entry| believed(&entry.path())).collect();
        all.sort_by(|a, b| a.path.cmp(&b.path));
        all
    }

    fn record(&self, path: &Path) -> Option<PathBuf> {
        let name = Digest::of(path.as_os_str().as_encoded_bytes());
        Some(self.folder.as_ref()?.join(format!("{name}.json")))
    }

    fn read(&self, path: &Path) -> Option<TrustRecord> {
        let folder = self.folder.as_deref()?;
        let safe = private::is_safe(folder);
        believed(&self.record(path)?).filter(|record| safe && record.path == path)
    }

    fn write(&self, record: &TrustRecord) -> Result<(), TrustError> {
        let (Some(folder), Some(path)) = (&self.folder, self.record(&record.path)) else {
            return Err(TrustError::NoHome);
        };
        let fail = |source| TrustError::Io { path: folder.clone(), source };
        private::make(folder).map_err(fail)?;
        let text = serde_json::to_string(record).map_err(|error| fail(error.into()))?;
        private::replace(&path, 0o600, &text).map_err(fail)
    }
}

/// A record that only the user can have written.
fn believed(path: &Path) -> Option<TrustRecord> {
    let (file, found) = private::open(path).ok()?;
    if !found.is_file() || !private::is_of_user(&found) {
        return None;
    }
    serde_json::from_str(&private::text(file, MOST_BYTES).ok()?).ok()
}
