//! Checks that Rust files stay small enough to read, and that `unsafe` is used in one folder only.
//! The compiler's lint denies it everywhere; this check finds attributes that allow it again.

use crate::{problem::Problem, workspace::Workspace};

/// Longer files are reported.
const LONG: usize = 700;

/// Longer files fail the check.
const TOO_LONG: usize = 1500;

/// The folders with sources; build output and tools' files are elsewhere.
const FOLDERS: [&str; 5] = ["benches", "crates", "examples", "testbed", "xtask"];

/// In two pieces, so that this file does not match.
const ALLOWS: [&str; 2] = [concat!("allow(", "unsafe_code"), concat!("expect(", "unsafe_code")];

/// Code between fork and exec has no safe wrapper.
const MAY_ALLOW: &str = "crates/toolcrib-capabilities/src/process/child/";

pub(crate) fn check(workspace: &Workspace) -> Result<(), Problem> {
    let sources = workspace.files(&FOLDERS, "rs")?;
    let mut found = Vec::new();
    for path in &sources {
        let (text, shown) = (workspace.read(path)?, workspace.shown(path));
        let lines = text.lines().count();
        if lines > TOO_LONG {
            found.push(format!("{shown} has {lines} lines, more than {TOO_LONG}"));
        } else if lines > LONG {
            eprintln!(
                "warning: {shown} has {lines} lines; more than {LONG} are seldom about one thing"
            );
        }
        if ALLOWS.iter().any(|allow| text.contains(allow)) && !shown.starts_with(MAY_ALLOW) {
            found.push(format!("{shown} allows unsafe code"));
        }
    }
    if found.is_empty() {
        eprintln!("{} Rust files", sources.len());
        return Ok(());
    }
    Err(Problem::new(
        found.join("\n"),
        format!("split long files by topic; move unsafe code to {MAY_ALLOW}"),
    ))
}
