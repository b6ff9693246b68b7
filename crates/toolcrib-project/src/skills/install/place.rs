//! Putting a skill's files in place, as a whole or not at all.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use uuid::Uuid;

use super::{InstallError, archive::Entry};
use crate::skills::folders_in;

/// What putting a skill in place came to.
pub(super) struct Placed {
    pub(super) replaced: bool,
}

/// Writes the files into a hidden folder beside the skills, which no reader looks at, and gives that
/// its name.
pub(super) fn place(
    skills: &Path,
    id: &Arc<str>,
    files: &[Entry],
    replace: bool,
) -> Result<Placed, InstallError> {
    let folder = skills.join(&**id);
    let cannot = |source| InstallError::Write { folder: folder.clone(), source };
    // Where case does not count, `Billing` is in the way of `billing` too.
    let names = folders_in(skills).map_err(|error| cannot(io::Error::other(error.to_string())))?;
    let there = names.into_iter().find(|name| name.to_lowercase() == id.to_lowercase());
    if let Some(there) = there.filter(|there| !replace || there != id) {
        let folder = skills.join(&*there);
        return Err(InstallError::Exists { id: there, folder });
    }
    let new = Scratch::beside(skills, "installing");
    write(&new.0, files).map_err(cannot)?;
    if fs::symlink_metadata(&folder).is_err() {
        fs::rename(&new.0, &folder).map_err(cannot)?;
        return Ok(Placed { replaced: false });
    }
    if !replace {
        return Err(InstallError::Exists { id: Arc::clone(id), folder });
    }
    let old = Scratch::beside(skills, "replaced");
    fs::rename(&folder, &old.0).map_err(cannot)?;
    if let Err(error) = fs::rename(&new.0, &folder) {
        // As it was.
        let _ = fs::rename(&old.0, &folder);
        return Err(cannot(error));
    }
    Ok(Placed { replaced: true })
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

/// A folder that is gone in the end, unless it was given another name.
struct Scratch(PathBuf);

impl Scratch {
    fn beside(skills: &Path, what: &str) -> Self {
        Self(skills.join(format!(".{what}-{}", Uuid::new_v4().simple())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A link that was in the skill's place is one still.
        let is_link = fs::symlink_metadata(&self.0).is_ok_and(|metadata| metadata.is_symlink());
        let _ = if is_link { fs::remove_file(&self.0) } else { fs::remove_dir_all(&self.0) };
    }
}
