//! The project's folder: the only place that the project's own texts are read from.

use std::{
    fs::File,
    io::{self, Read as _},
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use toolcrib_config::{Diagnostic, Located, Problems, Spot, suggest};

use crate::trust::Reads;

/// The largest text that people write, in bytes. A file over it is there by mistake, and much of
/// it would go to a model.
pub(crate) const MAX_TEXT: u64 = 1024 * 1024;

/// The largest seed script, in bytes. It is held in memory.
pub(crate) const MAX_SEED: u64 = 64 * 1024 * 1024;

/// The folder of a project, or of a plugin in it, as it really lies on disk.
#[derive(Debug, Clone)]
pub(crate) struct Root {
    path: PathBuf,
    /// What stands before the names of a plugin's files in problems: `plugins/crm/`.
    before: Arc<str>,
    /// What was read of the project so far, by its plugins too.
    reads: Reads,
}

/// Why a file of a project cannot be used. Each message ends a sentence about the file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    #[error("is an absolute path; write it relative to the project's folder")]
    Absolute,
    #[error("leaves the project's folder; copy what is needed into the project")]
    Outside,
    #[error("leaves the plugin's folder; copy what is needed into it")]
    OutsidePlugin,
    #[error("is not there")]
    NotFound,
    #[error("is not a folder")]
    NotAFolder,
    #[error("is a folder, not a file")]
    Folder,
    #[error("is a device or a pipe, not a file")]
    NotAFile,
    #[error("is larger than {} MiB", .limit / 1024 / 1024)]
    TooLarge { limit: u64 },
    #[error("is not UTF-8 text")]
    NotText,
    #[error("cannot be read: {0}")]
    Unreadable(io::Error),
}

impl Root {
    /// # Errors
    /// When there is no such folder.
    pub(crate) fn new(dir: &Path) -> io::Result<Self> {
        Ok(Self { path: dir.canonicalize()?, before: Arc::default(), reads: Reads::default() })
    }

    /// The root of a plugin whose folder lies in this one: nothing that is named from it leads out
    /// of that.
    pub(crate) fn of_plugin(&self, relative: &str) -> Result<Self, FileError> {
        let path = self.folder(relative)?;
        let before = format!("{}/", relative.trim_end_matches('/')).into();
        Ok(Self { path, before, reads: self.reads.clone() })
    }

    pub(crate) fn reads(&self) -> &Reads {
        &self.reads
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// How a file of it is called in problems: from the project's folder on.
    pub(crate) fn shown(&self, relative: &str) -> Arc<str> {
        format!("{}{relative}", self.before).into()
    }

    /// Whether a path leads out of the folder by its own words; where symbolic links on it lead is
    /// another matter.
    fn check_inside(&self, relative: &str) -> Result<(), FileError> {
        match stays_inside(relative) {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.outside()),
            Err(error) => Err(error),
        }
    }

    /// Whether a program is one on the `PATH`, lies in the folder or has an absolute path; if not,
    /// that is recorded. Its links may lead anywhere, as they do where an interpreter is linked into
    /// a project.
    pub(crate) fn check_program(&self, program: &str, at: &Spot, problems: &Problems) -> bool {
        if program.starts_with('/') {
            return true;
        }
        let inside = self.check_inside(program);
        if let Err(error) = &inside {
            let message = format!("`{}` {error}", program.escape_debug());
            let help = "or name it by an absolute path";
            problems.push(Diagnostic::error(at, message).help(help));
        }
        inside.is_ok()
    }

    fn outside(&self) -> FileError {
        if self.before.is_empty() { FileError::Outside } else { FileError::OutsidePlugin }
    }

    /// Where a file or folder of the project really lies. What leads out of the project is
    /// refused, symbolic links included.
    pub(crate) fn resolve(&self, relative: &str) -> Result<PathBuf, FileError> {
        self.check_inside(relative)?;
        let path = self.path.join(relative).canonicalize().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => FileError::NotFound,
            _ => FileError::Unreadable(error),
        })?;
        if path.starts_with(&self.path) { Ok(path) } else { Err(self.outside()) }
    }

    /// Where a folder of the project really lies.
    pub(crate) fn folder(&self, relative: &str) -> Result<PathBuf, FileError> {
        let path = self.resolve(relative)?;
        if path.is_dir() { Ok(path) } else { Err(FileError::NotAFolder) }
    }

    /// Where a regular file of the project really lies.
    pub(crate) fn file(&self, relative: &str) -> Result<PathBuf, FileError> {
        let path = self.resolve(relative)?;
        if path.is_dir() {
            Err(FileError::Folder)
        } else if path.is_file() {
            Ok(path)
        } else {
            Err(FileError::NotAFile)
        }
    }

    /// The text of a file of the project, of at most `limit` bytes.
    pub(crate) fn text(&self, relative: &str, limit: u64) -> Result<String, FileError> {
        self.reads.text(&self.resolve(relative)?, limit)
    }

    /// The text of a file that the project names; a problem is recorded where it does.
    pub(crate) fn named_text(
        &self,
        name: &Located<Arc<str>>,
        limit: u64,
        problems: &Problems,
    ) -> Option<String> {
        self.text(&name.value, limit)
            .map_err(|error| {
                let help = self.near(&error, &name.value);
                let problem = Diagnostic::error(&name.at, format!("`{}` {error}", name.value));
                problems.push(problem.help(help));
            })
            .ok()
    }

    /// Which file or folder of the project was probably meant by one that is not there, as help.
    pub(crate) fn near(&self, error: &FileError, relative: &str) -> Option<String> {
        let folder = Path::new(relative).parent()?.to_str()?;
        near(error, &self.folder(folder).ok()?, relative)
    }
}

/// Which file or folder was probably meant by one that is not there, as help. `folder` is where it
/// should lie, and `written` how it is called, with folders before it or not.
pub(crate) fn near(error: &FileError, folder: &Path, written: &str) -> Option<String> {
    /// More names are not looked at.
    const LOOKED_AT: usize = 1000;
    if !matches!(error, FileError::NotFound) {
        return None;
    }
    let written = Path::new(written);
    let name = written.file_name()?.to_str()?;
    let entries = folder.read_dir().ok()?.take(LOOKED_AT).flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    // A link that leads nowhere has the very name.
    names.retain(|other| other != name);
    names.sort();
    let near = suggest::nearest(name, names.iter().map(String::as_str))?;
    let meant = written.with_file_name(near);
    Some(format!("did you mean {}?", suggest::quoted([&*meant.to_string_lossy()])))
}

/// Whether a path leads out of no folder by its own words. It must be relative.
fn stays_inside(relative: &str) -> Result<bool, FileError> {
    let mut depth = 0_usize;
    for component in Path::new(relative).components() {
        depth = match component {
            Component::Prefix(_) | Component::RootDir => return Err(FileError::Absolute),
            Component::CurDir => depth,
            Component::ParentDir => match depth.checked_sub(1) {
                Some(depth) => depth,
                None => return Ok(false),
            },
            Component::Normal(_) => depth + 1,
        };
    }
    Ok(true)
}

/// The text of a file that the user names, by links too, of at most `limit` bytes.
pub(crate) fn read_text(path: &Path, limit: u64) -> Result<String, FileError> {
    let file = File::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => FileError::NotFound,
        _ => FileError::Unreadable(error),
    })?;
    text_of(file, limit)
}

/// The text of an open file, of at most `limit` bytes. A byte-order mark, which some editors put
/// first, is taken off.
pub(crate) fn text_of(file: File, limit: u64) -> Result<String, FileError> {
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|error| match error.kind() {
        io::ErrorKind::IsADirectory => FileError::Folder,
        _ => FileError::Unreadable(error),
    })?;
    if bytes.len() as u64 > limit {
        return Err(FileError::TooLarge { limit });
    }
    decoded(bytes)
}

/// Bytes as text, without a byte-order mark.
pub(crate) fn decoded(bytes: Vec<u8>) -> Result<String, FileError> {
    let text = String::from_utf8(bytes).map_err(|_| FileError::NotText)?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}
