//! Checks that source files stay small enough to read.

use std::fs;

use crate::{
    problem::Problem,
    workspace::{Workspace, unreadable},
};

/// Longer files are reported.
const LONG: usize = 700;

/// Longer files fail the check.
const TOO_LONG: usize = 1500;

/// The folders with sources; build output and tools' files are elsewhere.
const FOLDERS: [&str; 5] = ["benches", "crates", "examples", "testbed", "xtask"];

pub(crate) fn check(workspace: &Workspace) -> Result<(), Problem> {
    let sources = workspace.files(&FOLDERS, "rs")?;
    let mut too_long = Vec::new();
    for path in &sources {
        let text = fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
        let lines = text.lines().count();
        let shown = path.strip_prefix(workspace.root()).unwrap_or(path);
        let line = format!("{} has {lines} lines", shown.display());
        if lines > TOO_LONG {
            too_long.push(line);
        } else if lines > LONG {
            eprintln!("warning: {line}; more than {LONG} are seldom about one thing");
        }
    }
    if too_long.is_empty() {
        eprintln!("{} Rust files", sources.len());
        return Ok(());
    }
    Err(Problem::new(
        too_long.join("\n"),
        format!("split them by topic; {TOO_LONG} lines are the limit"),
    ))
}
