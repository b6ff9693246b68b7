//! Searches a folder for files that steer code. Symlinks are not followed, and folders with
//! dependencies are left out.

use std::{
    collections::VecDeque,
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use super::git::{self, GitPart};
use crate::steering::{STEERING, folded, steers};

/// The most entries that are looked at. Folders near the top come first.
const MOST_ENTRIES: usize = 500_000;

/// Folders that package managers and compilers fill: their files belong to dependencies.
const DEPENDENCIES: &[&str] = &[
    "node_modules",
    "bower_components",
    "site-packages",
    "__pycache__",
    "target",
    "vendor",
    "venv",
    ".venv",
    ".tox",
    ".nox",
    ".npm",
    ".yarn",
    ".pnpm-store",
    ".gradle",
    ".m2",
    ".rustup",
    ".cache",
    ".bundle",
    "pods",
];

/// The same, within a folder of this name.
const DEPENDENCIES_IN: &[(&str, &str)] =
    &[(".cargo", "registry"), (".cargo", "git"), ("share", "uv"), ("share", "pnpm")];

/// A file or folder that steers code.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) path: PathBuf,
    pub(super) reason: &'static str,
    pub(super) kind: FoundKind,
}

#[derive(Debug)]
pub(super) enum FoundKind {
    Link {
        target: PathBuf,
    },
    File {
        /// Device and inode.
        id: (u64, u64),
        /// Of a repository.
        part: Option<GitPart>,
    },
}

/// An entry of a folder.
pub(super) struct Entry {
    pub(super) path: PathBuf,
    /// The folded name.
    pub(super) name: String,
    pub(super) kind: fs::FileType,
}

/// A search in progress.
pub(super) struct Search {
    found: Vec<Found>,
    looked_at: usize,
    unsearched: bool,
}

/// The files that steer code below a folder, and whether some of it was not searched.
pub(super) fn search(folder: &Path) -> io::Result<(Vec<Found>, bool)> {
    let mut search = Search { found: Vec::new(), looked_at: 0, unsearched: false };
    if !folder.symlink_metadata()?.is_dir() || is_dependency(&names_of(folder)) {
        return Ok((search.found, false));
    }
    let mut folders = VecDeque::from([folder.to_owned()]);
    while let Some(next) = folders.pop_front() {
        search.folder(&next, next == folder, &mut folders)?;
    }
    Ok((search.found, search.unsearched))
}

/// The last folded names of a path, as many as a rule has.
fn names_of(path: &Path) -> Vec<String> {
    const MOST: usize = 3;
    let mut names: Vec<_> =
        path.iter().rev().take(MOST).map(|name| folded(&name.to_string_lossy())).collect();
    names.reverse();
    names
}

fn is_dependency(names: &[String]) -> bool {
    let Some((last, around)) = names.split_last() else { return false };
    let is_in = |(outer, inner): &(&str, &str)| {
        last == inner && around.last().is_some_and(|name| name == outer)
    };
    DEPENDENCIES.contains(&last.as_str()) || DEPENDENCIES_IN.iter().any(is_in)
}

/// Whether a symlink of this name may be the beginning of the path of a protected file.
fn begins_rule(name: &str) -> bool {
    let begins = |(rule, _): &(&[&str], &str)| rule.len() > 1 && rule.first() == Some(&name);
    name.starts_with('.') && STEERING.iter().any(begins)
}

impl Search {
    /// Looks at one folder; those in it are added to `folders`.
    fn folder(
        &mut self,
        folder: &Path,
        is_first: bool,
        folders: &mut VecDeque<PathBuf>,
    ) -> io::Result<()> {
        let entries = match self.entries(folder) {
            Ok(entries) => entries,
            // It was removed meanwhile, or the program may not read it either.
            Err(_) if !is_first => return Ok(()),
            Err(error) => return Err(error),
        };
        if git::is_repository(folder, &entries) {
            return self.repository(&entries);
        }
        for Entry { path, name, kind } in entries {
            let names = names_of(&path);
            if name == git::FOLDER && kind.is_dir() {
                let within = self.entries(&path).unwrap_or_default();
                self.repository(&within)?;
            } else if let Some(reason) = reason(&names, &name, kind) {
                self.add(path, reason, None);
            } else if kind.is_dir() && !is_dependency(&names) {
                folders.push_back(path);
            }
        }
        Ok(())
    }

    /// The entries of a folder, as far as the limit permits.
    #[expect(clippy::disallowed_methods, reason = "it decides which files a program may change")]
    fn entries(&mut self, folder: &Path) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(folder)? {
            if self.looked_at == MOST_ENTRIES {
                self.unsearched = true;
                break;
            }
            self.looked_at += 1;
            let entry = entry?;
            let name = folded(&entry.file_name().to_string_lossy());
            entries.push(Entry { path: entry.path(), name, kind: entry.file_type()? });
        }
        Ok(entries)
    }

    /// The parts of a repository that run code, and those of its submodules and worktrees.
    fn repository(&mut self, entries: &[Entry]) -> io::Result<()> {
        for Entry { path, name, kind } in entries {
            if let Some(part) = GitPart::named(name) {
                self.add(path.clone(), git::REASON, Some(part));
            } else if git::WITH_REPOSITORIES.contains(&name.as_str()) && kind.is_dir() {
                let mut folders = VecDeque::from([path.clone()]);
                while let Some(next) = folders.pop_front() {
                    let within = self.entries(&next).unwrap_or_default();
                    for entry in within {
                        if let Some(part) = GitPart::named(&entry.name) {
                            self.add(entry.path, git::REASON, Some(part));
                        } else if entry.kind.is_dir() && !git::WITHOUT_CODE.contains(&&*entry.name)
                        {
                            folders.push_back(entry.path);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, path: PathBuf, reason: &'static str, part: Option<GitPart>) {
        let Ok(found) = path.symlink_metadata() else { return };
        let kind = match found.is_symlink() {
            true => FoundKind::Link { target: fs::read_link(&path).unwrap_or_default() },
            false => FoundKind::File { id: (found.dev(), found.ino()), part },
        };
        self.found.push(Found { path, reason, kind });
    }
}

fn reason(names: &[String], name: &str, kind: fs::FileType) -> Option<&'static str> {
    // A file or a link, which leads to another folder.
    if name == git::FOLDER {
        return Some(git::REASON);
    }
    let by_link = (kind.is_symlink() && begins_rule(name)).then_some("it leads to such files");
    steers(names).or(by_link)
}
