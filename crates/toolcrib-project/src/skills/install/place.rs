//! Putting a skill's files in place, as a whole or not at all.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use uuid::Uuid;

use super::{InstallError, archive::Entry};
use crate::read::skills::{REPLACED, folders_in};

/// The result of an installation.
pub(super) struct PlaceResult {
    pub(super) replaced: bool,
}

/// Writes the files into a hidden folder next to the skills, which no reader opens, and renames it.
pub(super) fn place(
    skills: &Path,
    id: &Arc<str>,
    files: &[Entry],
    replace: bool,
) -> Result<PlaceResult, InstallError> {
    let folder = skills.join(&**id);
    let cannot = |source| InstallError::Write { folder: folder.clone(), source };
    // On a case-insensitive disk, `Billing` conflicts with `billing`.
    let names = folders_in(skills).map_err(|error| cannot(io::Error::other(error.to_string())))?;
    let there = names.into_iter().find(|name| name.to_lowercase() == id.to_lowercase());
    if let Some(there) = there.filter(|there| !replace || there != id) {
        let folder = skills.join(&*there);
        return Err(InstallError::Exists { id: there, folder });
    }
    let new = ScratchFolder::beside(skills, ".installing-", id);
    write(&new.0, files).map_err(cannot)?;
    if fs::symlink_metadata(&folder).is_err() {
        fs::rename(&new.0, &folder).map_err(cannot)?;
        return Ok(PlaceResult { replaced: false });
    }
    if !replace {
        return Err(InstallError::Exists { id: Arc::clone(id), folder });
    }
    let old = ScratchFolder::beside(skills, REPLACED, id);
    swap(&new, &folder, old, |from, to| fs::rename(from, to))?;
    Ok(PlaceResult { replaced: true })
}

/// Deletes a skill's folder. It is renamed first, so that no reader sees a part of it.
pub(super) fn remove(skills: &Path, id: &str) -> io::Result<()> {
    let old = ScratchFolder::beside(skills, REPLACED, id);
    fs::rename(skills.join(id), &old.0)
}

/// Replaces a folder by another, and returns the old one. On failure the old one is moved back; if
/// that fails too, it is kept.
fn swap(
    new: &ScratchFolder,
    folder: &Path,
    old: ScratchFolder,
    rename: impl Fn(&Path, &Path) -> io::Result<()>,
) -> Result<(), InstallError> {
    let cannot = |source| InstallError::Write { folder: folder.to_owned(), source };
    rename(folder, &old.0).map_err(cannot)?;
    let Err(source) = rename(&new.0, folder) else { return Ok(()) };
    match rename(&old.0, folder) {
        Ok(()) => Err(cannot(source)),
        Err(_) => {
            Err(InstallError::Displaced { folder: folder.to_owned(), kept: old.keep(), source })
        }
    }
}

fn write(folder: &Path, files: &[Entry]) -> io::Result<()> {
    fs::create_dir(folder)?;
    for file in files {
        let path = folder.join(&file.path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(
            &mut options,
            if file.executable { 0o755 } else { 0o644 },
        );
        options.open(&path)?.write_all(&file.bytes)?;
    }
    Ok(())
}

/// A folder that is deleted on drop, unless it was renamed.
struct ScratchFolder(PathBuf);

impl ScratchFolder {
    fn beside(skills: &Path, start: &str, id: &str) -> Self {
        Self(skills.join(format!("{start}{id}-{}", Uuid::new_v4().simple())))
    }

    /// Keeps the folder, and returns its path.
    fn keep(mut self) -> PathBuf {
        std::mem::take(&mut self.0)
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        if self.0.as_os_str().is_empty() {
            return;
        }
        // A symlink that was in the skill's place is still one.
        let is_link = fs::symlink_metadata(&self.0).is_ok_and(|metadata| metadata.is_symlink());
        let _ = if is_link { fs::remove_file(&self.0) } else { fs::remove_dir_all(&self.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::skills::SKILL_FILE;

    #[test]
    fn a_skill_that_cannot_be_put_back_is_kept_and_the_error_says_where() {
        let skills = tempfile::TempDir::new().unwrap();
        let folder = skills.path().join("billing");
        for (name, text) in [("billing", "old"), ("new", "new")] {
            fs::create_dir(skills.path().join(name)).unwrap();
            fs::write(skills.path().join(name).join(SKILL_FILE), text).unwrap();
        }
        let new = ScratchFolder(skills.path().join("new"));
        let old = ScratchFolder::beside(skills.path(), REPLACED, "billing");
        // Simulates a target that cannot be written any more.
        let full = |from: &Path, to: &Path| match to == folder {
            true => Err(io::Error::other("the disk is full")),
            false => fs::rename(from, to),
        };
        let error = swap(&new, &folder, old, full).unwrap_err();
        let InstallError::Displaced { kept, .. } = &error else { panic!("{error}") };
        assert_eq!(fs::read_to_string(kept.join(SKILL_FILE)).unwrap(), "old");
        assert!(error.to_string().contains(&*kept.to_string_lossy()), "{error}");
        assert!(!folder.exists());
    }
}
