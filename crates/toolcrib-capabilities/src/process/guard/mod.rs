//! Protects files that steer code from programs in a sandbox: those that exist are read-only, and new
//! ones are moved away when the program has ended.

mod git;
mod search;

use std::{
    collections::{HashMap, HashSet},
    ffi::{OsStr, OsString},
    fs::DirBuilder,
    io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use rustix::{
    fd::OwnedFd,
    fs::{CWD, Mode, OFlags, ResolveFlags, openat2, renameat},
};

use self::search::{Found, FoundKind, search};
use super::moved::MovedFile;

/// The most protected files of a sandbox, each of which is a mount.
const MOST_PROTECTED: usize = 2_000;

/// The folders that a program may change, and the protected files that were in them at its start.
#[derive(Debug)]
pub(super) struct Guard {
    folders: Vec<PathBuf>,
    trash: Option<PathBuf>,
    /// Device and inode of each file and folder.
    files: HashSet<(u64, u64)>,
    /// The target of each symlink.
    links: HashMap<PathBuf, PathBuf>,
    fixed: Vec<PathBuf>,
}

impl Guard {
    /// Searches the folders. Blocks.
    ///
    /// # Errors
    /// A folder that cannot be searched completely: then it cannot be protected.
    pub(super) fn new(
        folders: &[PathBuf],
        trash: Option<PathBuf>,
    ) -> Result<Self, (PathBuf, io::Error)> {
        let mut guard = Self {
            folders: folders.to_vec(),
            trash,
            files: HashSet::new(),
            links: HashMap::new(),
            fixed: Vec::new(),
        };
        for folder in folders {
            let failed = |error| (folder.clone(), error);
            let (found, unsearched) = search(folder).map_err(failed)?;
            if unsearched || found.len() + guard.fixed.len() > MOST_PROTECTED {
                let why = "it has too many files to protect those that steer code; grant a \
                           smaller folder";
                return Err(failed(io::Error::other(why)));
            }
            let covered: Vec<_> = found.into_iter().filter(|one| guard.covers(one)).collect();
            for Found { path, kind, .. } in covered {
                match kind {
                    FoundKind::Link { target } => drop(guard.links.insert(path, target)),
                    FoundKind::File { id, .. } => {
                        guard.files.insert(id);
                        guard.fixed.push(path);
                    }
                }
            }
        }
        guard.fixed.sort_unstable();
        guard.fixed.dedup();
        Ok(guard)
    }

    /// Whether a file is protected: one that is granted by its own path is not.
    fn covers(&self, found: &Found) -> bool {
        let around = self.folders.iter().filter(|folder| found.path.starts_with(folder));
        let deepest = around.max_by_key(|folder| folder.components().count());
        deepest.is_some_and(|deepest| found.path != *deepest) && !self.folders.contains(&found.path)
    }

    /// The existing files and folders that are protected.
    pub(super) fn fixed(&self) -> &[PathBuf] {
        &self.fixed
    }

    /// Moves new protected files away, after the program has ended. Blocks.
    pub(super) fn settle(self) -> Vec<MovedFile> {
        let mut moved = Vec::new();
        for folder in &self.folders {
            let failed =
                |reason: String| MovedFile { path: folder.clone(), reason, is_moved: false };
            match search(folder) {
                Ok((mut found, unsearched)) => {
                    found.retain(|one| self.covers(one));
                    if unsearched {
                        let why = "it has too many files to search all of it for new files that \
                                   steer code";
                        moved.push(failed(why.to_owned()));
                    }
                    found.iter().for_each(|found| self.settle_one(found, &mut moved));
                }
                // The program may have removed it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => moved.push(failed(format!("it cannot be searched: {error}"))),
            }
        }
        moved
    }

    fn settle_one(&self, found: &Found, moved: &mut Vec<MovedFile>) {
        let is_known = match &found.kind {
            FoundKind::Link { target } => self.links.get(&found.path) == Some(target),
            FoundKind::File { id, .. } => self.files.contains(id),
        };
        if is_known {
            return;
        }
        let kept = match &found.kind {
            FoundKind::File { part: Some(part), .. } => git::harmful(*part, &found.path),
            _ => None,
        };
        for path in kept.unwrap_or_else(|| vec![found.path.clone()]) {
            moved.push(match self.move_away(&path) {
                Ok(()) => MovedFile { path, reason: found.reason.to_owned(), is_moved: true },
                Err(error) => {
                    let reason = format!("{}; it cannot be moved: {error}", found.reason);
                    MovedFile { path, reason, is_moved: false }
                }
            });
        }
    }

    /// Moves a file to the trash. If that is on another file system, it stays where it is, under a name
    /// that nothing reads.
    fn move_away(&self, path: &Path) -> io::Result<()> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let parent = folder_at(parent)?;
        let number = next_number();
        if let Some(trash) = &self.trash {
            let mut kept = OsString::from(format!("protected-{number}-"));
            kept.push(name);
            let made = DirBuilder::new().recursive(true).mode(0o700).create(trash);
            let to = made.and_then(|()| folder_at(trash));
            if to.is_ok_and(|to| renameat(&parent, name, &to, &kept).is_ok()) {
                return Ok(());
            }
        }
        let mut aside = name.to_owned();
        aside.push(format!(".untrusted-{number}"));
        Ok(renameat(&parent, name, &parent, OsStr::new(&aside))?)
    }
}

/// Opens a folder. No name of its path may be a symlink: a program could have put it there.
fn folder_at(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(openat2(CWD, path, flags, Mode::empty(), resolve)?)
}

/// A number for a name: the time, and one that differs within a process.
fn next_number() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    format!("{now:015}-{:06}", NEXT.fetch_add(1, Ordering::Relaxed))
}
