//! Third-party MCP gateways, for comparison with Toolcrib's.

use std::{fs, path::PathBuf};

use crate::{
    packages::{self, Installed, unwritable},
    peers,
    problem::Problem,
    workspace::Workspace,
};

/// The exact versions, with the digest of each file.
const PACKAGE: &str = "benches/gateways/package.json";
const LOCK: &str = "benches/gateways/package-lock.json";

/// Contains `node_modules`, and `node`, which is that of the peers.
pub(crate) fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target().join("gateways")
}

/// Installs the gateways into a separate folder, unless these versions are there. The peers must be
/// installed: they provide the Node that runs both.
pub(crate) fn install(workspace: &Workspace) -> Result<(), Problem> {
    let (folder, pins) = (folder(workspace), packages::texts(workspace, &[PACKAGE, LOCK])?);
    let installed = Installed::in_folder(&folder);
    if installed.is(&pins) && folder.join("node").exists() {
        eprintln!("the gateways are in {}", folder.display());
        return Ok(());
    }
    fs::create_dir_all(&folder).map_err(|error| unwritable(&folder, &error))?;
    let node = peers::node(workspace);
    packages::link(&node, &folder.join("node"))?;
    packages::npm_ci(workspace, &folder, &node, [PACKAGE, LOCK])?;
    installed.write(&pins)
}
