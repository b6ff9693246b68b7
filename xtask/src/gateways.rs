//! MCP gateways of others, beside which ours is measured.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    packages::{self, Installed, unwritable},
    peers,
    problem::Problem,
    workspace::{Workspace, run},
};

/// The exact versions, with the digest of each file.
const PACKAGE: &str = "benches/gateways/package.json";
const LOCK: &str = "benches/gateways/package-lock.json";

/// Holds `node_modules`, and `node`, which is that of the peers.
pub(crate) fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target().join("gateways")
}

/// Installs the gateways into a folder of their own, unless these very ones are there. The peers
/// must be installed: they bring the Node that runs both.
pub(crate) fn install(workspace: &Workspace) -> Result<(), Problem> {
    let (folder, pins) = (folder(workspace), packages::texts(workspace, &[PACKAGE, LOCK])?);
    let installed = Installed::in_folder(&folder);
    if installed.is(&pins) && folder.join("node").exists() {
        eprintln!("the gateways are in {}", folder.display());
        return Ok(());
    }
    fs::create_dir_all(&folder).map_err(|error| unwritable(&folder, &error))?;
    for source in [PACKAGE, LOCK] {
        let source = workspace.root().join(source);
        let copy = folder.join(source.file_name().unwrap_or_default());
        fs::copy(&source, &copy).map_err(|error| unwritable(&copy, &error))?;
    }
    let node = link_node(workspace, &folder)?;
    run(
        workspace
            .program(node.join("bin/node"))
            .arg(node.join("lib/node_modules/npm/bin/npm-cli.js"))
            .args(["ci", "--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund"])
            .current_dir(&folder),
        "the packages come from the npm registry: is it within reach?",
    )?;
    installed.write(&pins)
}

fn link_node(workspace: &Workspace, folder: &Path) -> Result<PathBuf, Problem> {
    let (node, link) = (peers::folder(workspace).join("node"), folder.join("node"));
    // One of an earlier time may lead nowhere.
    if link.is_symlink() {
        fs::remove_file(&link).map_err(|error| unwritable(&link, &error))?;
    }
    std::os::unix::fs::symlink(&node, &link).map_err(|error| unwritable(&link, &error))?;
    Ok(node)
}
