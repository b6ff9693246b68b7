//! The user's key, which seals decisions, and the marks of decisions that are over.

use std::{
    collections::HashSet,
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};
use toolcrib_capabilities::__internal::{create_private, is_private_folder, no_follow};
use toolcrib_core::{ApprovalMark, MarkStore, SessionStoreError, is_session_id};

/// The length of a key, in bytes.
const KEY_BYTES: usize = 32;

/// The length of a block of SHA-256, in bytes.
const BLOCK_BYTES: usize = 64;

/// The name of the key's file.
const KEY: &str = "key";

/// A mark that is longer is not valid.
const MOST_BYTES: u64 = 64;

/// The least length of a secret that a key is made of, in bytes.
const SECRET_BYTES: usize = 32;

/// The key that seals decisions, and the marks of those that are over: in the [folder](Self::new) of a user,
/// or [shared](Self::shared) by machines. It must be out of reach of a model's tools: who can read the key can
/// decide.
#[derive(Debug, Clone)]
pub struct ApprovalKeys(KeySource);

#[derive(Debug, Clone)]
enum KeySource {
    /// `None` if the user has no configuration folder: then nothing can be settled.
    Folder(Option<Arc<Path>>),
    Shared {
        key: ApprovalKey,
        marks: Arc<dyn MarkStore>,
    },
}

/// A secret key that seals decisions.
#[derive(Clone)]
pub struct ApprovalKey([u8; KEY_BYTES]);

/// The key cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The user has no configuration folder.
    #[error(
        "there is no folder for the key that seals decisions: neither XDG_CONFIG_HOME nor HOME is \
         set to an absolute path"
    )]
    NoHome,
    /// Another user could read or replace the key.
    #[error(
        "the key {} is not safe: {problem}; delete the file, and settle again what waits",
        path.display()
    )]
    Unsafe {
        /// The file or folder.
        path: PathBuf,
        /// The problem.
        problem: &'static str,
    },
    /// A secret that is easier to guess than a key.
    #[error(
        "the secret of the key that seals decisions has less than {SECRET_BYTES} bytes; make it of \
         random ones, such as by `openssl rand -hex 32`"
    )]
    TooShort,
    /// The store of marks cannot be used.
    #[error(transparent)]
    Marks(#[from] SessionStoreError),
    /// The key or a mark cannot be read or written.
    #[error("{} cannot be used: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl ApprovalKeys {
    /// The key in a folder, which is created with the key. Its marks are there too.
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self(KeySource::Folder(folder.map(Into::into)))
    }

    /// A key that several machines make of one secret. The marks are shared too, or an older copy of the store
    /// would revive on one machine what another has used.
    ///
    /// # Errors
    /// [`KeyError::TooShort`].
    pub fn shared(secret: &str, marks: Arc<dyn MarkStore>) -> Result<Self, KeyError> {
        if secret.len() < SECRET_BYTES {
            return Err(KeyError::TooShort);
        }
        let mut digest = Sha256::new_with_prefix("toolcrib-approval-key-1 ");
        digest.update(secret);
        let key = ApprovalKey(digest.finalize().into());
        Ok(Self(KeySource::Shared { key, marks }))
    }

    /// The folder, if there is one.
    pub fn folder(&self) -> Option<&Path> {
        match &self.0 {
            KeySource::Folder(folder) => folder.as_deref(),
            KeySource::Shared { .. } => None,
        }
    }

    /// Whether decisions can be sealed.
    pub fn can_seal(&self) -> bool {
        !matches!(&self.0, KeySource::Folder(None))
    }

    /// The key; `None` if it was never created, and so nothing was ever settled. Blocking.
    ///
    /// # Errors
    /// [`KeyError`], also for a file that another user can read.
    pub fn read(&self) -> Result<Option<ApprovalKey>, KeyError> {
        let folder = match &self.0 {
            KeySource::Folder(None) => return Ok(None),
            KeySource::Folder(Some(folder)) => folder,
            KeySource::Shared { key, .. } => return Ok(Some(key.clone())),
        };
        let path = folder.join(KEY);
        let fail = |source| KeyError::Io { path: path.clone(), source };
        let mut file = match no_follow().read(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(fail(source)),
        };
        let unsafe_as = |problem| KeyError::Unsafe { path: path.clone(), problem };
        if !is_private_folder(folder) {
            return Err(unsafe_as("another user can change its folder"));
        }
        let found = file.metadata().map_err(fail)?;
        if !found.is_file() || found.uid() != rustix::process::geteuid().as_raw() {
            return Err(unsafe_as("it is not a file of this user"));
        }
        if found.mode() & 0o077 != 0 {
            return Err(unsafe_as("other users have access to it"));
        }
        let mut key = [0; KEY_BYTES];
        if found.len() != KEY_BYTES as u64 {
            return Err(unsafe_as("it has the wrong length"));
        }
        file.read_exact(&mut key).map_err(fail)?;
        Ok(Some(ApprovalKey(key)))
    }

    /// The key, created if it is missing. Blocking.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn read_or_create(&self) -> Result<ApprovalKey, KeyError> {
        if let Some(key) = self.read()? {
            return Ok(key);
        }
        let folder = self.folder().ok_or(KeyError::NoHome)?;
        let fail = |source| KeyError::Io { path: folder.to_owned(), source };
        make_private(folder)?;
        let mut key = [0; KEY_BYTES];
        getrandom::fill(&mut key).map_err(|error| fail(io::Error::other(error)))?;
        // Another process may do the same; then its key is read.
        create_private(&folder.join(KEY), key).map_err(fail)?;
        self.read()?.ok_or(KeyError::NoHome)
    }

    /// Marks a decision as over, for all processes: of several that do so, one gets `true`. The mark
    /// stays until the decision's end, so a store that is set back to an earlier state does not
    /// bring it back. Blocking.
    ///
    /// # Errors
    /// [`KeyError`]; the decision must not be used then.
    pub(crate) fn mark(
        &self,
        mark: ApprovalMark,
        id: &str,
        until_ms: u64,
    ) -> Result<bool, KeyError> {
        if let KeySource::Shared { marks, .. } = &self.0 {
            return Ok(marks.mark(mark, id, until_ms)?);
        }
        let Some(path) = self.path(mark, id)? else { return Ok(false) };
        let fail = |source| KeyError::Io { path: path.clone(), source };
        if let Some(folder) = path.parent() {
            make_private(folder)?;
        }
        let mark = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let mut mark = match mark {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
            mark => mark.map_err(fail)?,
        };
        mark.write_all(until_ms.to_string().as_bytes())
            .and_then(|()| mark.sync_all())
            .map_err(fail)?;
        Ok(true)
    }

    /// The ids that have the mark, of those given. Blocking.
    pub(crate) fn marked(
        &self,
        mark: ApprovalMark,
        ids: &[&str],
    ) -> Result<HashSet<String>, KeyError> {
        if ids.is_empty() {
            return Ok(HashSet::new());
        }
        if let KeySource::Shared { marks, .. } = &self.0 {
            return Ok(marks.marked(mark, ids)?.into_iter().collect());
        }
        let mut marked = HashSet::new();
        for id in ids {
            if self.path(mark, id)?.is_none_or(|path| path.symlink_metadata().is_ok()) {
                marked.insert((*id).to_owned());
            }
        }
        Ok(marked)
    }

    /// Removes the marks of decisions that have expired. Blocking.
    pub(crate) fn forget_before(&self, now_ms: u64) {
        let folders = self
            .folder()
            .into_iter()
            .flat_map(|folder| ApprovalMark::ALL.map(|mark| folder.join(mark.as_str())));
        for entry in folders.filter_map(|folder| folder.read_dir().ok()).flatten().flatten() {
            let path = entry.path();
            let mut text = String::new();
            let read = OpenOptions::new().read(true).open(&path);
            let read = read.and_then(|file| file.take(MOST_BYTES).read_to_string(&mut text));
            // One that cannot be read stays.
            if read.is_ok() && text.parse::<u64>().is_ok_and(|until_ms| until_ms < now_ms) {
                let _ = fs::remove_file(path);
            }
        }
    }

    /// The file of a mark; `None` for a text that is not an id, which comes from a changed store.
    fn path(&self, mark: ApprovalMark, id: &str) -> Result<Option<PathBuf>, KeyError> {
        let folder = self.folder().ok_or(KeyError::NoHome)?;
        Ok(is_session_id(id).then(|| folder.join(mark.as_str()).join(id)))
    }
}

impl ApprovalKey {
    /// The code over a text, as hexadecimal digits.
    pub(crate) fn seal(&self, text: &str) -> String {
        let code = self.over(text).finalize().into_bytes();
        code.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Whether the code over a text is this one, in constant time.
    pub(crate) fn is_seal(&self, text: &str, seal: &str) -> bool {
        let digit =
            |digit: u8| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
        let (pairs, rest) = seal.as_bytes().as_chunks::<2>();
        let code: Option<Vec<_>> =
            pairs.iter().map(|[high, low]| Some(digit(*high)? * 16 + digit(*low)?)).collect();
        rest.is_empty() && code.is_some_and(|code| self.over(text).verify_slice(&code).is_ok())
    }

    fn over(&self, text: &str) -> Hmac<Sha256> {
        // HMAC fills a shorter key up with zeros.
        let mut block = [0; BLOCK_BYTES];
        block.iter_mut().zip(self.0).for_each(|(filled, byte)| *filled = byte);
        let mut code = Hmac::<Sha256>::new(&block.into());
        code.update(text.as_bytes());
        code
    }
}

toolcrib_core::__internal::debug_fields!(ApprovalKey);

/// Creates a folder for this user alone, and checks one that exists.
fn make_private(folder: &Path) -> Result<(), KeyError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|source| KeyError::Io { path: folder.to_owned(), source })?;
    match is_private_folder(folder) {
        true => Ok(()),
        false => Err(KeyError::Unsafe {
            path: folder.to_owned(),
            problem: "its folder is a symlink, belongs to another user, or can be changed by one",
        }),
    }
}
