//! The user's vault: a file for each secret, which only the user can read, in the user's configuration
//! folder.

use std::{fs, io, path::PathBuf};

use toolcrib_tools::__internal::is_secret_name;

use super::{config_of_user, is_of_user, make, open, replace, text};

/// The maximum size of a secret, in bytes.
const MOST_BYTES: u64 = 64 * 1024;

/// The user's secrets by name, in `vault` in the user's configuration folder.
#[derive(Debug, Clone)]
pub struct Vault(PathBuf);

/// A vault that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VaultError {
    /// The user has no home folder.
    #[error("there is no vault: neither XDG_CONFIG_HOME nor HOME is an absolute path")]
    NoHome,
    /// Another user can read or change the file.
    #[error("{} can be read or changed by others; run `chmod 600 {}`", .0.display(), .0.display())]
    NotPrivate(PathBuf),
    /// The value is longer than 64 KiB.
    #[error("a secret has at most {MOST_BYTES} bytes")]
    TooLong,
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

impl Vault {
    /// The vault of this user; it need not exist.
    ///
    /// # Errors
    /// [`VaultError::NoHome`].
    pub fn of_user() -> Result<Self, VaultError> {
        let folder = config_of_user().ok_or(VaultError::NoHome)?;
        Ok(Self(folder.join("vault")))
    }

    /// The keys of this user's models. They are in a separate folder, so that neither a project nor
    /// `secret set` can name one.
    pub(crate) fn of_model_keys() -> Result<Self, VaultError> {
        let folder = config_of_user().ok_or(VaultError::NoHome)?;
        Ok(Self(folder.join("model_keys")))
    }

    /// Whether a text may be the name of a secret: of `a-z A-Z 0-9 _ - .`, without `.` at the beginning.
    pub fn is_name(name: &str) -> bool {
        is_secret_name(name) && !name.starts_with('.')
    }

    /// A secret; `None` if there is none of that name.
    ///
    /// # Errors
    /// [`VaultError`] if it cannot be read, or others can read it.
    pub fn get(&self, name: &str) -> Result<Option<String>, VaultError> {
        let path = self.0.join(name);
        let failed = |source| VaultError::File { path: path.clone(), source };
        let (file, found) = match open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(failed)?,
        };
        if !is_of_user(&found) || is_readable_by_others(&found) {
            return Err(VaultError::NotPrivate(path));
        }
        let value = text(file, MOST_BYTES + 1).map_err(failed)?;
        Self::check(&value)?;
        Ok(Some(value))
    }

    /// Checks whether a value can be stored.
    pub(crate) fn check(value: &str) -> Result<(), VaultError> {
        match u64::try_from(value.len()).is_ok_and(|length| length > MOST_BYTES) {
            true => Err(VaultError::TooLong),
            false => Ok(()),
        }
    }

    /// Stores a secret, in place of an earlier one of that name.
    ///
    /// # Errors
    /// [`VaultError`] if it cannot be written.
    pub fn set(&self, name: &str, value: &str) -> Result<(), VaultError> {
        Self::check(value)?;
        let path = self.0.join(name);
        let written = make(&self.0).and_then(|()| replace(&path, 0o600, value));
        written.map_err(|source| VaultError::File { path, source })
    }

    /// Removes a secret; whether it existed.
    ///
    /// # Errors
    /// [`VaultError`] if it cannot be removed.
    pub fn remove(&self, name: &str) -> Result<bool, VaultError> {
        let path = self.0.join(name);
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(VaultError::File { path, source }),
        }
    }

    /// The names of all secrets, sorted.
    ///
    /// # Errors
    /// [`VaultError`] if the folder cannot be read.
    pub fn names(&self) -> Result<Vec<String>, VaultError> {
        let failed = |source| VaultError::File { path: self.0.clone(), source };
        let entries = match fs::read_dir(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed)?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
            // A draft of a write that was cut off.
            if !name.starts_with('.') {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }
}

fn is_readable_by_others(found: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    found.mode() & 0o077 != 0
}
