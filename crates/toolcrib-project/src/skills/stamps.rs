//! What tells that a skill has changed, without reading it.

use std::{fs, path::Path, sync::Arc, time::SystemTime};

use super::{REPLACED, SKILL_FILE, all_folders_in};
use crate::root::{FileError, Root};

/// What lay in the folder of skills at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Stamps(Vec<SkillStamp>);

/// One skill's folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SkillStamp {
    pub(crate) name: Arc<str>,
    /// `None` where there is no `SKILL.md`.
    file: Option<FileStamp>,
    /// Whether there is something beside the `SKILL.md`.
    pub(crate) has_files: bool,
    /// The hidden folder that it lies in, where it is not in its place because another skill is
    /// just taking it.
    pub(crate) moved_to: Option<Arc<str>>,
}

/// A file that has another one, or none of these times, has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FileStamp {
    len: u64,
    modified: Option<SystemTime>,
    /// The file itself, and when anything about it changed: what is put in place by renaming is
    /// another file, whatever time it bears.
    #[cfg(unix)]
    node: (u64, i64, i64),
}

impl Stamps {
    /// Of the folders in a project's folder of skills; none where that is not there.
    ///
    /// # Errors
    /// Why it cannot be told what lies in it, which is another thing than nothing.
    pub(crate) fn of(root: &Root, folder: &str) -> Result<Self, FileError> {
        let path = match root.folder(folder) {
            Err(FileError::NotFound) => return Ok(Self::default()),
            found => found?,
        };
        let (hidden, names): (Vec<_>, Vec<_>) =
            all_folders_in(&path)?.into_iter().partition(|name| name.starts_with('.'));
        let mut stamps: Vec<_> =
            names.into_iter().map(|name| SkillStamp::of(&path, name)).collect();
        for moved_to in hidden {
            let rest = moved_to.strip_prefix(REPLACED).and_then(|rest| rest.rsplit_once('-'));
            let Some((id, _)) = rest else { continue };
            if stamps.iter().all(|stamp| *stamp.name != *id) {
                let name = id.into();
                let moved_to = Some(moved_to);
                stamps.push(SkillStamp { name, moved_to, ..SkillStamp::default() });
            }
        }
        stamps.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self(stamps))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &SkillStamp> {
        self.0.iter()
    }

    /// What is known of one skill.
    pub(crate) fn get(&self, name: &str) -> Option<&SkillStamp> {
        self.0.iter().find(|stamp| *stamp.name == *name)
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

impl FileStamp {
    fn of(metadata: &fs::Metadata) -> Self {
        #[cfg(unix)]
        use std::os::unix::fs::MetadataExt as _;
        Self {
            len: metadata.len(),
            modified: metadata.modified().ok(),
            #[cfg(unix)]
            node: (metadata.ino(), metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}
