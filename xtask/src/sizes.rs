//! Files that are read by people stay of a size that can be read.

use std::fs;

use crate::{
    problem::Problem,
    workspace::{Workspace, unreadable},
};

/// Above this a file is reported.
const LONG: usize = 700;

/// Above this the check fails.
const TOO_LONG: usize = 1500;

/// Where sources lie; what cargo builds and what tools keep lies elsewhere.
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
        format!("split them by what they are about; {TOO_LONG} lines are the limit"),
    ))
}
