//! PostgreSQL's binaries, of which tests start their own server.

use std::{env, fs};

use crate::{packages::install_of_system, problem::Problem, workspace::Workspace};

const HELP: &str = "install PostgreSQL, such as by `apt-get install postgresql`";

/// Installs the system's package, where this user may; else the tests say that they are skipped.
pub(crate) fn install(workspace: &Workspace) -> Result<(), Problem> {
    if is_installed() {
        return Ok(());
    }
    install_of_system(workspace, "postgresql", HELP)
}

/// Debian does not put the server into the `PATH`.
fn is_installed() -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let of_debian = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let folders = of_debian.map(|version| version.path().join("bin"));
    env::split_paths(&path).chain(folders).any(|folder| folder.join("initdb").exists())
}
