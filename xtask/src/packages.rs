//! Installs third-party packages into a separate folder, with the versions and digests of a list.

use std::{
    env, fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    problem::Problem,
    workspace::{Workspace, output, run},
};

/// Checks for the oldest Python that all lists support.
const FITS: &str = "import ensurepip, sys, venv; assert sys.version_info >= (3, 11), sys.version";

/// Installs into a folder, unless the last installation there had the current texts of these lists
/// and still works. Their texts are recorded at the end, so an interrupted installation counts as
/// not installed.
pub(crate) fn once(
    workspace: &Workspace,
    folder: &Path,
    lists: &[&str],
    works: impl FnOnce() -> bool,
    install: impl FnOnce() -> Result<(), Problem>,
) -> Result<(), Problem> {
    let record = folder.join("installed.txt");
    let pins = lists.iter().map(|list| workspace.read(list)).collect::<Result<String, _>>()?;
    if fs::read_to_string(&record).is_ok_and(|text| text == pins) && works() {
        eprintln!("{} is up to date", folder.display());
        return Ok(());
    }
    fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
    install()?;
    fs::write(&record, pins).map_err(|error| unwritable(&record, &error))
}

/// [Installs](install) the packages of a list, unless these versions are there.
pub(crate) fn install_once(
    workspace: &Workspace,
    folder: &Path,
    list: &str,
) -> Result<(), Problem> {
    let works = || works(workspace, folder);
    once(workspace, folder, &[list], works, || install(workspace, folder, list))
}

/// The interpreter with the packages, once [`install`] has run.
pub(crate) fn interpreter(folder: &Path) -> PathBuf {
    folder.join("venv").join("bin").join("python")
}

/// Whether the interpreter starts; it does not in a copied or moved folder.
pub(crate) fn works(workspace: &Workspace, folder: &Path) -> bool {
    output(workspace.program(interpreter(folder)).args(["-c", ""]), "").is_ok()
}

/// Creates `venv` in the folder again, with exactly the packages of the list.
pub(crate) fn install(workspace: &Workspace, folder: &Path, list: &str) -> Result<(), Problem> {
    const HELP: &str = "install Python's module venv (Debian and Ubuntu: `apt-get install python3-venv`), \
                        and make the target folder writable";
    output(
        workspace.program("python3").args(["-c", FITS]),
        "tests against third-party programs need Python 3.11 or newer as `python3`, with its \
         modules venv and ensurepip (Debian and Ubuntu: `apt-get install python3 python3-venv`)",
    )?;
    // One pip installs into all environments: adding it to each takes five seconds of processor time.
    let pip = workspace.target().join("pip");
    if !works(workspace, &pip) {
        run(&mut venv(workspace, &pip), HELP)?;
    }
    run(venv(workspace, folder).arg("--without-pip"), HELP)?;
    run(
        workspace
            .program(interpreter(&pip))
            .args(["-m", "pip", "--python"])
            .arg(folder.join("venv"))
            .args(["install", "--quiet", "--no-deps"])
            .args(["--only-binary", ":all:", "--require-hashes", "--requirement", list])
            .env("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
        "the packages come from the Python package index: is it reachable? If this machine \
         needs other files of them, the requirements.in beside the list says how to generate it",
    )
}

/// The command that creates `venv` in a folder.
fn venv(workspace: &Workspace, folder: &Path) -> Command {
    let mut command = workspace.program("python3");
    command.args(["-m", "venv", "--clear"]).arg(folder.join("venv"));
    command
}

/// Lets a command find a Python interpreter without any packages as `python3`. The tests start hundreds of
/// interpreters: that of a version manager is a script, and installed packages can add imports to each start.
pub(crate) fn with_bare_python(workspace: &Workspace, command: &mut Command) {
    let folder = workspace.target().join("python");
    let exists = works(workspace, &folder)
        || output(venv(workspace, &folder).arg("--without-pip"), "").is_ok();
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = [folder.join("venv").join("bin")].into_iter().chain(env::split_paths(&path));
    if exists && let Ok(path) = env::join_paths(folders) {
        command.env("PATH", path);
    }
}

/// Installs a package of Debian, if this user may; else says that its tests are skipped.
pub(crate) fn install_of_system(
    workspace: &Workspace,
    package: &str,
    help: &str,
) -> Result<(), Problem> {
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    if !is_root || !Path::new("/usr/bin/apt-get").exists() {
        eprintln!("{package} is missing, so its tests are skipped; {help}");
        return Ok(());
    }
    let arguments = ["install", "--yes", "--no-install-recommends", package];
    run(workspace.program("apt-get").args(arguments), help)
}

/// Creates `node_modules` in the folder again, with exactly the packages of a `package.json` and
/// its lock file. `node` contains the Node and the npm to use.
pub(crate) fn npm_ci(
    workspace: &Workspace,
    folder: &Path,
    node: &Path,
    files: [&str; 2],
) -> Result<(), Problem> {
    for source in files {
        let source = workspace.root().join(source);
        let copy = folder.join(source.file_name().unwrap_or_default());
        fs::copy(&source, &copy).map_err(|error| unwritable(&copy, &error))?;
    }
    run(
        workspace
            .program(node.join("bin/node"))
            .arg(node.join("lib/node_modules/npm/bin/npm-cli.js"))
            .args(["ci", "--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund"])
            .current_dir(folder),
        "the packages come from the npm registry: is it reachable?",
    )
}

/// Replaces a path by a symlink to a folder, even if the path is a dangling symlink.
pub(crate) fn link(to: &Path, link: &Path) -> Result<(), Problem> {
    match fs::remove_file(link) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => std::os::unix::fs::symlink(to, link),
    }
    .map_err(|error| unwritable(link, &error))
}

/// An error for a path in the target folder that cannot be written.
pub(crate) fn unwritable(path: &Path, error: &std::io::Error) -> Problem {
    Problem::new(
        format!("{} cannot be written: {error}", path.display()),
        "make the target folder writable",
    )
}
