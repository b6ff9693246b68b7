//! The program in an archive, with completions, manual pages, docs and licenses; and the digests of all packages.

use std::path::{Path, PathBuf};

use super::{Built, LICENSES, copy, empty, page::page, tools, write as write_file};
use crate::{
    packages,
    problem::Problem,
    workspace::{output, run},
};

/// Prints a line of digest and name for each file, as `sha256sum` does.
const SUMS: &str = "import hashlib, pathlib, sys\n\
                    for path in map(pathlib.Path, sys.argv[1:]):\n\
                    \x20   print(hashlib.sha256(path.read_bytes()).hexdigest() + '  ' + path.name)";

/// Writes the archive. Its name and its folder are those that `cargo binstall` expects.
pub(super) fn write(built: &Built<'_>) -> Result<PathBuf, Problem> {
    let Built { workspace, program, texts, finished, .. } = built;
    let name = built.name_of_archive();
    let parent = empty(finished.join("archive"))?;
    let folder = parent.join(&name);
    copy(program, &folder.join("toolcrib"))?;
    write_file(&folder.join("README.md"), &page(workspace)?)?;
    for part in [&texts.join("completions"), &texts.join("man"), &workspace.root().join("docs")] {
        run(
            workspace.program("cp").arg("-R").arg(part).arg(&folder),
            "make the target folder writable",
        )?;
    }
    for file in LICENSES.into_iter().chain(["THIRD-PARTY.txt"]) {
        copy(&texts.join(file), &folder.join(file))?;
    }
    let archive = finished.join(format!("{name}.tar.gz"));
    run(
        workspace.program("tar").arg("-czf").arg(&archive).arg("-C").arg(&parent).arg(&name),
        "install `tar`",
    )?;
    Ok(archive)
}

pub(super) fn write_sums(built: &Built<'_>, files: &[&Path]) -> Result<(), Problem> {
    let python = packages::interpreter(&tools(built.workspace));
    let sums = output(
        built.workspace.program(python).args(["-c", SUMS]).args(files),
        "make the target folder readable",
    )?;
    write_file(&built.finished.join("SHA256SUMS"), &(sums + "\n"))
}
