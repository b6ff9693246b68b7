//! Chromium, in which tests open pages.

use std::env;

use crate::{packages::install_of_system, problem::Problem, workspace::Workspace};

const HELP: &str = "install Chromium, such as by `apt-get install chromium`";

/// The names of the program that the tests look for.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Installs the system's package, where this user may; else the tests say that they are skipped.
pub(crate) fn install(workspace: &Workspace) -> Result<(), Problem> {
    let path = env::var_os("PATH").unwrap_or_default();
    if env::split_paths(&path).any(|folder| NAMES.iter().any(|name| folder.join(name).exists())) {
        return Ok(());
    }
    install_of_system(workspace, "chromium", HELP)
}
