//! Checks the paths in an archive.

use std::collections::{HashMap, hash_map::Entry};

use super::refused::RefusedArchiveError;

/// The longest path, in bytes.
const LONGEST: usize = 512;
/// The depth limit of folders.
const DEEPEST: usize = 16;

/// The path of an entry as written to disk: relative, of plain names, with `/` between them. `None`
/// for the top of the archive itself.
pub(super) fn plain(raw: &[u8]) -> Result<Option<String>, RefusedArchiveError> {
    let shown = || String::from_utf8_lossy(raw).into_owned();
    let refused = |problem: &str| Err(RefusedArchiveError::of(&shown(), problem));
    let Ok(path) = std::str::from_utf8(raw) else {
        return refused("has a name that is not UTF-8");
    };
    if path.len() > LONGEST {
        return refused("has a path of more than 512 bytes");
    }
    if path.chars().any(|c| c.is_control() || matches!(c, '\\' | ':')) {
        return refused("has a control character, a backslash or a colon in its path");
    }
    if path.chars().any(is_invisible) {
        return refused("has an invisible character in its path");
    }
    if path.starts_with('/') {
        return refused("has an absolute path");
    }
    // A folder's path ends with a slash, and paths of tar begin with `./`.
    let path = path.strip_suffix('/').unwrap_or(path);
    let path = path.strip_prefix("./").unwrap_or(path);
    if path.is_empty() || path == "." {
        return Ok(None);
    }
    for (depth, name) in path.split('/').enumerate() {
        match name {
            ".." => return refused("leads out of the skill"),
            "" | "." => return refused("has an empty part in its path"),
            _ if depth > DEEPEST => return refused("is nested in more than 16 folders"),
            _ => {}
        }
    }
    Ok(Some(path.to_owned()))
}

/// Some file systems ignore these characters, so a name with one could mean `.git`.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
    )
}

/// The used names, folders included: names that differ only in case collide on some file systems.
#[derive(Default)]
pub(super) struct UsedNames(HashMap<String, (String, Kind)>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Folder,
}

impl UsedNames {
    /// Adds the path of a file, and those of its folders.
    pub(super) fn take_file(&mut self, path: &str) -> Result<(), RefusedArchiveError> {
        for (end, _) in path.match_indices('/') {
            self.take(path.get(..end).unwrap_or_default(), Kind::Folder)?;
        }
        self.take(path, Kind::File)
    }

    /// Adds the path of a folder, and those of its parents.
    pub(super) fn take_folder(&mut self, path: &str) -> Result<(), RefusedArchiveError> {
        for (end, _) in path.match_indices('/') {
            self.take(path.get(..end).unwrap_or_default(), Kind::Folder)?;
        }
        self.take(path, Kind::Folder)
    }

    fn take(&mut self, path: &str, kind: Kind) -> Result<(), RefusedArchiveError> {
        match self.0.entry(path.to_lowercase()) {
            Entry::Vacant(free) => {
                free.insert((path.to_owned(), kind));
                Ok(())
            }
            Entry::Occupied(taken) => match taken.get() {
                // Many files share a folder.
                (there, Kind::Folder) if there == path && kind == Kind::Folder => Ok(()),
                (there, _) if there == path => Err(RefusedArchiveError::of(path, "occurs twice")),
                (there, _) => {
                    let there = there.escape_debug();
                    let problem = format!("differs from `{there}` only in case");
                    Err(RefusedArchiveError::of(path, problem))
                }
            },
        }
    }
}
