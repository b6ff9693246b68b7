//! The project's folder: the only folder that the project's own texts are read from.

use std::{
    io,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use toolcrib_config::{Diagnostic, Located, Problems, Spot, suggest};

use super::{
    reads::{Judged, ReadFiles},
    text_file::FileError,
};

/// The real path of the folder of a project, or of a plugin in it.
#[derive(Debug, Clone)]
pub(crate) struct Root {
    path: PathBuf,
    /// The prefix of a plugin's files in problems: `plugins/crm/`.
    before: Arc<str>,
    /// The files of the project read so far, including its plugins'.
    reads: ReadFiles,
    /// How the user's consent depends on the files that are read through it.
    judged: Judged,
}

/// A file that need not be in the project.
pub(crate) struct FoundFile {
    /// Its real path. If it does not exist, its path in its real folder; the written one if this does
    /// not exist either.
    pub(crate) file: PathBuf,
    /// Whether it is outside the project's folder.
    pub(crate) is_outside: bool,
    /// A suggestion for a missing file, as help.
    pub(crate) near: Option<String>,
}

impl Root {
    /// # Errors
    /// When the folder does not exist.
    pub(crate) fn new(dir: &Path) -> io::Result<Self> {
        let (before, reads, judged) = Default::default();
        Ok(Self { path: dir.canonicalize()?, before, reads, judged })
    }

    /// The root of a plugin whose folder is inside this one: its paths cannot lead out of that
    /// folder.
    pub(crate) fn of_plugin(&self, relative: &str) -> Result<Self, FileError> {
        let path = self.folder(relative)?;
        let before = format!("{}/", relative.trim_end_matches('/')).into();
        Ok(Self { path, before, reads: self.reads.clone(), judged: self.judged })
    }

    /// The same folder, for files whose values the reader compares, or that contain a text for a model:
    /// the user's consent does not depend on their bytes.
    pub(crate) fn by_values(&self) -> Self {
        Self { judged: Judged::ByValues, ..self.clone() }
    }

    pub(crate) fn reads(&self) -> &ReadFiles {
        &self.reads
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The name of a file in problems: relative to the project's folder.
    pub(crate) fn shown(&self, relative: &str) -> Arc<str> {
        format!("{}{relative}", self.before).into()
    }

    /// Whether a path leads out of the folder lexically; symlinks are checked elsewhere.
    fn check_inside(&self, relative: &str) -> Result<(), FileError> {
        match stays_inside(relative) {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.outside()),
            Err(error) => Err(error),
        }
    }

    /// Whether a program is on the `PATH`, inside the folder, or an absolute path; if not, that is
    /// recorded. Its symlinks may lead anywhere, as for an interpreter that is linked into a
    /// project.
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

    /// The real path of a file or folder of the project. Paths out of the project are refused,
    /// including through symlinks.
    pub(crate) fn resolve(&self, relative: &str) -> Result<PathBuf, FileError> {
        self.check_inside(relative)?;
        let path = self.path.join(relative).canonicalize().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => FileError::NotFound,
            _ => FileError::Unreadable(error),
        })?;
        if path.starts_with(&self.path) { Ok(path) } else { Err(self.outside()) }
    }

    /// The real path of a folder of the project.
    pub(crate) fn folder(&self, relative: &str) -> Result<PathBuf, FileError> {
        let path = self.resolve(relative)?;
        if path.is_dir() { Ok(path) } else { Err(FileError::NotAFolder) }
    }

    /// The real path of a regular file of the project.
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

    /// A file anywhere, from the project's folder, through symlinks. It may not exist.
    pub(crate) fn any_file(&self, written: &str) -> FoundFile {
        let joined = self.path.join(written);
        let found = joined.canonicalize().ok();
        let near = match (&found, joined.parent()) {
            (None, Some(dir)) => near(&FileError::NotFound, dir, written),
            _ => None,
        };
        // A missing file is created where its folder leads to.
        let Some(file) = found.or_else(|| in_real_folder(&joined)) else {
            let is_outside = !matches!(stays_inside(written), Ok(true));
            return FoundFile { file: joined, is_outside, near };
        };
        let is_outside = !file.starts_with(&self.path);
        if is_outside && joined.starts_with(&self.path) {
            self.reads.link(&joined, &file);
        }
        FoundFile { file, is_outside, near }
    }

    /// The text of a file of the project, of at most `limit` bytes.
    pub(crate) fn text(&self, relative: &str, limit: u64) -> Result<String, FileError> {
        self.reads.text(&self.resolve(relative)?, limit, self.judged)
    }

    /// The text of a file that the project names; problems are recorded at that position.
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

    /// A suggestion for a missing file or folder of the project, as help.
    pub(crate) fn near(&self, error: &FileError, relative: &str) -> Option<String> {
        let folder = Path::new(relative).parent()?.to_str()?;
        near(error, &self.folder(folder).ok()?, relative)
    }
}

/// A suggestion for a missing file or folder, as help. `folder` is the expected location, and
/// `written` the path as written, with or without folders.
pub(crate) fn near(error: &FileError, folder: &Path, written: &str) -> Option<String> {
    /// The limit of names to compare.
    const LOOKED_AT: usize = 1000;
    if !matches!(error, FileError::NotFound) {
        return None;
    }
    let written = Path::new(written);
    let name = written.file_name()?.to_str()?;
    let entries = folder.read_dir().ok()?.take(LOOKED_AT).flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    // A dangling symlink has exactly this name.
    names.retain(|other| other != name);
    names.sort();
    let near = suggest::nearest(name, names.iter().map(String::as_str))?;
    let meant = written.with_file_name(near);
    Some(format!("did you mean {}?", suggest::quoted([&*meant.to_string_lossy()])))
}

/// A path with its folder resolved.
fn in_real_folder(path: &Path) -> Option<PathBuf> {
    Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?))
}

/// Whether a path stays inside lexically. It must be relative.
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
