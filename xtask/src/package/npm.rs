//! The program as npm packages: `npx toolcrib`. A package per system contains the program, and `toolcrib`
//! runs the one that npm has chosen.

use std::path::{Path, PathBuf};

use super::{
    Built, LICENSES, copy, empty,
    page::page,
    target::ALL,
    wheel::{SOURCE, SUMMARY},
    write as write_file,
};
use crate::{
    peers,
    problem::Problem,
    workspace::{Workspace, output},
};

/// Writes the package of the system and `toolcrib`.
pub(super) fn write(built: &Built<'_>) -> Result<[PathBuf; 2], Problem> {
    let Built { workspace, target, version, program, texts, finished } = built;
    let name = target.npm_name();
    let folder = empty(finished.join("npm").join(&name))?;
    let (os, cpu, libc) = target.npm;
    let libc = libc.map(|libc| format!("\n  \"libc\": [\"{libc}\"],")).unwrap_or_default();
    let about = format!(
        "\"version\": \"{version}\",\n  \"description\": \"{SUMMARY}\",\n  \
         \"license\": \"MIT OR Apache-2.0\",\n  \"repository\": \"{SOURCE}\""
    );
    copy(program, &folder.join("bin").join("toolcrib"))?;
    for file in LICENSES.into_iter().chain(["THIRD-PARTY.txt"]) {
        copy(&texts.join(file), &folder.join(file))?;
    }
    write_file(
        &folder.join("package.json"),
        &format!(
            "{{\n  \"name\": \"{name}\",\n  {about},\n  \"os\": [\"{os}\"],\n  \"cpu\": [\"{cpu}\"],{libc}\n  \
             \"preferUnplugged\": true\n}}\n"
        ),
    )?;
    let main = empty(finished.join("npm").join("toolcrib"))?;
    let root = workspace.root();
    copy(&root.join("xtask/package/toolcrib.js"), &main.join("bin").join("toolcrib.js"))?;
    for file in LICENSES {
        copy(&root.join(file), &main.join(file))?;
    }
    write_file(&main.join("README.md"), &page(workspace)?)?;
    let systems = ALL.map(|target| format!("    \"{}\": \"{version}\"", target.npm_name()));
    write_file(
        &main.join("package.json"),
        &format!(
            "{{\n  \"name\": \"toolcrib\",\n  {about},\n  \"bin\": {{ \"toolcrib\": \"bin/toolcrib.js\" }},\n  \
             \"engines\": {{ \"node\": \">=18\" }},\n  \"optionalDependencies\": {{\n{}\n  }}\n}}\n",
            systems.join(",\n")
        ),
    )?;
    Ok([pack(workspace, &folder, finished)?, pack(workspace, &main, finished)?])
}

fn pack(workspace: &Workspace, folder: &Path, finished: &Path) -> Result<PathBuf, Problem> {
    let node = peers::node(workspace);
    let printed = output(
        workspace
            .program(node.join("bin/node"))
            .arg(node.join("lib/node_modules/npm/bin/npm-cli.js"))
            .args(["pack", "--silent", "--pack-destination"])
            .arg(finished)
            .arg(folder),
        "look at the message above",
    )?;
    Ok(finished.join(printed.lines().last().unwrap_or_default()))
}
