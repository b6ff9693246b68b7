//! Edits of a project by this program: what its user typed needs no second consent.

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
/// new privileges, which all its children inherit and none can undo. Other programs do so too: then,
/// and where it is not known, the answer is yes.
fn is_below_a_tool() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    lines.find_map(|line| line.strip_prefix("NoNewPrivs:")).is_none_or(|flag| flag.trim() != "0")
}
