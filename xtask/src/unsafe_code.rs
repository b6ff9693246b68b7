//! Checks that `unsafe` is used in one folder only. The compiler's lint denies it everywhere; this
//! check finds attributes that allow it again.

use std::fs;

use crate::{
    problem::Problem,
    workspace::{Workspace, unreadable},
};

/// Code between fork and exec has no safe wrapper.
const ALLOWED: &str = "crates/toolcrib-capabilities/src/process/child";

pub(crate) fn check(workspace: &Workspace) -> Result<(), Problem> {
    // In two pieces, so that this file does not match.
    let allows = [concat!("allow(", "unsafe_code"), concat!("expect(", "unsafe_code")];
    let mut found = Vec::new();
    for path in workspace.files(&["benches", "crates", "examples", "xtask"], "rs")? {
        let text = fs::read_to_string(&path).map_err(|error| unreadable(&path, &error))?;
        let shown = path.strip_prefix(workspace.root()).unwrap_or(&path);
        if allows.iter().any(|allow| text.contains(allow)) && !shown.starts_with(ALLOWED) {
            found.push(format!("{} allows unsafe code", shown.display()));
        }
    }
    if found.is_empty() {
        return Ok(());
    }
    Err(Problem::new(found.join("\n"), format!("move the unsafe code to {ALLOWED}")))
}
