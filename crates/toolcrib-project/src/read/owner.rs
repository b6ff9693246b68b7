//! File owners: the user, the system, or another user.

use std::{
    collections::BTreeSet,
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// The owner and mode of a file or folder at the time of reading.
#[derive(Debug, Clone)]
pub(crate) struct FileOwner {
    pub(crate) path: PathBuf,
    pub(crate) uid: u32,
    pub(crate) mode: u32,
    pub(crate) is_folder: bool,
}

/// A file or folder that another user controls.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ForeignFile {
    /// Its owner is neither the user nor the system.
    #[error("{} belongs to another user (uid {uid})", shown(path))]
    Owner {
        /// The file or folder.
        path: PathBuf,
        /// Its owner.
        uid: u32,
    },
    /// Every user of the machine may change it.
    #[error("every user of this machine may change {}", shown(path))]
    Everybody {
        /// The file or folder.
        path: PathBuf,
    },
}

fn shown(path: &Path) -> String {
    plain(&path.to_string_lossy())
}

impl ForeignFile {
    /// The file or folder.
    pub fn path(&self) -> &Path {
        match self {
            Self::Owner { path, .. } | Self::Everybody { path } => path,
        }
    }
}

impl FileOwner {
    /// A file or folder as it is now.
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        Ok(Self::of(path, &fs::metadata(path)?))
    }

    /// From its metadata.
    pub(crate) fn of(path: &Path, found: &fs::Metadata) -> Self {
        let (uid, mode) = (found.uid(), found.mode());
        Self { path: path.to_owned(), uid, mode, is_folder: found.is_dir() }
    }

    /// Whether another user controls it. `accepted` returns the accepted owner of a path.
    pub(crate) fn foreign(&self, accepted: &impl Fn(&Path) -> Option<u32>) -> Option<ForeignFile> {
        const OTHERS_WRITE: u32 = 0o002;
        const STICKY: u32 = 0o1000;
        let path = || self.path.clone();
        let is_mine = self.uid == rustix::process::geteuid().as_raw() || self.uid == 0;
        // In a sticky folder every user may create files, but not remove those of others.
        let is_open = self.mode & OTHERS_WRITE != 0 && !(self.is_folder && self.mode & STICKY != 0);
        if is_mine && !is_open {
            return None;
        }
        match accepted(&self.path) {
            Some(uid) if is_mine || uid == self.uid => None,
            _ if is_mine => Some(ForeignFile::Everybody { path: path() }),
            _ => Some(ForeignFile::Owner { path: path(), uid: self.uid }),
        }
    }
}

/// The files, and the folders that lead to them: up to the project's, else the one that contains
/// each.
pub(crate) fn with_folders(files: Vec<FileOwner>, project: Option<&Path>) -> Vec<FileOwner> {
    let mut folders: BTreeSet<&Path> = project.into_iter().collect();
    for file in &files {
        let of_project = project.filter(|project| file.path.starts_with(project));
        let above = file.path.ancestors().skip(1);
        match of_project {
            Some(project) => folders.extend(above.take_while(|path| path.starts_with(project))),
            None => folders.extend(above.take(1)),
        }
    }
    let folders: Vec<_> = folders.into_iter().filter_map(|path| FileOwner::at(path).ok()).collect();
    folders.into_iter().chain(files).collect()
}

/// Whether another user controls the nearest existing folder of a path: nothing is written into
/// such a folder.
///
/// # Errors
/// [`ForeignFile`] names the owner.
pub(crate) fn check_owner(
    path: &Path,
    accepted: impl Fn(&Path) -> Option<u32>,
) -> Result<(), ForeignFile> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let there = path.ancestors().find_map(|path| FileOwner::at(&path.canonicalize().ok()?).ok());
    match there.and_then(|there| there.foreign(&accepted)) {
        Some(foreign) => Err(foreign),
        None => Ok(()),
    }
}

/// Whether another user controls a file below a folder that is already used, or a folder between
/// them. An owner accepted for the folder is accepted for the file.
///
/// # Errors
/// [`ForeignFile`] names the owner.
pub(crate) fn check_below(
    folder: &Path,
    file: &Path,
    found: &fs::Metadata,
) -> Result<(), ForeignFile> {
    let accepted = FileOwner::at(folder).ok().filter(|one| one.foreign(&|_| None).is_some());
    let accepted = accepted.map(|one| one.uid);
    let owned = with_folders(vec![FileOwner::of(file, found)], Some(folder));
    match owned.iter().find_map(|one| one.foreign(&|_| accepted)) {
        Some(foreign) => Err(foreign),
        None => Ok(()),
    }
}

/// A text without characters that control a terminal or begin a line.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(escaped).collect()
}

/// Escapes everything but printable ASCII and Latin letters: letters of some scripts change the
/// direction of the text around them.
pub(crate) fn escaped(c: char) -> String {
    match c {
        '\'' => c.into(),
        '\u{c0}'..='\u{24f}' => c.into(),
        c => c.escape_default().collect(),
    }
}
