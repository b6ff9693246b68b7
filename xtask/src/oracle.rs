//! The vendors' own SDKs, against which the model adapters are tested.

use std::path::PathBuf;

use crate::{
    packages::{self, Installed},
    problem::Problem,
    workspace::{Workspace, run},
};

/// The environment variable by which a test finds the Python that has the SDKs.
pub(crate) const VARIABLE: &str = "TOOLCRIB_ORACLE_PYTHON";

/// The exact versions, with the digest of each file. No other file is taken.
const REQUIREMENTS: &str = "crates/toolcrib-models/tests/oracle/requirements.txt";

/// The Python that has the SDKs, once [`install`] has run.
pub(crate) fn python(workspace: &Workspace) -> PathBuf {
    packages::interpreter(&folder(workspace))
}

fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target().join("oracle")
}

/// Installs the SDKs into a folder of their own, unless these very ones are there.
pub(crate) fn install(workspace: &Workspace) -> Result<(), Problem> {
    let (folder, pins) = (folder(workspace), packages::texts(workspace, &[REQUIREMENTS])?);
    let installed = Installed::in_folder(&folder);
    if installed.is(&pins) && packages::works(workspace, &folder) {
        eprintln!("the SDKs are in {}", folder.display());
        return Ok(());
    }
    packages::install(workspace, &folder, REQUIREMENTS)?;
    installed.write(&pins)
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
