//! The vendors' own SDKs, against which the model adapters are tested.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    problem::Problem,
    workspace::{Workspace, output, run, unreadable},
};

/// The environment variable by which a test finds the Python that has the SDKs.
pub(crate) const VARIABLE: &str = "TOOLCRIB_ORACLE_PYTHON";

/// The exact versions, with the digest of each file. No other file is taken.
const REQUIREMENTS: &str = "crates/toolcrib-models/tests/oracle/requirements.txt";

/// The oldest Python that all of them take.
const FITS: &str = "import ensurepip, sys, venv; assert sys.version_info >= (3, 11), sys.version";

/// The Python that has the SDKs, once [`install`] has run.
pub(crate) fn python(workspace: &Workspace) -> PathBuf {
    folder(workspace).join("venv").join("bin").join("python")
}

fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target().join("oracle")
}

/// Installs the SDKs into a folder of their own, unless these very ones are there.
pub(crate) fn install(workspace: &Workspace) -> Result<(), Problem> {
    let wanted = workspace.root().join(REQUIREMENTS);
    let requirements = fs::read_to_string(&wanted).map_err(|error| unreadable(&wanted, &error))?;
    let folder = folder(workspace);
    // Written last, so what was broken off counts as not installed.
    let installed = folder.join("installed.txt");
    let python = python(workspace);
    if fs::read_to_string(&installed).is_ok_and(|text| text == requirements) && works(workspace) {
        eprintln!("the SDKs are in {}", folder.display());
        return Ok(());
    }
    output(
        workspace.program("python3").args(["-c", FITS]),
        "the SDKs of the models' vendors need Python 3.11 or newer as `python3`, with its modules \
         venv and ensurepip (Debian and Ubuntu: `apt-get install python3 python3-venv`)",
    )?;
    run(
        workspace.program("python3").args(["-m", "venv", "--clear"]).arg(folder.join("venv")),
        "install Python's module venv (Debian and Ubuntu: `apt-get install python3-venv`), and make \
         the target folder writable",
    )?;
    run(
        workspace
            .program(&python)
            .args(["-m", "pip", "install", "--quiet", "--no-deps"])
            .args(["--only-binary", ":all:", "--require-hashes", "--requirement", REQUIREMENTS])
            .env("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
        "the SDKs come from the Python package index: is it within reach? Where this machine has \
         other files of them, requirements.in says how the list is made",
    )?;
    write(&installed, &requirements)
}

/// The one test that needs them, alone.
pub(crate) fn compare(workspace: &Workspace) -> Result<(), Problem> {
    run(
        workspace
            .cargo(["test", "--package", "toolcrib-models", "--features", "vendors"])
            .args(["--test", "vendors", "oracle::"])
            .env(VARIABLE, python(workspace)),
        "mend the adapter; where it is right to differ, say so and why in the test's differences.rs",
    )
}

/// A copied or moved folder leads nowhere.
fn works(workspace: &Workspace) -> bool {
    let mut python = workspace.program(python(workspace));
    output(python.args(["-c", ""]), "").is_ok()
}

fn write(path: &Path, text: &str) -> Result<(), Problem> {
    fs::write(path, text).map_err(|error| {
        Problem::new(
            format!("{} cannot be written: {error}", path.display()),
            "make the target folder writable",
        )
    })
}
