//! Checks that `examples/` is listed, and its crates: the output of each must equal its `expected.txt`. A crate
//! without such a file is a library, and its tests run with all others.

use std::{env, fs, path::PathBuf, process::Command};

use crate::{
    problem::Problem,
    workspace::{Workspace, output, run, unreadable},
};

/// The examples by task.
const LIST: &str = "examples/README.md";

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

/// Checks that each example has a README, and that the list of examples links it.
pub(crate) fn check_listed(workspace: &Workspace) -> Result<(), Problem> {
    let list = workspace.read(LIST)?;
    let folder = workspace.root().join("examples");
    let entries = fs::read_dir(&folder).map_err(|error| unreadable(&folder, &error))?;
    for entry in entries {
        let path = entry.map_err(|error| unreadable(&folder, &error))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !path.is_dir() {
            continue;
        }
        if !path.join("README.md").is_file() {
            return Err(Problem::new(
                format!("examples/{name} has no README.md"),
                "write what it shows, the command, and its output",
            ));
        }
        if !list.contains(&format!("]({name}/README.md)")) {
            return Err(Problem::new(
                format!("{LIST} does not link {name}/README.md"),
                "add a row with its task",
            ));
        }
    }
    Ok(())
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
