//! The files in a skill's folder.

use std::{
    io,
    path::{Component, Path, PathBuf},
};

use rustix::fs::FileType;
use toolcrib_engine::{MAX_SKILL_FILE, SkillFileError, SkillFiles};

use super::SKILL_FILE;
use crate::read::{
    open::{entries, open_file},
    owner::check_below,
    text_file::{FileError, bytes_of},
};

/// The limit of listed files; others can still be read.
const MOST_LISTED: usize = 1000;
/// The depth limit of listed folders.
const DEEPEST: usize = 8;

/// The files in one skill's folder, without hidden ones and symlinks that lead out of it.
#[derive(Debug)]
pub(crate) struct FolderFiles {
    /// Its real path.
    folder: PathBuf,
}

impl FolderFiles {
    /// For the real path of a folder.
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    fn list_into(&self, below: &str, depth: usize, listed: &mut Vec<String>) -> io::Result<()> {
        for (name, kind) in entries(&self.folder.join(below))? {
            let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else { continue };
            let path = if below.is_empty() { name.to_owned() } else { format!("{below}/{name}") };
            if listed.len() >= MOST_LISTED {
                break;
            }
            match kind {
                FileType::Directory if depth < DEEPEST => {
                    self.list_into(&path, depth + 1, listed)?;
                }
                FileType::RegularFile if path != SKILL_FILE => listed.push(path),
                _ => {}
            }
        }
        Ok(())
    }
}

impl SkillFiles for FolderFiles {
    fn list(&self) -> Result<Vec<String>, SkillFileError> {
        let mut listed = Vec::new();
        self.list_into("", 0, &mut listed).map_err(SkillFileError::Unreadable)?;
        listed.sort();
        Ok(listed)
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, SkillFileError> {
        let is_plain = |component: Component<'_>| match component {
            Component::Normal(name) => !name.to_string_lossy().starts_with('.'),
            _ => false,
        };
        if path.contains('\0') || !Path::new(path).components().all(is_plain) {
            return Err(SkillFileError::NotThere);
        }
        // The targets of symlinks count, not their names.
        let real = self.folder.join(path).canonicalize().map_err(|_| SkillFileError::NotThere)?;
        if !real.starts_with(&self.folder) {
            return Err(SkillFileError::NotThere);
        }
        let content = open_file(&real).and_then(|file| {
            let found = file.metadata().map_err(FileError::Unreadable)?;
            // It is read long after the project was trusted.
            check_below(&self.folder, &real, &found)
                .map_err(|foreign| FileError::Unreadable(io::Error::other(foreign)))?;
            bytes_of(file, MAX_SKILL_FILE)
        });
        content.map_err(|error| match error {
            FileError::TooLarge { .. } => SkillFileError::TooLarge,
            FileError::Unreadable(error) => SkillFileError::Unreadable(error),
            _ => SkillFileError::NotThere,
        })
    }
}
