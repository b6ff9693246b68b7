//! Skill folders: a `SKILL.md` each.

mod frontmatter;
mod quoted;
mod skill_file;
mod yaml;

use std::{fs, path::Path, sync::Arc};

use toolcrib_config::{Diagnostic, Problems, Spot};

pub(crate) use self::skill_file::SkillFile;
use crate::{
    config::SkillsSection,
    root::{FileError, MAX_TEXT, Root},
};

/// The folder that is looked into when the project file names none.
const DEFAULT_FOLDER: &str = "skills";
/// The file that makes a folder a skill.
const SKILL_FILE: &str = "SKILL.md";

/// The skills of a project.
#[derive(Debug, Default)]
pub(crate) struct SkillFolders {
    /// The names of all folders with a `SKILL.md`, broken ones included, sorted.
    pub(crate) names: Vec<Arc<str>>,
    /// The skills that could be read, in the same order.
    pub(crate) skills: Vec<SkillFile>,
}

impl SkillFolders {
    /// Reads all skills; every problem is recorded.
    pub(crate) fn read(root: &Root, section: &SkillsSection, problems: &Problems) -> Self {
        let (folder, at) = match &section.folder {
            Some(folder) => (&*folder.value, folder.at.clone()),
            None => (DEFAULT_FOLDER, Spot::start_of(crate::PROJECT_FILE)),
        };
        let listed = root.folder(folder).and_then(|path| folders_in(&path));
        let names = match listed {
            Ok(names) => names,
            Err(FileError::NotFound) if section.folder.is_none() => return Self::default(),
            Err(error) => {
                problems.push(Diagnostic::error(&at, format!("skill folder `{folder}` {error}")));
                return Self::default();
            }
        };
        let mut this = Self::default();
        for name in names {
            let file: Arc<str> =
                format!("{}/{name}/{SKILL_FILE}", folder.trim_end_matches('/')).into();
            let start = Spot::start_of(Arc::clone(&file));
            match root.text(&file, MAX_TEXT) {
                Ok(text) => {
                    this.skills.extend(SkillFile::read(&file, &name, &text, problems));
                    this.names.push(name);
                }
                Err(FileError::NotFound) => problems.push(
                    Diagnostic::warning(&start, format!("folder `{name}` has no {SKILL_FILE}"))
                        .help("write one, or move the folder out of the skills"),
                ),
                Err(error) => {
                    problems.push(Diagnostic::error(&start, format!("this {error}")));
                    this.names.push(name);
                }
            }
        }
        this
    }
}

/// The names of the folders in a folder, sorted: the order of a listing differs from disk to
/// disk. Hidden ones are left out.
fn folders_in(path: &Path) -> Result<Vec<Arc<str>>, FileError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path).map_err(FileError::Unreadable)? {
        let entry = entry.map_err(FileError::Unreadable)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if entry.path().is_dir() && !name.starts_with('.') {
            names.push(Arc::from(name));
        }
    }
    names.sort();
    Ok(names)
}
