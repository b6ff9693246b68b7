//! The vendors' own SDKs, for tests of the model adapters.

use std::path::PathBuf;

use crate::{
    packages,
    problem::Problem,
    workspace::{Workspace, run},
};

/// The environment variable with the Python that has the SDKs.
pub(crate) const VARIABLE: &str = "TOOLCRIB_ORACLE_PYTHON";

/// The exact versions, with the digest of each file. Other files are refused.
const REQUIREMENTS: &str = "crates/toolcrib-models/tests/oracle/requirements.txt";

/// The Python that has the SDKs, once [`install`] has run.
pub(crate) fn python(workspace: &Workspace) -> PathBuf {
    packages::interpreter(&folder(workspace))
}

fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target().join("oracle")
}

/// Installs the SDKs into a separate folder, unless these versions are there.
pub(crate) fn install(workspace: &Workspace) -> Result<(), Problem> {
    packages::install_once(workspace, &folder(workspace), REQUIREMENTS)
}

/// Runs only the test that needs them.
pub(crate) fn compare(workspace: &Workspace) -> Result<(), Problem> {
    run(
        workspace
            .cargo(["test", "--package", "toolcrib-models", "--features", "vendors"])
            .args(["--test", "adapters", "oracle::"])
            .env(VARIABLE, python(workspace)),
        "fix the adapter; if the difference is correct, add it with the reason to the test's differences.rs",
    )
}
