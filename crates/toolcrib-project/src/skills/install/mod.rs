//! A skill comes as an archive: read whole into memory within limits, checked as the project's own
//! are, and put in place by renaming.
//!
//! ```text
//! archive.rs  .zip and .tar.gz as a list of files
//! paths.rs    what their names may be
//! place.rs    onto the disk
//! ```

mod archive;
mod paths;
mod place;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use toolcrib_config::{Diagnostic, Diagnostics, Problems, Spot};

use self::archive::Entry;
pub use self::archive::RefusedArchive;
use super::{SKILL_FILE, SkillFile, SkillStamp, WatchedSkills, skill_file};
use crate::{
    PROJECT_FILE,
    build::{SkillPlace, build_skill},
    root::{FileError, MAX_TEXT},
};

/// A skill that was installed.
#[derive(Debug)]
#[non_exhaustive]
pub struct InstalledSkill {
    /// What it is called.
    pub id: Arc<str>,
    /// What a model reads to decide when to activate it.
    pub description: Arc<str>,
    /// Its folder, absolute.
    pub folder: PathBuf,
    /// Its files, relative to that, with their size in bytes; sorted.
    pub files: Vec<(String, u64)>,
    /// Whether it took the place of another.
    pub replaced: bool,
    /// What is probably not as meant.
    pub warnings: Diagnostics,
}

/// A skill that was not installed. Nothing has changed, but for
/// [`Displaced`](InstallError::Displaced).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InstallError {
    /// There is no folder that it could go to.
    #[error("imported servers alone have no skills; name a project")]
    NoProject,
    /// The archive cannot be read.
    #[error("`{}` cannot be read: {source}", path.display())]
    Unreadable {
        /// The archive.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There is something in the archive that no skill needs, or too much of it.
    #[error("this archive is refused: {0}")]
    Refused(#[from] RefusedArchive),
    /// The skill in it is not sound, for this project.
    #[error("the skill in this archive cannot be used:\n{0}")]
    Broken(Diagnostics),
    /// The folder of skills cannot be used.
    #[error("the skill folder `{folder}` {problem}")]
    Folder {
        /// As the project has it.
        folder: Arc<str>,
        /// What is wrong.
        problem: String,
    },
    /// There is one of that name.
    #[error("there is a skill `{id}` already ({}); say `--force` to replace it", folder.display())]
    Exists {
        /// The name, as it is there.
        id: Arc<str>,
        /// Its folder.
        folder: PathBuf,
    },
    /// A plugin of the project has one of that name.
    #[error("there is a skill `{id}` already, at {file} (plugin `{plugin}`); rename one of them")]
    OfPlugin {
        /// The name.
        id: Arc<str>,
        /// Its file, from the project's folder on.
        file: Arc<str>,
        /// The plugin.
        plugin: Arc<str>,
    },
    /// The disk says no, and also to putting the skill that was to be replaced back into its place.
    #[error(
        "the skill cannot be put into `{}`: {source}; the one that was there could not be put back \
         either and lies in `{}`: move it back yourself",
        folder.display(), kept.display()
    )]
    Displaced {
        /// Where it was to go. Nothing is there now.
        folder: PathBuf,
        /// Where the skill is that was there.
        kept: PathBuf,
        /// Why the new one is not there.
        source: io::Error,
    },
    /// The disk says no.
    #[error("the skill cannot be put into `{}`: {source}", folder.display())]
    Write {
        /// Where it was to go.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl WatchedSkills {
    /// Unpacks an archive as one more skill. Those of plugins keep their names.
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

    /// That a plugin has a skill of this name, broken ones included.
    fn taken(&self, id: &Arc<str>) -> Option<InstallError> {
        let file = skill_file(self.folder(), id);
        self.root().file(&file).ok()?;
        Some(InstallError::OfPlugin {
            id: Arc::clone(id),
            file: self.root().shown(&file),
            plugin: Arc::clone(self.plugin()?),
        })
    }

    /// Checks the skill as `check` does those of the project.
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
            .ok_or_else(|| RefusedArchive::of(&name, "is not text of at most 1 MiB"))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let problems = Problems::new(PROJECT_FILE);
        for left_out in hidden.iter().filter_map(|entry| hidden_part(&entry.path)) {
            let at = Spot::start_of(format!("{id}/{left_out}"));
            let message = "this is hidden, and was left out: other programs act upon such files";
            problems.push(Diagnostic::warning(&at, message));
        }
        let skill = SkillFile::read(&name, id, text, &problems).map(|file| {
            let stamp = SkillStamp::default();
            let (root, folder) = (self.root(), self.folder());
            let place = SkillPlace { plugin: None, root, folder, stamp: &stamp };
            build_skill(file, &place, self.names(), &problems)
        });
        let broken = problems.has_errors();
        let diagnostics = problems.into_diagnostics();
        match skill.filter(|_| !broken) {
            Some(skill) => Ok((skill.description, diagnostics)),
            None => Err(InstallError::Broken(diagnostics)),
        }
    }

    /// The folder of skills, as it really lies on disk; made where it is missing.
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

/// The path up to the first hidden file or folder on it. Git, direnv, editors and agents act upon what
/// lies there, and no model can read it as a file of the skill.
fn hidden_part(path: &str) -> Option<&str> {
    let mut end = 0;
    path.split('/').find_map(|name| {
        end += name.len();
        let part = path.get(..end);
        end += '/'.len_utf8();
        part.filter(|_| name.starts_with('.'))
    })
}

/// The name of the one skill in an archive, and its files with paths relative to it. It lies at the
/// top of the archive, or all of it in one folder there.
fn the_skill_of(
    entries: Vec<Entry>,
    archive: &Path,
) -> Result<(Arc<str>, Vec<Entry>), RefusedArchive> {
    let is_skill_file =
        |entry: &&Entry| entry.path.rsplit('/').next().is_some_and(|name| name == SKILL_FILE);
    let mut found = entries.iter().filter(is_skill_file);
    let skill_file = match (found.next(), found.next()) {
        (Some(one), None) => one.path.clone(),
        (Some(_), Some(other)) => {
            let problem = format!("is one more {SKILL_FILE}; install one skill at a time");
            return Err(RefusedArchive::of(&other.path, problem));
        }
        (None, _) => return Err(RefusedArchive::whole(format!("there is no {SKILL_FILE} in it"))),
    };
    let folder = skill_file.strip_suffix(SKILL_FILE).unwrap_or_default();
    match folder.strip_suffix('/') {
        None => {
            // What an archive is called is what comes before its first dot.
            let file = archive.file_name().map(|name| name.to_string_lossy().into_owned());
            let name = file.unwrap_or_default();
            let stem = name.split('.').next().unwrap_or_default();
            Ok((stem.into(), entries))
        }
        Some(name) if name.contains('/') => {
            let problem = "lies deeper than in one folder at the top of the archive";
            Err(RefusedArchive::of(&skill_file, problem))
        }
        Some(name) => {
            let name = Arc::from(name);
            let below = entries.into_iter().map(|entry| match entry.path.strip_prefix(folder) {
                Some(path) => Ok(Entry { path: path.to_owned(), ..entry }),
                None => Err(RefusedArchive::of(
                    &entry.path,
                    format!("lies beside the skill's folder `{name}`"),
                )),
            });
            Ok((Arc::clone(&name), below.collect::<Result<_, _>>()?))
        }
    }
}
