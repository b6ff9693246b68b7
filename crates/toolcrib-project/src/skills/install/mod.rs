//! Installs a skill from an archive: read whole into memory within limits, checked like the
//! project's own, and put in place by renaming.
//!
//! ```text
//! archive.rs  .zip and .tar.gz as a list of files
//! paths.rs    what their names may be
//! place.rs    onto the disk
//! ```

mod archive;
mod paths;
mod place;
mod refused;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use toolcrib_config::{Diagnostic, Diagnostics, Problems, Spot, suggest};

use self::archive::Entry;
pub use self::refused::RefusedArchiveError;
use super::watched::WatchedSkills;
use crate::{
    build::{SkillPlace, build_skill},
    file::PROJECT_FILE,
    read::{
        skills::{SKILL_FILE, SkillFile, SkillStamp, folders_in, skill_file},
        text_file::{FileError, MAX_TEXT},
    },
};

/// A skill that was installed.
#[derive(Debug)]
#[non_exhaustive]
pub struct InstalledSkill {
    /// Its id.
    pub id: Arc<str>,
    /// The description by which a model decides to activate it.
    pub description: Arc<str>,
    /// Its folder, absolute.
    pub folder: PathBuf,
    /// Its files, relative to that, with their size in bytes; sorted.
    pub files: Vec<(String, u64)>,
    /// Whether it replaced another one.
    pub replaced: bool,
    /// Probable mistakes.
    pub warnings: Diagnostics,
}

/// A skill that was not installed. Nothing has changed, except for
/// [`Displaced`](InstallError::Displaced).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InstallError {
    /// The project has no folder to install to.
    #[error("imported servers alone have no skills; name a project")]
    NoProject,
    /// The archive cannot be read.
    #[error("`{}` cannot be read: {source}", path.display())]
    Unreadable {
        /// The archive.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The archive contains files that no skill needs, or too many or too large ones.
    #[error("this archive is refused: {0}")]
    Refused(#[from] RefusedArchiveError),
    /// The skill is invalid for this project.
    #[error("the skill in this archive cannot be used:\n{0}")]
    Broken(Diagnostics),
    /// The skills folder cannot be used.
    #[error("the skill folder `{folder}` {problem}")]
    Folder {
        /// Its path in the project.
        folder: Arc<str>,
        /// The problem.
        problem: String,
    },
    /// A skill of that name exists.
    #[error("a skill `{id}` exists already ({}); add `--force` to replace it", folder.display())]
    Exists {
        /// The existing name.
        id: Arc<str>,
        /// Its folder.
        folder: PathBuf,
    },
    /// A plugin of the project has a skill of that name.
    #[error("a skill `{id}` exists already, at {file} (plugin `{plugin}`); rename one of them")]
    OfPlugin {
        /// The name.
        id: Arc<str>,
        /// Its file, relative to the project's folder.
        file: Arc<str>,
        /// The plugin.
        plugin: Arc<str>,
    },
    /// The skills folder has no skill of that name.
    #[error("the skills folder has no skill `{id}`; {help}")]
    Unknown {
        /// The name.
        id: Arc<str>,
        /// The names that exist.
        help: String,
    },
    /// A disk error, also when the skill to be replaced was moved back.
    #[error(
        "the skill cannot be put into `{}`: {source}; the previous skill could not be moved back \
         and is in `{}`: move it back yourself",
        folder.display(), kept.display()
    )]
    Displaced {
        /// The target folder. It does not exist now.
        folder: PathBuf,
        /// The folder of the previous skill.
        kept: PathBuf,
        /// Why the new one was not installed.
        source: io::Error,
    },
    /// A disk error.
    #[error("`{}` cannot be changed: {source}", folder.display())]
    Write {
        /// The target folder.
        folder: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl WatchedSkills {
    /// Installs an archive's skill. Names of plugins' skills are reserved.
    pub(crate) fn install<'a>(
        &self,
        archive: &Path,
        replace: bool,
        mut of_plugins: impl Iterator<Item = &'a Self>,
    ) -> Result<InstalledSkill, InstallError> {
        let entries = archive::read(archive)?;
        let (id, entries) = the_skill_of(entries, archive)?;
        let (hidden, files): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(|entry| hidden_part(&entry.path).is_some());
        if let Some(taken) = of_plugins.find_map(|skills| skills.taken(&id)) {
            return Err(taken);
        }
        let (description, warnings) = self.check(&id, &files, &hidden)?;
        let skills = self.place()?;
        let placed = place::place(&skills, &id, &files, replace)?;
        let mut listed: Vec<_> =
            files.iter().map(|file| (file.path.clone(), file.bytes.len() as u64)).collect();
        listed.sort();
        Ok(InstalledSkill {
            folder: skills.join(&*id),
            id,
            description,
            files: listed,
            replaced: placed.replaced,
            warnings,
        })
    }

    /// Deletes a skill's folder; a symlink in its place is deleted, and not the folder it points to.
    pub(crate) fn remove(&self, id: &str) -> Result<PathBuf, InstallError> {
        let refused = |error: FileError| InstallError::Folder {
            folder: self.folder().into(),
            problem: error.to_string(),
        };
        let skills = self.root().folder(self.folder()).map_err(refused)?;
        let known = folders_in(&skills).map_err(refused)?;
        if !known.iter().any(|name| **name == *id) {
            let ids = known.iter().map(|name| &**name);
            return Err(InstallError::Unknown {
                help: suggest::help(id, "skills", ids),
                id: id.into(),
            });
        }
        let folder = skills.join(id);
        match place::remove(&skills, id) {
            Ok(()) => Ok(folder),
            Err(source) => Err(InstallError::Write { folder, source }),
        }
    }

    /// The error if a plugin has a skill of this name, including invalid ones.
    fn taken(&self, id: &Arc<str>) -> Option<InstallError> {
        let file = skill_file(self.folder(), id);
        self.root().file(&file).ok()?;
        Some(InstallError::OfPlugin {
            id: Arc::clone(id),
            file: self.root().shown(&file),
            plugin: Arc::clone(self.plugin()?),
        })
    }

    /// Checks the skill like `check` does for the project's own.
    fn check(
        &self,
        id: &Arc<str>,
        files: &[Entry],
        hidden: &[Entry],
    ) -> Result<(Arc<str>, Diagnostics), InstallError> {
        let skill_file = files.iter().find(|file| file.path == SKILL_FILE);
        let bytes = skill_file.map(|file| &*file.bytes).unwrap_or_default();
        let name: Arc<str> = format!("{id}/{SKILL_FILE}").into();
        let text = std::str::from_utf8(bytes)
            .ok()
            .filter(|text| text.len() as u64 <= MAX_TEXT)
            .ok_or_else(|| RefusedArchiveError::of(&name, "is not text of at most 1 MiB"))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let problems = Problems::new(PROJECT_FILE);
        for left_out in hidden.iter().filter_map(|entry| hidden_part(&entry.path)) {
            let at = Spot::start_of(format!("{id}/{left_out}"));
            let message = "this is hidden, and was left out: other programs act on such files";
            problems.push(Diagnostic::warning(&at, message));
        }
        let skill = SkillFile::read(&name, id, text, &problems).map(|file| {
            let stamp = SkillStamp::default();
            let (root, folder) = (self.root(), self.folder());
            let place = SkillPlace { plugin: None, root, folder, stamp: &stamp };
            build_skill(&file, &place, self.names(), &problems)
        });
        let broken = problems.has_errors();
        let diagnostics = problems.into_diagnostics();
        match skill.filter(|_| !broken) {
            Some(skill) => Ok((skill.description, diagnostics)),
            None => Err(InstallError::Broken(diagnostics)),
        }
    }

    /// The real path of the skills folder; created if it is missing.
    fn place(&self) -> Result<PathBuf, InstallError> {
        let root = self.root();
        let refused = |error: FileError| InstallError::Folder {
            folder: self.folder().into(),
            problem: error.to_string(),
        };
        match root.folder(self.folder()) {
            Err(FileError::NotFound) => {
                let path = root.path().join(self.folder());
                std::fs::create_dir_all(&path)
                    .map_err(|source| InstallError::Write { folder: path, source })?;
                root.folder(self.folder()).map_err(refused)
            }
            found => found.map_err(refused),
        }
    }
}

/// The path up to its first hidden file or folder. Git, direnv, editors and agents act on such
/// files, and no model can read them as files of the skill.
fn hidden_part(path: &str) -> Option<&str> {
    let mut end = 0;
    path.split('/').find_map(|name| {
        end += name.len();
        let part = path.get(..end);
        end += '/'.len_utf8();
        part.filter(|_| name.starts_with('.'))
    })
}

/// The name of the single skill in an archive, and its files with paths relative to it. It is at
/// the top of the archive, or in a single folder there.
fn the_skill_of(
    entries: Vec<Entry>,
    archive: &Path,
) -> Result<(Arc<str>, Vec<Entry>), RefusedArchiveError> {
    let is_skill_file =
        |entry: &&Entry| entry.path.rsplit('/').next().is_some_and(|name| name == SKILL_FILE);
    let mut found = entries.iter().filter(is_skill_file);
    let skill_file = match (found.next(), found.next()) {
        (Some(one), None) => one.path.clone(),
        (Some(_), Some(other)) => {
            let problem = format!("is a second {SKILL_FILE}; install one skill at a time");
            return Err(RefusedArchiveError::of(&other.path, problem));
        }
        (None, _) => {
            return Err(RefusedArchiveError::whole(format!("it contains no {SKILL_FILE}")));
        }
    };
    let folder = skill_file.strip_suffix(SKILL_FILE).unwrap_or_default();
    match folder.strip_suffix('/') {
        None => {
            // The archive's name up to its first dot.
            let file = archive.file_name().map(|name| name.to_string_lossy().into_owned());
            let name = file.unwrap_or_default();
            let stem = name.split('.').next().unwrap_or_default();
            Ok((stem.into(), entries))
        }
        Some(name) if name.contains('/') => {
            let problem = "is more than one folder below the top of the archive";
            Err(RefusedArchiveError::of(&skill_file, problem))
        }
        Some(name) => {
            let name = Arc::from(name);
            let below = entries.into_iter().map(|entry| match entry.path.strip_prefix(folder) {
                Some(path) => Ok(Entry { path: path.to_owned(), ..entry }),
                None => Err(RefusedArchiveError::of(
                    &entry.path,
                    format!("is outside the skill's folder `{name}`"),
                )),
            });
            Ok((Arc::clone(&name), below.collect::<Result<_, _>>()?))
        }
    }
}
