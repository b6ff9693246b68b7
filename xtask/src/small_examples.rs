//! The crates of `examples/`: each prints what its `expected.txt` says. One without such a file is a
//! library, and its tests are run with all others.

use std::{env, fs, path::PathBuf, process::Command};

use crate::{
    problem::Problem,
    workspace::{Workspace, output, run, unreadable},
};

/// Builds all programs of the workspace at once: one by one, what they have in common would be built
/// again for each, with other features. That each crate names the features it needs is a check of
/// its own.
pub(crate) fn build_programs(workspace: &Workspace) -> Result<(), Problem> {
    run(
        &mut workspace.cargo(["build", "--workspace", "--bins"]),
        "mend what the compiler lists above",
    )
}

/// A program that was [built](build_programs).
pub(crate) fn program(workspace: &Workspace, name: &str) -> PathBuf {
    workspace.target().join("debug").join(format!("{name}{}", env::consts::EXE_SUFFIX))
}

pub(crate) fn check(workspace: &Workspace) -> Result<(), Problem> {
    let mut expectations = workspace.files(&["examples"], "txt")?;
    expectations.retain(|path| path.ends_with("expected.txt"));
    if expectations.is_empty() {
        return Err(Problem::new("no example has an expected.txt", "restore them"));
    }
    build_programs(workspace)?;
    for path in expectations {
        let expected = fs::read_to_string(&path).map_err(|error| unreadable(&path, &error))?;
        let folder = path.parent().and_then(|folder| folder.file_name()).unwrap_or_default();
        let package = format!("example-{}", folder.to_string_lossy());
        eprintln!("$ {package}");
        let printed = output(
            &mut Command::new(program(workspace, &package)),
            "mend the example: it is what newcomers copy",
        )?;
        if printed != expected.trim() {
            return Err(Problem::new(
                format!(
                    "{package} does not print what {} says; it prints:\n{printed}",
                    path.display()
                ),
                "mend the example, or write what it prints now into that file",
            ));
        }
    }
    Ok(())
}
