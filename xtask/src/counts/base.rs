//! Builds and counts the commit of the baseline, for comparison with the working tree.

use std::fs;

use super::{
    Counts,
    baseline::FILE,
    program::{Program, folder},
};
use crate::{
    problem::Problem,
    workspace::{Workspace, output, run},
};

/// Counts the commit that added the baseline.
pub(super) fn count(workspace: &Workspace, commit: &str) -> Result<Counts, Problem> {
    eprintln!("the baseline was added by commit {commit}");
    let folder = folder(workspace)?;
    let (packed, root) = (folder.join("base.tar"), folder.join("base"));
    // Left by an earlier run; if it cannot be removed, unpacking fails.
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(&root).map_err(|error| {
        Problem::new(format!("{} cannot be created: {error}", root.display()), "make room for it")
    })?;
    let help = "make room in the target folder, and have `git` and `tar` on the PATH";
    run(workspace.program("git").args(["archive", "--output"]).arg(&packed).arg(commit), help)?;
    // `m`: with the current time. With the times of the commit, cargo would consider files built
    // from another commit newer.
    run(workspace.program("tar").arg("-xmf").arg(&packed).arg("-C").arg(&root), help)?;
    Program::build_at(workspace, &root, &folder.join("base-target"))?.count(workspace)
}

/// The commit that added the baseline: the last one that changed its file.
pub(super) fn commit(workspace: &Workspace) -> Result<String, Problem> {
    let help = "count in a clone with its whole history (`git fetch --unshallow`)";
    let git = |args: &[&str]| output(workspace.program("git").args(args), help);
    if git(&["rev-parse", "--is-shallow-repository"])? == "true" {
        return Err(Problem::new(
            "this clone is shallow, so the baseline's commit may be missing",
            help,
        ));
    }
    if !git(&["status", "--porcelain", "--", FILE])?.is_empty() {
        return Err(Problem::new(
            format!("{FILE} is from another machine, and its content is not committed"),
            "commit it, or count it again here with `cargo xtask counts --bless`",
        ));
    }
    git(&["log", "-1", "--format=%H", "--", FILE])
}
