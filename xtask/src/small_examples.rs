//! Checks the crates of `examples/`: the output of each must equal its `expected.txt`. A crate
//! without such a file is a library, and its tests run with all others.

use std::{env, path::PathBuf, process::Command};

use crate::{
    problem::Problem,
    workspace::{Workspace, output, run},
};

/// Builds all programs of the workspace at once, and with their tests: otherwise common dependencies
/// would be built again with other features. `cargo xtask full` checks that each crate declares the
/// features it needs.
pub(crate) fn build_programs(workspace: &Workspace) -> Result<(), Problem> {
    run(
        &mut workspace.compile(["build", "--workspace", "--bins", "--tests"]),
        "fix the compiler errors above",
    )
}

/// The path of a program that was [built](build_programs).
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
        let expected = workspace.read(&path)?;
        let folder = path.parent().and_then(|folder| folder.file_name()).unwrap_or_default();
        let package = format!("example-{}", folder.to_string_lossy());
        eprintln!("$ {package}");
        let printed = output(
            &mut Command::new(program(workspace, &package)),
            "fix the example: newcomers copy it",
        )?;
        if printed != expected.trim() {
            return Err(Problem::new(
                format!(
                    "{package} does not print the content of {}; it prints:\n{printed}",
                    path.display()
                ),
                "fix the example, or write its current output into that file",
            ));
        }
    }
    Ok(())
}
