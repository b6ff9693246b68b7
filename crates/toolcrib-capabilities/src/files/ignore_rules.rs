//! Files that `.gitignore` and `.ignore` name.

use std::io::Read as _;

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::fs::{Dir, OpenOptions};
use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder},
};

/// The files with patterns; the later one has precedence.
const NAMES: [&str; 2] = [".gitignore", ".ignore"];

/// The bytes of such a file that are read, and the patterns of it that are compiled. The time of a walk
/// depends on them, and other people write them.
const MOST_BYTES: u64 = 64 * 1024;
const MOST_PATTERNS: usize = 1_000;

/// The patterns of one folder.
#[derive(Debug)]
pub(super) struct IgnoreRules(Gitignore);

impl IgnoreRules {
    /// Reads the patterns of an open folder, whose path from the top is `prefix`. `None` if it has none.
    pub(super) fn of(dir: &Dir, prefix: &str) -> Option<Self> {
        let mut builder = GitignoreBuilder::new(format!("/{}", prefix.trim_end_matches('/')));
        let mut has_some = false;
        for name in NAMES {
            let Some(text) = read(dir, name) else { continue };
            for line in text.lines().take(MOST_PATTERNS) {
                // A pattern that is not valid is left out, as git does.
                has_some |= builder.add_line(None, line).is_ok();
            }
        }
        let built = has_some.then(|| builder.build().ok()).flatten()?;
        (!built.is_empty()).then_some(Self(built))
    }

    /// Whether a file with this name has patterns.
    pub(super) fn is_source(name: &str) -> bool {
        NAMES.contains(&name)
    }

    /// Whether a path is left out, or explicitly not; `None` if no pattern matches it.
    pub(super) fn decides(&self, path: &str, is_folder: bool) -> Option<bool> {
        match self.0.matched(format!("/{path}"), is_folder) {
            Match::None => None,
            Match::Ignore(_) => Some(true),
            Match::Whitelist(_) => Some(false),
        }
    }
}

fn read(dir: &Dir, name: &str) -> Option<String> {
    let mut options = OpenOptions::new();
    options.read(true).follow(FollowSymlinks::No).nonblock(true);
    let file = dir.open_with(name, &options).ok()?;
    file.metadata().ok().filter(cap_std::fs::Metadata::is_file)?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
