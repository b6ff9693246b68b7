//! The program as a Python wheel: `uvx toolcrib`, `pipx install toolcrib`.

use std::path::PathBuf;

use super::{Built, LICENSES, copy, empty, page::page, tools, write as write_file};
use crate::{packages, problem::Problem, workspace::run};

/// Writes the wheel. `wheel pack` lists its files with their digests.
pub(super) fn write(built: &Built<'_>) -> Result<PathBuf, Problem> {
    let Built { workspace, target, version, program, texts, finished } = built;
    let name = format!("toolcrib-{version}");
    let folder = empty(finished.join("wheel"))?;
    let info = folder.join(format!("{name}.dist-info"));
    copy(program, &folder.join(format!("{name}.data")).join("scripts").join("toolcrib"))?;
    let mut licenses = String::new();
    for file in LICENSES.into_iter().chain(["THIRD-PARTY.txt"]) {
        copy(&texts.join(file), &info.join("licenses").join(file))?;
        licenses += &format!("License-File: {file}\n");
    }
    // Each tag on a line, and all of them in the file's name.
    let tags: String =
        target.wheel.split('.').map(|tag| format!("Tag: py3-none-{tag}\n")).collect();
    write_file(
        &info.join("WHEEL"),
        &format!(
            "Wheel-Version: 1.0\nGenerator: cargo xtask package\nRoot-Is-Purelib: false\n{tags}"
        ),
    )?;
    write_file(
        &info.join("METADATA"),
        &format!(
            "Metadata-Version: 2.4\nName: toolcrib\nVersion: {version}\nSummary: {SUMMARY}\n\
             License-Expression: MIT OR Apache-2.0\n{licenses}\
             Project-URL: Source, {SOURCE}\nRequires-Python: >=3.8\n\
             Description-Content-Type: text/markdown\n\n{}",
            page(workspace)?
        ),
    )?;
    let python = packages::interpreter(&tools(workspace));
    run(
        workspace
            .program(python)
            .args(["-m", "wheel", "pack", "--dest-dir"])
            .arg(finished)
            .arg(&folder),
        "look at the message above",
    )?;
    Ok(finished.join(format!("{name}-py3-none-{}.whl", target.wheel)))
}

/// The description in registries.
pub(super) const SUMMARY: &str =
    "The tool layer for LLM agents: what a model may see, what a call may do, what comes back.";

pub(super) const SOURCE: &str = "https://github.com/toolcrib/toolcrib";
