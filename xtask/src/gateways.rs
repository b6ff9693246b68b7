//! Third-party MCP gateways, for comparison with Toolcrib's.

use std::path::PathBuf;

use crate::{packages, peers, problem::Problem, workspace::Workspace};

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
    let (folder, node) = (folder(workspace), peers::node(workspace));
    let link = folder.join("node");
    packages::once(
        workspace,
        &folder,
        &[PACKAGE, LOCK],
        || link.exists(),
        || {
            packages::link(&node, &link)?;
            packages::npm_ci(workspace, &folder, &node, [PACKAGE, LOCK])
        },
    )
}
