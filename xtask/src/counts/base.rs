//! The commit of the baseline, built and counted beside what is here.

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

/// Counts the commit that the baseline came in with.
pub(super) fn count(workspace: &Workspace, commit: &str) -> Result<Counts, Problem> {
    eprintln!("the baseline came in with commit {commit}");
    let folder = folder(workspace)?;
    let (packed, root) = (folder.join("base.tar"), folder.join("base"));
    // What an earlier run left; if it stays, unpacking says so.
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(&root).map_err(|error| {
        Problem::new(format!("{} cannot be made: {error}", root.display()), "make room for it")
    })?;
    let help = "make room in the target folder, and have `git` and `tar` on the PATH";
    run(workspace.program("git").args(["archive", "--output"]).arg(&packed).arg(commit), help)?;
    // `m`: as files of now. With the times of the commit, cargo would take what it built of another
    // one for newer.
    run(workspace.program("tar").arg("-xmf").arg(&packed).arg("-C").arg(&root), help)?;
    Program::build_at(workspace, &root, &folder.join("base-target"))?.count(workspace)
}

/// The commit that the baseline came in with: the last one that changed its file.
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
            format!("{FILE} is of another machine, and no commit holds it as it is"),
            "commit it, or count it anew here with `cargo xtask counts --bless`",
        ));
    }
    git(&["log", "-1", "--format=%H", "--", FILE])
}
