//! A Java development kit, whose programs tests run under the default limits.

use std::env;

use crate::{packages::install_of_system, problem::Problem, workspace::Workspace};

const HELP: &str = "install a JDK, such as by `apt-get install default-jdk-headless`";

/// Installs the system's package, where this user may; else the tests say that they are skipped.
pub(crate) fn install(workspace: &Workspace) -> Result<(), Problem> {
    let path = env::var_os("PATH").unwrap_or_default();
    if env::split_paths(&path).any(|folder| folder.join("javac").exists()) {
        return Ok(());
    }
    install_of_system(workspace, "default-jdk-headless", HELP)
}
