//! The user's consent, stored in the user's configuration folder: one file for each trusted folder,
//! replaced as a whole.

use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use toolcrib_core::Digest;

use super::{
    consent::Review,
    facts::{Facts, TrustChange},
};
use crate::{
    private,
    read::owner::{ForeignFile, with_folders},
};

/// A longer record is not valid.
const MOST_BYTES: u64 = 64 * 1024 * 1024;

/// Whether the user trusts a project.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrustState {
    /// It may be used.
    Trusted,
    /// It was never trusted.
    Unknown,
    /// It was trusted, and could do more now: the changes, at least one.
    Changed(Vec<TrustChange>),
    /// It was trusted by another version of this library, whose record cannot be compared.
    OtherFormat,
    /// Another user controls one of its files.
    Foreign(ForeignFile),
}

/// A folder or file that the user has trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TrustRecord {
    /// The folder or file, resolved.
    pub path: PathBuf,
    /// The actions of the trusted project in it, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actions: Option<Vec<String>>,
    /// The owner, besides the user and the system, whose files in it are accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<u32>,
}

/// A record as it is stored.
#[derive(Debug, Serialize, Deserialize)]
struct StoredRecord {
    path: PathBuf,
    /// The [`Facts`] of the trusted project. Another version may have written them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    facts: Option<Json>,
    /// The digest of a trusted project, as versions before [`Facts`] stored it.
    #[serde(default, skip_serializing)]
    digest: Option<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    owner: Option<u32>,
}

impl StoredRecord {
    fn facts(&self) -> Option<Facts> {
        Facts::deserialize(self.facts.as_ref()?).ok()
    }
}

impl From<StoredRecord> for TrustRecord {
    fn from(stored: StoredRecord) -> Self {
        let actions = stored.facts().map(|facts| facts.actions.into_iter().collect());
        Self { actions, path: stored.path, owner: stored.owner }
    }
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

    /// Whether a project may be used. If it was `found`, not named, it must have been trusted, and can do
    /// no more than at that time.
    pub fn state(&self, review: &Review, found: bool) -> TrustState {
        match self.foreign(review) {
            Some(foreign) => TrustState::Foreign(foreign),
            None if !found || !review.needs_trust() => TrustState::Trusted,
            None => self.recorded(review),
        }
    }

    /// Whether the user has trusted a project as it is, however it was reached and whatever it does.
    pub fn is_trusted(&self, review: &Review) -> bool {
        self.foreign(review).is_none() && self.recorded(review) == TrustState::Trusted
    }

    fn foreign(&self, review: &Review) -> Option<ForeignFile> {
        let owned = with_folders(review.owned.clone(), review.folder.as_deref());
        owned.iter().find_map(|one| one.foreign(&|path| self.accepted_owner(path)))
    }

    /// The state of a project by its record alone.
    fn recorded(&self, review: &Review) -> TrustState {
        let record = review.folder.as_deref().and_then(|folder| self.read(folder));
        let Some(record) = record.filter(|it| it.facts.is_some() || it.digest.is_some()) else {
            return TrustState::Unknown;
        };
        let Some(facts) = record.facts() else { return TrustState::OtherFormat };
        match facts.changes_to(&review.facts) {
            changes if changes.is_empty() => TrustState::Trusted,
            changes => TrustState::Changed(changes),
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
        let fail = |error: serde_json::Error| TrustError::Io {
            path: folder.clone(),
            source: error.into(),
        };
        let facts = Some(serde_json::to_value(&review.facts).map_err(fail)?);
        self.write(&StoredRecord { path: folder.clone(), facts, digest: None, owner })
    }

    /// Accepts the owner of a folder or file, for it and everything below it.
    ///
    /// # Errors
    /// [`TrustError`], also if the file does not exist.
    pub fn accept_owner(&self, path: &Path) -> Result<TrustRecord, TrustError> {
        let fail = |source| TrustError::Io { path: path.to_owned(), source };
        let path = path.canonicalize().map_err(fail)?;
        let owner = Some(path.metadata().map_err(fail)?.uid());
        let facts = self.read(&path).and_then(|record| record.facts);
        let record = StoredRecord { path, facts, digest: None, owner };
        self.write(&record)?;
        Ok(record.into())
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
        let mut all: Vec<TrustRecord> =
            records.filter_map(|entry| Some(believed(&entry.path())?.into())).collect();
        all.sort_by(|a, b| a.path.cmp(&b.path));
        all
    }

    fn record(&self, path: &Path) -> Option<PathBuf> {
        let name = Digest::of(path.as_os_str().as_encoded_bytes());
        Some(self.folder.as_ref()?.join(format!("{name}.json")))
    }

    fn read(&self, path: &Path) -> Option<StoredRecord> {
        let folder = self.folder.as_deref()?;
        let safe = private::is_safe(folder);
        believed(&self.record(path)?).filter(|record| safe && record.path == path)
    }

    fn write(&self, record: &StoredRecord) -> Result<(), TrustError> {
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
fn believed(path: &Path) -> Option<StoredRecord> {
    let (file, found) = private::open(path).ok()?;
    if !found.is_file() || !private::is_of_user(&found) {
        return None;
    }
    serde_json::from_str(&private::text(file, MOST_BYTES).ok()?).ok()
}
