//! Detects that a skill has changed, without reading it.

use std::{collections::BTreeMap, fs, path::Path, sync::Arc};

use toolcrib_capabilities::__internal::FileStamp;

use super::{REPLACED, SKILL_FILE, all_folders_in};
use crate::read::{root::Root, text_file::FileError};

/// The content of a skills folder at one moment, sorted by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Stamps(Vec<SkillStamp>);

/// One skill's folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SkillStamp {
    pub(crate) name: Arc<str>,
    /// `None` without a `SKILL.md`.
    file: Option<FileStamp>,
    /// Whether there are files besides the `SKILL.md`.
    pub(crate) has_files: bool,
    /// The hidden folder of a skill that is just being replaced.
    pub(crate) moved_to: Option<Arc<str>>,
}

impl Stamps {
    /// Of the folders in a project's skills folder; empty if that does not exist.
    ///
    /// # Errors
    /// Why its content is unknown, which differs from empty.
    pub(crate) fn of(root: &Root, folder: &str) -> Result<Self, FileError> {
        let path = match root.folder(folder) {
            Err(FileError::NotFound) => return Ok(Self::default()),
            found => found?,
        };
        let (hidden, names): (Vec<_>, Vec<_>) =
            all_folders_in(&path)?.into_iter().partition(|name| name.starts_with('.'));
        let stamps = names.into_iter().map(|name| SkillStamp::of(&path, name));
        let mut stamps: BTreeMap<_, _> =
            stamps.map(|stamp| (Arc::clone(&stamp.name), stamp)).collect();
        for moved_to in hidden {
            let rest = moved_to.strip_prefix(REPLACED).and_then(|rest| rest.rsplit_once('-'));
            let Some((id, _)) = rest else { continue };
            let name: Arc<str> = id.into();
            stamps.entry(Arc::clone(&name)).or_insert_with(|| SkillStamp {
                name,
                moved_to: Some(moved_to),
                ..SkillStamp::default()
            });
        }
        Ok(Self(stamps.into_values().collect()))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &SkillStamp> {
        self.0.iter()
    }

    /// The stamp of one skill.
    pub(crate) fn get(&self, name: &str) -> Option<&SkillStamp> {
        let at = self.0.binary_search_by(|stamp| (*stamp.name).cmp(name)).ok()?;
        self.0.get(at)
    }
}

impl SkillStamp {
    fn of(skills: &Path, name: Arc<str>) -> Self {
        let folder = skills.join(&*name);
        let has_files = fs::read_dir(&folder).is_ok_and(|entries| {
            let mut names = entries.flatten().map(|entry| entry.file_name());
            names.any(|name| name != SKILL_FILE && !name.to_string_lossy().starts_with('.'))
        });
        let file =
            fs::metadata(folder.join(SKILL_FILE)).ok().map(|metadata| FileStamp::of(&metadata));
        Self { name, file, has_files, moved_to: None }
    }
}
