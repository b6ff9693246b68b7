//! Lists folders and finds files by patterns of their paths.

use std::{ops::ControlFlow, sync::Arc, time::SystemTime};

use cap_fs_ext::DirExt as _;
use cap_std::fs::{Dir, Metadata};
use globset::{GlobBuilder, GlobMatcher};
use tokio_util::sync::CancellationToken;
use toolcrib_core::{ToolContext, ToolError};

use super::{
    FilesHandle,
    error::FileError,
    floor::Access,
    ignore_rules::IgnoreRules,
    left_out::{LeftOut, LeftOutList, LeftOutReason},
    locate::{OpenFolder, Purpose},
    path::RelativePath,
    read::modified,
    work_progress::{FileWork, WorkProgress},
};

/// The most entries that one call looks at, whatever it returns.
const MOST_VISITED: usize = 100_000;

/// The longest pattern of paths, in bytes.
const LONGEST_GLOB: usize = 1_000;

/// The kind of a name in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link. Listings do not follow it.
    Link,
    /// A pipe, a socket or a device.
    Other,
}

/// One name in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// The path from the top of the folder, with `/` between names.
    pub path: String,
    /// Its kind.
    pub kind: EntryKind,
    /// The size of a file in bytes; else 0.
    pub size: u64,
    /// The time of the last change, where the file system has one.
    pub modified: Option<SystemTime>,
}

/// The names in a folder, sorted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Listing {
    /// The names.
    pub entries: Vec<Entry>,
    /// Whether a limit ended the listing.
    pub is_cut: bool,
    /// Folders whose names are left out. Folders below the requested `depth` are not among them.
    pub left_out: Vec<LeftOut>,
}

impl FilesHandle {
    /// The names in a folder, and in its subfolders down to `depth` levels: 1 lists the folder alone.
    /// Links are listed and not followed. Protected names are left out, and, unless `ignored` is set,
    /// those that `.gitignore` and `.ignore` name.
    ///
    /// # Errors
    /// A [`ToolError`] with a [`FileError`] as its cause.
    pub async fn list(
        &self,
        cx: &ToolContext,
        path: &str,
        depth: usize,
        ignored: bool,
    ) -> Result<Listing, ToolError> {
        let path = RelativePath::parse(path).map_err(FileError::into_tool_error)?;
        self.run(cx, move |handle, cx, cancel| {
            let requested = depth;
            let depth = depth.clamp(1, handle.limits().max_depth);
            let most = handle.limits().max_entries;
            let progress = &WorkProgress::new(cx, FileWork::List);
            let tree = Tree { top: handle.top(), path: &path, depth, ignored, progress };
            let mut listing = collect(&tree, most, cancel, |_| true)?;
            if requested <= depth {
                listing.left_out.retain(|left_out| left_out.reason != LeftOutReason::TooDeep);
            }
            Ok(listing)
        })
        .await
    }

    /// The files below a folder whose path, from the top of the folder, matches a pattern: `*` and
    /// `?` within a name, `**` over folders, `[a-z]`, `{a,b}`. A pattern without `/` is one of names.
    /// `ignored` is that of [`list`](Self::list).
    ///
    /// # Errors
    /// As [`list`](Self::list); [`FileError::Pattern`].
    pub async fn find(
        &self,
        cx: &ToolContext,
        path: &str,
        pattern: &str,
        ignored: bool,
    ) -> Result<Listing, ToolError> {
        let path = RelativePath::parse(path).map_err(FileError::into_tool_error)?;
        let pattern = glob(pattern).map_err(FileError::into_tool_error)?;
        self.run(cx, move |handle, cx, cancel| {
            let (depth, most) = (handle.limits().max_depth, handle.limits().max_entries);
            let progress = &WorkProgress::new(cx, FileWork::List);
            let tree = Tree { top: handle.top(), path: &path, depth, ignored, progress };
            collect(&tree, most, cancel, |entry| {
                entry.kind == EntryKind::File && pattern.is_match(&entry.path)
            })
        })
        .await
    }
}

/// The part of a folder that is walked.
pub(super) struct Tree<'a> {
    pub(super) top: &'a OpenFolder,
    pub(super) path: &'a RelativePath,
    pub(super) depth: usize,
    /// Whether files that `.gitignore` names are visited too.
    pub(super) ignored: bool,
    pub(super) progress: &'a WorkProgress<'a>,
}

fn collect(
    tree: &Tree<'_>,
    most: usize,
    cancel: &CancellationToken,
    is_wanted: impl Fn(&Entry) -> bool,
) -> Result<Listing, FileError> {
    let mut listing = Listing::default();
    let mut left_out = LeftOutList::default();
    let is_whole = walk(tree, cancel, &mut left_out, |_, entry| {
        if !is_wanted(&entry) {
            return Ok(ControlFlow::Continue(()));
        }
        if listing.entries.len() == most {
            return Ok(ControlFlow::Break(()));
        }
        listing.entries.push(entry);
        Ok(ControlFlow::Continue(()))
    })?;
    listing.is_cut = !is_whole;
    listing.left_out = left_out.into_all();
    Ok(listing)
}

/// A pattern of paths. One without `/` is one of names.
pub(super) fn glob(pattern: &str) -> Result<GlobMatcher, FileError> {
    if pattern.len() > LONGEST_GLOB {
        let problem = format!("it is longer than {LONGEST_GLOB} bytes");
        return Err(FileError::Pattern { problem });
    }
    let whole = if pattern.contains('/') { pattern.to_owned() } else { format!("**/{pattern}") };
    let whole = whole.strip_prefix("./").unwrap_or(&whole);
    let built = GlobBuilder::new(whole).literal_separator(true).build();
    let invalid = |error: globset::Error| FileError::Pattern { problem: error.kind().to_string() };
    built.map(|glob| glob.compile_matcher()).map_err(invalid)
}

/// A folder that is walked: its path for the model, its patterns, and the names that follow, the next one
/// last.
struct Level {
    dir: Arc<Dir>,
    prefix: String,
    ignored: Option<IgnoreRules>,
    names: Vec<(String, Metadata)>,
    /// The names that a path cannot contain, escaped.
    unusable: Vec<String>,
}

/// Visits the names below a folder, in order, each with its open folder. Returns whether all were
/// visited: `false` after a limit or a break. Folders that cannot be entered are added to `left_out`.
pub(super) fn walk(
    tree: &Tree<'_>,
    cancel: &CancellationToken,
    left_out: &mut LeftOutList,
    mut visit: impl FnMut(&Arc<Dir>, Entry) -> Result<ControlFlow<()>, FileError>,
) -> Result<bool, FileError> {
    let Tree { top, path, depth, .. } = *tree;
    let (dir, resolved) = top.locate(path, Purpose::Read)?.into_folder()?;
    let mut prefix = path.names().join("/");
    if !prefix.is_empty() {
        prefix.push('/');
    }
    let above = if tree.ignored { Vec::new() } else { above(top, path)? };
    let (mut is_whole, mut number, mut room) = (true, 0, MOST_VISITED);
    let first = Level::read(tree, dir, &resolved, prefix, &mut room, &mut is_whole);
    let mut levels = vec![(first.map_err(|error| FileError::io(path.written(), error))?, resolved)];
    while let Some((level, resolved)) = levels.last_mut() {
        if cancel.is_cancelled() {
            return Err(FileError::Cancelled);
        }
        for path in level.unusable.drain(..) {
            left_out.add(LeftOutReason::Name, number, &path);
            number += 1;
        }
        let Some((name, found)) = level.names.pop() else {
            levels.pop();
            continue;
        };
        let entry = Entry::of(format!("{}{name}", level.prefix), &found);
        let (is_folder, prefix) = (entry.kind == EntryKind::Folder, format!("{}/", entry.path));
        let (dir, below) = (Arc::clone(&level.dir), resolved.join(&name));
        let patterns = levels.iter().rev().filter_map(|(level, _)| level.ignored.as_ref());
        let mut patterns = patterns.chain(above.iter().rev());
        if patterns.find_map(|one| one.decides(&entry.path, is_folder)).unwrap_or_default() {
            continue;
        }
        let path = entry.path.clone();
        if visit(&dir, entry)?.is_break() {
            return Ok(false);
        }
        number += 1;
        if !is_folder {
            continue;
        }
        if levels.len() >= depth {
            left_out.add(LeftOutReason::TooDeep, number, &path);
            continue;
        }
        // A folder that may not be read is listed without its names.
        let read = dir
            .open_dir_nofollow(&name)
            .and_then(|dir| Level::read(tree, dir, &below, prefix, &mut room, &mut is_whole));
        match read {
            Ok(level) => levels.push((level, below)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(_) => left_out.add(LeftOutReason::Unreadable, number, &path),
        }
    }
    Ok(is_whole)
}

/// The patterns of the folders above a folder, from the top.
fn above(top: &OpenFolder, path: &RelativePath) -> Result<Vec<IgnoreRules>, FileError> {
    let mut above = Vec::new();
    let mut prefix = String::new();
    for name in path.names() {
        let (dir, _) = top.locate(&RelativePath::parse(&prefix)?, Purpose::Read)?.into_folder()?;
        above.extend(IgnoreRules::of(&dir, &prefix));
        prefix = format!("{prefix}{name}/");
    }
    Ok(above)
}

impl Level {
    fn read(
        tree: &Tree<'_>,
        dir: Dir,
        resolved: &std::path::Path,
        prefix: String,
        room: &mut usize,
        is_whole: &mut bool,
    ) -> std::io::Result<Self> {
        let floor = &tree.top.floor;
        let (mut names, mut unusable) = (Vec::new(), Vec::new());
        let mut has_patterns = false;
        for entry in dir.entries()? {
            let Ok(entry) = entry else { continue };
            let Some(left) = room.checked_sub(1) else {
                *is_whole = false;
                break;
            };
            *room = left;
            tree.progress.seen();
            let name = entry.file_name();
            if floor.objection(&resolved.join(&name), Access::Read).is_some() {
                continue;
            }
            let is_usable = |name: &str| {
                RelativePath::parse(name).is_ok()
                    || RelativePath::parse(&format!("{prefix}{name}")).is_ok()
            };
            let name = match name.into_string() {
                Ok(name) if is_usable(&name) => name,
                Ok(name) => {
                    unusable.push(format!("{prefix}{}", name.escape_debug()));
                    continue;
                }
                Err(name) => {
                    unusable.push(format!("{prefix}{}", name.to_string_lossy().escape_debug()));
                    continue;
                }
            };
            has_patterns |= IgnoreRules::is_source(&name);
            if let Ok(found) = dir.symlink_metadata(&name) {
                names.push((name, found));
            }
        }
        names.sort_unstable_by(|one, other| other.0.cmp(&one.0));
        let ignored =
            (has_patterns && !tree.ignored).then(|| IgnoreRules::of(&dir, &prefix)).flatten();
        unusable.sort_unstable();
        Ok(Self { dir: Arc::new(dir), prefix, ignored, names, unusable })
    }
}

impl Entry {
    pub(super) fn of(path: String, found: &Metadata) -> Self {
        let kind = match found.file_type() {
            kind if kind.is_file() => EntryKind::File,
            kind if kind.is_dir() => EntryKind::Folder,
            kind if kind.is_symlink() => EntryKind::Link,
            _ => EntryKind::Other,
        };
        let size = if kind == EntryKind::File { found.len() } else { 0 };
        Self { path, kind, size, modified: modified(found) }
    }
}
