//! Skill folders, each with a `SKILL.md`.

mod files;
mod frontmatter;
mod quoted;
mod skill_file;
mod stamps;
mod yaml;

use std::{fs, io, path::Path, sync::Arc};

use toolcrib_config::{Diagnostic, Located, Problems, Severity, Spot};

pub(crate) use self::{
    files::FolderFiles,
    skill_file::SkillFile,
    stamps::{SkillStamp, Stamps},
};
use super::{
    root::Root,
    text_file::{FileError, MAX_TEXT},
};

/// The default skills folder.
const DEFAULT_FOLDER: &str = "skills";
/// The file that makes a folder a skill.
pub(crate) const SKILL_FILE: &str = "SKILL.md";
/// The prefix of the hidden folder of a skill while it is being replaced; followed by its id, `-`
/// and a unique suffix.
pub(crate) const REPLACED: &str = ".replaced-";

/// The skills of a project.
#[derive(Debug, Default)]
pub(crate) struct SkillFolders {
    /// The names of all folders with a `SKILL.md`, including invalid ones, sorted.
    pub(crate) names: Vec<Arc<str>>,
    /// The valid skills, in the same order.
    pub(crate) skills: Vec<SkillFile>,
    /// The state of the files right before they were read.
    pub(crate) stamps: Stamps,
    /// Their folder; `None` without a project.
    pub(crate) folder: Option<Arc<str>>,
}

/// The skills folder of a project or plugin.
fn folder_of(named: Option<&Located<Arc<str>>>) -> &str {
    named.map_or(DEFAULT_FOLDER, |folder| &folder.value).trim_end_matches('/')
}

impl SkillFolders {
    /// Reads all skills in the named folder, or in the default one; `file` is the position of
    /// errors. Every problem is recorded; a skill with an error is left out, with warnings.
    pub(crate) fn read(
        root: &Root,
        named: Option<&Located<Arc<str>>>,
        file: &Spot,
        problems: &Problems,
    ) -> Self {
        let folder = folder_of(named);
        let at = named.map_or(file, |named| &named.at);
        let mut this = Self {
            // The error is reported below.
            stamps: Stamps::of(root, folder).unwrap_or_default(),
            folder: Some(folder.into()),
            ..Self::default()
        };
        let listed = root.folder(folder).and_then(|path| folders_in(&path));
        let names = match listed {
            Ok(names) => names,
            Err(FileError::NotFound) if named.is_none() => return this,
            Err(error) => {
                problems.push(Diagnostic::error(at, format!("skill folder `{folder}` {error}")));
                return this;
            }
        };
        for name in names {
            let of_skill = Problems::new(root.shown(&skill_file(folder, &name)));
            let content = read(root, folder, &name, &of_skill);
            let found = of_skill.into_diagnostics();
            let is_broken = found.errors().next().is_some();
            // One broken skill does not keep the project from being used.
            for mut problem in found.iter().cloned() {
                problem.severity = Severity::Warning;
                problems.push(problem);
            }
            match content {
                FolderContent::NoSkill => continue,
                FolderContent::Skill(skill) if !is_broken => this.skills.push(*skill),
                FolderContent::Skill(_) | FolderContent::Broken => {
                    let at = Spot::start_of(root.shown(&skill_file(folder, &name)));
                    let message = format!("skill `{name}` is left out until this file is mended");
                    problems.push(Diagnostic::warning(&at, message));
                }
            }
            this.names.push(name);
        }
        this
    }

    /// Whether there is a skills folder; imported servers alone have none.
    pub(crate) fn has_folder(&self) -> bool {
        self.folder.is_some()
    }

    /// The names of all skills, each with the position of its file's start.
    pub(crate) fn places(&self, root: &Root) -> impl Iterator<Item = (&Arc<str>, Spot)> {
        let folder = self.folder.as_deref().unwrap_or_default();
        let at = move |name| Spot::start_of(root.shown(&skill_file(folder, name)));
        self.names.iter().map(move |name| (name, at(name)))
    }
}

/// The path of a skill's file, relative to the root.
pub(crate) fn skill_file(folder: &str, name: &str) -> String {
    format!("{folder}/{name}/{SKILL_FILE}")
}

/// The content of one skill's folder.
pub(crate) enum FolderContent {
    Skill(Box<SkillFile>),
    /// An invalid skill, which is recorded.
    Broken,
    /// No `SKILL.md`, which is recorded as a warning.
    NoSkill,
}

/// Reads the skill in the folder of that name among the skills in `folder`.
pub(crate) fn read(root: &Root, folder: &str, name: &str, problems: &Problems) -> FolderContent {
    let file = skill_file(folder, name);
    let shown = root.shown(&file);
    let start = Spot::start_of(Arc::clone(&shown));
    match root.by_values().text(&file, MAX_TEXT) {
        Ok(text) => match SkillFile::read(&shown, name, &text, problems) {
            Some(skill) => FolderContent::Skill(Box::new(skill)),
            None => FolderContent::Broken,
        },
        Err(FileError::NotFound) => {
            problems.push(
                Diagnostic::warning(&start, format!("folder `{name}` has no {SKILL_FILE}"))
                    .help("write one, or move the folder out of the skills folder"),
            );
            FolderContent::NoSkill
        }
        Err(error) => {
            problems.push(Diagnostic::error(&start, format!("this {error}")));
            FolderContent::Broken
        }
    }
}

/// The names of the subfolders, sorted, since the order of a listing depends on the disk. Without
/// hidden ones.
pub(crate) fn folders_in(path: &Path) -> Result<Vec<Arc<str>>, FileError> {
    let mut names = all_folders_in(path)?;
    names.retain(|name| !name.starts_with('.'));
    Ok(names)
}

/// The same with hidden ones. An entry of unknown type counts as a folder, so that reading it
/// reports the error.
fn all_folders_in(path: &Path) -> Result<Vec<Arc<str>>, FileError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path).map_err(FileError::Unreadable)? {
        let entry = entry.map_err(FileError::Unreadable)?;
        let is_folder = match fs::metadata(entry.path()) {
            Ok(metadata) => metadata.is_dir(),
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        };
        if is_folder {
            names.push(Arc::from(entry.file_name().to_string_lossy()));
        }
    }
    names.sort();
    Ok(names)
}
