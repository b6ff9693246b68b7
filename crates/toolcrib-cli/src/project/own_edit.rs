//! Edits of a project by commands of this program, which need no second consent if the user typed them.

use std::{
    fs,
    io::{self, IsTerminal as _},
    path::{Path, PathBuf},
};

use toolcrib_core::CancellationToken;
use toolcrib_project::TrustStore;

use super::consent::review;
use crate::output;

/// An edit of a project's files, before it is made.
pub(crate) struct OwnEdit {
    /// The project, if its user trusted it and typed the command.
    trusted: Option<PathBuf>,
    cancel: CancellationToken,
}

impl OwnEdit {
    /// An edit of the project in a folder. Blocking, like all of it.
    pub(crate) fn of(dir: &Path, cancel: &CancellationToken) -> Self {
        let is_trusted = || {
            let review = review(dir, cancel.clone());
            review.is_ok_and(|review| TrustStore::of_user().is_trusted(&review))
        };
        let trusted = (is_typed() && is_trusted()).then(|| dir.to_owned());
        Self { trusted, cancel: cancel.clone() }
    }

    /// A new project in a folder. A folder with files may contain tools of others.
    pub(crate) fn of_new(dir: &Path, cancel: &CancellationToken) -> Self {
        let is_new = match fs::read_dir(dir) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        let trusted = (is_new && is_typed()).then(|| dir.to_owned());
        Self { trusted, cancel: cancel.clone() }
    }

    /// Trusts the project as it is now. One with errors keeps the earlier record.
    pub(crate) fn trust(&self) {
        let Some(dir) = &self.trusted else { return };
        let Ok(review) = review(dir, self.cancel.clone()) else { return };
        if let Err(error) = TrustStore::of_user().trust(&review) {
            output::notice(&error.to_string());
        }
    }
}

/// Whether a person typed the command: at a terminal, and not in a process of a tool.
fn is_typed() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal() && !is_below_a_tool()
}

/// Whether a tool, a server or a hook may have started this process. Each of their processes gets no
/// new privileges, which all its children inherit and none can undo. Those without a sandbox can get
/// some: they are children of a process of this program. Where neither is known, the answer is yes.
fn is_below_a_tool() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let flag = status.lines().find_map(|line| line.strip_prefix("NoNewPrivs:"));
    flag.is_none_or(|flag| flag.trim() != "0") || has_ancestor_of_same_name().unwrap_or(true)
}

/// Whether a process above this one has its name; `None` if that is not known.
fn has_ancestor_of_same_name() -> Option<bool> {
    let (own, mut parent) = name_and_parent("self")?;
    while parent > 0 {
        let (name, above) = name_and_parent(&parent.to_string())?;
        if name == own {
            return Some(true);
        }
        parent = above;
    }
    Some(false)
}

/// The name of a process and the id of its parent, which is 0 for the first one.
fn name_and_parent(process: &str) -> Option<(String, u32)> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name is in parentheses, and may contain some.
    let (before, after) = stat.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    let parent = after.split_whitespace().nth(1)?.parse().ok()?;
    Some((name.to_owned(), parent))
}
