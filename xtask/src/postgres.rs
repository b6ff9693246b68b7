//! PostgreSQL's binaries, of which tests start their own server.

use std::{env, fs, os::unix::fs::MetadataExt as _, path::Path};

use crate::{
    problem::Problem,
    workspace::{Workspace, run},
};

const HELP: &str = "install PostgreSQL, such as by `apt-get install postgresql`";

/// Installs the system's package, where this user may; else the tests say that they are skipped.
pub(crate) fn install(workspace: &Workspace) -> Result<(), Problem> {
    if is_installed() {
        return Ok(());
    }
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    if !is_root || !Path::new("/usr/bin/apt-get").exists() {
        eprintln!("PostgreSQL is missing, so its tests are skipped; {HELP}");
        return Ok(());
    }
    let arguments = ["install", "--yes", "--no-install-recommends", "postgresql"];
    run(workspace.program("apt-get").args(arguments), HELP)
}

/// Debian does not put the server into the `PATH`.
fn is_installed() -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let of_debian = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let folders = of_debian.map(|version| version.path().join("bin"));
    env::split_paths(&path).chain(folders).any(|folder| folder.join("initdb").exists())
}
