//! Zsh, in which a test completes a line.

use std::env;

use crate::{packages::install_of_system, problem::Problem, workspace::Workspace};

const HELP: &str = "install zsh, such as by `apt-get install zsh`";

/// Installs the system's package, where this user may; else the test says that it is skipped.
pub(crate) fn install(workspace: &Workspace) -> Result<(), Problem> {
    let path = env::var_os("PATH").unwrap_or_default();
    if env::split_paths(&path).any(|folder| folder.join("zsh").exists()) {
        return Ok(());
    }
    install_of_system(workspace, "zsh", HELP)
}
