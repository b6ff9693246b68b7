//! The files of pinned definitions. Each is replaced as a whole.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use toolcrib_capabilities::__internal::{FileStamp, no_follow};
use toolcrib_core::{Digest, PinKind};

use super::pin::{Pin, PinName, Pins, RenewedPin};
use crate::private;

/// The file of a project with the digests of its remote definitions.
pub const LOCK_FILE: &str = "toolcrib.lock";

/// The folder of the user's records in the user's configuration of Toolcrib.
const FOLDER: &str = "pins";

/// A larger file is not read.
const MOST_BYTES: u64 = 64 * 1024 * 1024;

/// The version of both formats.
const VERSION: u32 = 1;

/// The digests of `toolcrib.lock`.
pub(crate) type SharedPins = BTreeMap<PinName, Digest>;

/// The pins cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// The user has no configuration folder.
    #[error(
        "there is no folder for your pinned definitions: neither XDG_CONFIG_HOME nor HOME is set \
         to an absolute path"
    )]
    NoHome,
    /// A file is invalid, or another user can write it.
    #[error("{} is not valid: {problem}; restore or remove the file", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
    /// A file cannot be read or written.
    #[error("{} cannot be used: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// The content of both files.
pub(crate) struct LoadedPins {
    pub(crate) own: Pins,
    pub(crate) shared: SharedPins,
    pub(crate) stamp: Stamp,
}

/// The state of both files.
pub(crate) type Stamp = [Option<FileStamp>; 2];

/// The files of the pins of a project.
pub(crate) struct PinFiles {
    /// The project's folder or the imported file.
    subject: PathBuf,
    shared: Option<PathBuf>,
    folder: Option<PathBuf>,
}

/// `toolcrib.lock`: source, kind, name, digest.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SharedFile {
    version: u32,
    #[serde(default)]
    pins: BTreeMap<Arc<str>, SourcePins>,
}

/// Kind, name, digest.
type SourcePins = BTreeMap<String, BTreeMap<Arc<str>, Digest>>;

/// The user's record.
#[derive(Serialize, Deserialize)]
struct OwnFile {
    version: u32,
    path: PathBuf,
    pins: Vec<OwnPin>,
}

#[derive(Serialize, Deserialize)]
struct OwnPin {
    source: Arc<str>,
    kind: String,
    name: Arc<str>,
    digest: Digest,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    definition: Option<Arc<RawValue>>,
}

impl PinFiles {
    /// `subject` is the project's folder or the imported file. `shared` is the folder of
    /// `toolcrib.lock`; `None` for imported files alone. `config` is the user's configuration folder.
    pub(crate) fn new(subject: &Path, shared: Option<PathBuf>, config: Option<PathBuf>) -> Self {
        Self {
            subject: subject.to_owned(),
            shared: shared.map(|folder| folder.join(LOCK_FILE)),
            folder: config.map(|config| config.join(FOLDER)),
        }
    }

    pub(crate) fn shared(&self) -> Option<&Path> {
        self.shared.as_deref()
    }

    pub(crate) fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    fn own(&self) -> Option<PathBuf> {
        let name = Digest::of(self.subject.as_os_str().as_encoded_bytes());
        Some(self.folder.as_ref()?.join(format!("{name}.json")))
    }

    pub(crate) fn stamp(&self) -> Stamp {
        let of = |path: Option<&Path>| Some(FileStamp::of(&fs::symlink_metadata(path?).ok()?));
        [of(self.own().as_deref()), of(self.shared())]
    }

    /// Reads both files; a missing one is empty.
    pub(crate) fn load(&self) -> Result<LoadedPins, LockError> {
        // Before the files: a change in between is read again later.
        let stamp = self.stamp();
        let own = match self.own() {
            Some(path) => self.read_own(&path)?,
            None => Pins::new(),
        };
        let shared = match self.shared() {
            Some(path) => read_shared(path)?,
            None => SharedPins::new(),
        };
        Ok(LoadedPins { own, shared, stamp })
    }

    /// Adds pins to both files. Existing ones are replaced only if `replace`.
    pub(crate) fn save(&self, pins: &Pins, replace: bool) -> Result<LoadedPins, LockError> {
        self.change(|loaded| {
            for (place, pin) in pins {
                if replace || !loaded.own.contains_key(place) {
                    loaded.own.insert(place.clone(), pin.clone());
                }
                let own = loaded.own.get(place).map_or(pin.digest, |pin| pin.digest);
                if replace || !loaded.shared.contains_key(place) {
                    loaded.shared.insert(place.clone(), own);
                }
            }
        })
    }

    /// Changes both files.
    fn change(&self, change: impl FnOnce(&mut LoadedPins)) -> Result<LoadedPins, LockError> {
        let (Some(folder), Some(path)) = (&self.folder, self.own()) else {
            return Err(LockError::NoHome);
        };
        let fail = |source| LockError::Io { path: path.clone(), source };
        private::make(folder).map_err(fail)?;
        let _guard = guard(&path).map_err(fail)?;
        let mut loaded = self.load()?;
        change(&mut loaded);
        let own = OwnFile {
            version: VERSION,
            path: self.subject.clone(),
            pins: loaded.own.iter().map(OwnPin::of).collect(),
        };
        let text = serde_json::to_string(&own).map_err(|error| fail(error.into()))?;
        private::replace(&path, 0o600, &text).map_err(fail)?;
        if let Some(path) = self.shared() {
            let fail = |source| LockError::Io { path: path.to_owned(), source };
            let text = shared_text(&loaded.shared).map_err(|error| fail(error.into()))?;
            private::replace(path, 0o644, &text).map_err(fail)?;
        }
        loaded.stamp = self.stamp();
        Ok(loaded)
    }

    /// Replaces pins. The project's digest follows if it is that of the pin.
    pub(crate) fn renew(&self, renewed: &[RenewedPin]) -> Result<LoadedPins, LockError> {
        self.change(|loaded| {
            for RenewedPin { before, place, pin } in renewed {
                let Some(old) = loaded.own.remove(before) else { continue };
                if loaded.shared.get(before) == Some(&old.digest) {
                    loaded.shared.remove(before);
                    loaded.shared.insert(place.clone(), pin.digest);
                }
                loaded.own.insert(place.clone(), pin.clone());
            }
        })
    }

    fn read_own(&self, path: &Path) -> Result<Pins, LockError> {
        let Some(text) = read(path, true)? else { return Ok(Pins::new()) };
        let invalid = |problem: String| LockError::Invalid { path: path.to_owned(), problem };
        let file: OwnFile =
            serde_json::from_str(&text).map_err(|error| invalid(error.to_string()))?;
        if file.version != VERSION || file.path != self.subject {
            return Err(invalid("it is of another version or project".to_owned()));
        }
        let pin = |pin: OwnPin| {
            let kind = kind(&pin.kind).ok_or_else(|| invalid("unknown kind".to_owned()))?;
            let place = PinName { source: pin.source, kind, name: pin.name };
            Ok((place, Pin { digest: pin.digest, definition: pin.definition }))
        };
        file.pins.into_iter().map(pin).collect()
    }
}

impl OwnPin {
    fn of((place, pin): (&PinName, &Pin)) -> Self {
        Self {
            source: Arc::clone(&place.source),
            kind: place.kind.as_str().to_owned(),
            name: Arc::clone(&place.name),
            digest: pin.digest,
            definition: pin.definition.clone(),
        }
    }
}

fn read_shared(path: &Path) -> Result<SharedPins, LockError> {
    let Some(text) = read(path, false)? else { return Ok(SharedPins::new()) };
    let invalid = |problem: String| LockError::Invalid { path: path.to_owned(), problem };
    let file: SharedFile =
        serde_json::from_str(&text).map_err(|error| invalid(error.to_string()))?;
    if file.version != VERSION {
        let problem = format!("it has version {}, and this Toolcrib reads {VERSION}", file.version);
        return Err(invalid(problem));
    }
    let mut shared = SharedPins::new();
    for (source, kinds) in file.pins {
        for (word, names) in kinds {
            let Some(kind) = kind(&word) else {
                return Err(invalid(format!("unknown kind `{}`", word.escape_debug())));
            };
            for (name, digest) in names {
                shared.insert(PinName { source: Arc::clone(&source), kind, name }, digest);
            }
        }
    }
    Ok(shared)
}

/// One line for each definition, so that version control merges and shows them separately.
fn shared_text(shared: &SharedPins) -> serde_json::Result<String> {
    let mut file = SharedFile { version: VERSION, pins: BTreeMap::new() };
    for (PinName { source, kind, name }, digest) in shared {
        let kinds = file.pins.entry(Arc::clone(source)).or_default();
        kinds.entry(kind.as_str().to_owned()).or_default().insert(Arc::clone(name), *digest);
    }
    Ok(serde_json::to_string_pretty(&file)? + "\n")
}

fn kind(word: &str) -> Option<PinKind> {
    [PinKind::Tool, PinKind::Prompt, PinKind::Instructions, PinKind::Skill]
        .into_iter()
        .find(|kind| kind.as_str() == word)
}

/// A file's text; `None` without the file. One `of_user` must be this user's alone.
fn read(path: &Path, of_user: bool) -> Result<Option<String>, LockError> {
    let fail = |source| LockError::Io { path: path.to_owned(), source };
    let invalid =
        |problem: &str| LockError::Invalid { path: path.to_owned(), problem: problem.to_owned() };
    let (file, found) = match private::open(path) {
        Ok(opened) => opened,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(fail(source)),
    };
    if !found.is_file() {
        return Err(invalid("it is not a file"));
    }
    if of_user && !(private::is_of_user(&found) && path.parent().is_some_and(private::is_safe)) {
        return Err(invalid("another user could have written it"));
    }
    if found.len() > MOST_BYTES {
        return Err(invalid("it is too large"));
    }
    private::text(file, MOST_BYTES).map(Some).map_err(fail)
}

/// Excludes other processes from the record, as long as it exists.
fn guard(record: &Path) -> io::Result<File> {
    let file = no_follow()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(record.with_extension("guard"))?;
    flock(&file, FlockOperation::LockExclusive)?;
    Ok(file)
}
