//! Finds a path below a folder, one name at a time.
//!
//! Each folder is opened from the open folder before it, without following links, so that no swap of
//! a folder or a link can lead out. Links are read and followed here: their targets are names that
//! are opened the same way. The floor is checked for each name before the name is looked up, on the
//! path that was really taken.

use std::{
    collections::VecDeque,
    ffi::{OsStr, OsString},
    io,
    path::{Component, Path, PathBuf},
};

use cap_fs_ext::{DirExt as _, FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::fs::{Dir, File, Metadata, OpenOptions};

use super::{
    error::FileError,
    floor::{Access, Floor},
    path::{MOST_NAMES, RelativePath},
};

/// The most links that one path may contain, as in Linux.
const MOST_LINKS: usize = 40;

/// The treatment of the last name and of missing folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To read: links are followed.
    Read,
    /// To replace or remove the last name: it must not be a link.
    Replace,
    /// The same, and missing folders are created.
    Create,
}

impl Purpose {
    pub(super) fn access(self) -> Access {
        match self {
            Self::Read => Access::Read,
            Self::Replace | Self::Create => Access::Write,
        }
    }
}

/// A folder that is open, with its resolved path.
#[derive(Debug)]
pub(super) struct OpenFolder {
    pub(super) dir: Dir,
    pub(super) path: PathBuf,
    pub(super) floor: Floor,
}

/// A name in an open folder; or the folder itself, where `name` is `None`.
#[derive(Debug)]
pub(super) struct LocatedEntry {
    pub(super) dir: Dir,
    pub(super) name: Option<OsString>,
    /// The resolved path, for the floor, locks and records.
    pub(super) path: PathBuf,
    /// `None` if there is no such name.
    pub(super) found: Option<Metadata>,
    /// As written, for messages.
    pub(super) written: String,
}

impl OpenFolder {
    /// # Errors
    /// [`FileError`]; also if a folder in the path does not exist.
    pub(super) fn locate(
        &self,
        path: &RelativePath,
        purpose: Purpose,
    ) -> Result<LocatedEntry, FileError> {
        // Before anything is created on the way.
        self.check(&self.path.join(path.joined()), path, purpose)?;
        let pending = path.names().iter().map(OsString::from).collect();
        let walk = Walk { top: self, path, purpose, opened: Vec::new(), pending, links: 0 };
        walk.run()
    }

    fn check(
        &self,
        resolved: &Path,
        path: &RelativePath,
        purpose: Purpose,
    ) -> Result<(), FileError> {
        match self.floor.objection(resolved, purpose.access()) {
            Some(reason) => Err(FileError::Protected { path: path.written().to_owned(), reason }),
            None => Ok(()),
        }
    }
}

struct Walk<'a> {
    top: &'a OpenFolder,
    path: &'a RelativePath,
    purpose: Purpose,
    /// The open folders below the top, with their names.
    opened: Vec<(Dir, OsString)>,
    /// The names that follow.
    pending: VecDeque<OsString>,
    links: usize,
}

impl Walk<'_> {
    fn run(mut self) -> Result<LocatedEntry, FileError> {
        while let Some(name) = self.pending.pop_front() {
            if name == OsStr::new("..") {
                self.opened.pop().ok_or_else(|| self.bad_link())?;
                continue;
            }
            let resolved = self.resolved().join(&name);
            self.top.check(&resolved, self.path, self.purpose)?;
            let is_last = self.pending.is_empty();
            match self.here().symlink_metadata(&name) {
                Ok(found) if found.is_symlink() => {
                    if is_last && self.purpose != Purpose::Read {
                        return Err(FileError::WritesLink { path: self.written() });
                    }
                    self.follow(&name)?;
                }
                Ok(found) if is_last => return self.finish(Some(name), resolved, Some(found)),
                Ok(found) if found.is_dir() => self.enter(name)?,
                Ok(_) => return Err(FileError::NotAFolder { path: self.written() }),
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(self.failed(error));
                }
                Err(_) if is_last => return self.finish(Some(name), resolved, None),
                Err(_) if self.purpose == Purpose::Create => {
                    match self.here().create_dir(&name) {
                        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                            return Err(self.failed(error));
                        }
                        // Another call may have created it.
                        _ => self.enter(name)?,
                    }
                }
                Err(error) => return Err(self.failed(error)),
            }
        }
        let resolved = self.resolved();
        let found = self.here().dir_metadata().map_err(|error| self.failed(error))?;
        self.finish(None, resolved, Some(found))
    }

    /// Replaces a link by the names of its target.
    fn follow(&mut self, name: &OsStr) -> Result<(), FileError> {
        self.links += 1;
        let target = self.here().read_link_contents(name).map_err(|error| self.failed(error))?;
        let below = if target.is_absolute() {
            // It may lead back into the folder.
            let below = target.strip_prefix(&self.top.path).map_err(|_| self.bad_link())?;
            self.opened.clear();
            below.to_owned()
        } else {
            target
        };
        for component in below.components().rev() {
            match component {
                Component::Normal(name) => self.pending.push_front(name.to_owned()),
                Component::ParentDir => self.pending.push_front("..".into()),
                Component::CurDir => {}
                Component::Prefix(_) | Component::RootDir => return Err(self.bad_link()),
            }
        }
        if self.links > MOST_LINKS || self.pending.len() + self.opened.len() > MOST_NAMES {
            return Err(self.bad_link());
        }
        Ok(())
    }

    fn enter(&mut self, name: OsString) -> Result<(), FileError> {
        let dir = self.here().open_dir_nofollow(&name).map_err(|error| self.failed(error))?;
        self.opened.push((dir, name));
        Ok(())
    }

    fn here(&self) -> &Dir {
        self.opened.last().map_or(&self.top.dir, |(dir, _)| dir)
    }

    fn resolved(&self) -> PathBuf {
        let names = self.opened.iter().map(|(_, name)| Path::new(name));
        std::iter::once(self.top.path.as_path()).chain(names).collect()
    }

    fn finish(
        mut self,
        name: Option<OsString>,
        path: PathBuf,
        found: Option<Metadata>,
    ) -> Result<LocatedEntry, FileError> {
        let written = self.written();
        let dir = match self.opened.pop() {
            Some((dir, _)) => dir,
            None => self.top.dir.try_clone().map_err(|error| self.failed(error))?,
        };
        Ok(LocatedEntry { dir, name, path, found, written })
    }

    fn written(&self) -> String {
        self.path.written().to_owned()
    }

    fn failed(&self, error: io::Error) -> FileError {
        FileError::io(self.path.written(), error)
    }

    fn bad_link(&self) -> FileError {
        FileError::Link { path: self.written() }
    }
}

impl LocatedEntry {
    /// The name and the found file, which is a regular one.
    ///
    /// # Errors
    /// [`FileError::NotFound`], [`FileError::NotAFile`].
    pub(super) fn file(&self) -> Result<(&OsStr, &Metadata), FileError> {
        match (&self.name, &self.found) {
            (Some(name), Some(found)) if found.is_file() => Ok((name, found)),
            (Some(_), None) => Err(FileError::NotFound { path: self.written.clone() }),
            (_, Some(found)) => Err(self.not_a_file(found)),
            (None, None) => Err(FileError::NotAFile { path: self.written.clone(), found: FOLDER }),
        }
    }

    /// Opens the file to read it. A pipe or a device that replaced it meanwhile is not waited for.
    ///
    /// # Errors
    /// As [`file`](Self::file); the system's.
    pub(super) fn open_file(&self) -> Result<(File, Metadata), FileError> {
        let (name, _) = self.file()?;
        let mut options = OpenOptions::new();
        options.read(true).follow(FollowSymlinks::No).nonblock(true);
        let file = self.dir.open_with(name, &options).map_err(|error| self.failed(error))?;
        let found = file.metadata().map_err(|error| self.failed(error))?;
        if found.is_file() { Ok((file, found)) } else { Err(self.not_a_file(&found)) }
    }

    /// The folder.
    ///
    /// # Errors
    /// [`FileError::NotAFolder`]; the system's.
    pub(super) fn into_folder(self) -> Result<(Dir, PathBuf), FileError> {
        match (&self.name, &self.found) {
            (None, _) => Ok((self.dir, self.path)),
            (Some(name), Some(found)) if found.is_dir() => {
                let dir = self.dir.open_dir_nofollow(name).map_err(|error| self.failed(error))?;
                Ok((dir, self.path))
            }
            (Some(_), Some(_)) => Err(FileError::NotAFolder { path: self.written }),
            (Some(_), None) => Err(FileError::NotFound { path: self.written }),
        }
    }

    pub(super) fn failed(&self, error: io::Error) -> FileError {
        FileError::io(&self.written, error)
    }

    fn not_a_file(&self, found: &Metadata) -> FileError {
        let found = if found.is_dir() { FOLDER } else { "a pipe, a socket or a device" };
        FileError::NotAFile { path: self.written.clone(), found }
    }
}

const FOLDER: &str = "a folder";
