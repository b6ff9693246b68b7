use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{Mutex, PoisonError},
    thread,
};

use tinyjson::JsonValue;

use super::{Count, Counts, baseline::whole};
use crate::{
    problem::Problem,
    workspace::{Workspace, output, run},
};

/// This step's folder in cargo's target folder; callgrind's own files are `NAME.out`.
pub(super) const FOLDER: &str = "counting";

/// Optimized enough for realistic counts, and built in three quarters of the time of a release.
/// Macros and build scripts use the settings of tests, so that they are already built.
const PROFILE: [&str; 5] = [
    "profile.counts.inherits=\"release\"",
    "profile.counts.opt-level=1",
    "profile.counts.codegen-units=4",
    "profile.counts.build-override.debug-assertions=true",
    "profile.counts.build-override.overflow-checks=true",
];

/// With room for all memory that a thread frees, `malloc` costs the same whatever was allocated
/// before; otherwise counts differ by up to 1.5 % with the layout of the heap, which depends on the
/// seeds of hash maps.
const TUNABLES: &str = "glibc.malloc.tcache_count=60000";

/// A built program.
pub(super) struct Program(PathBuf);

impl Program {
    /// Builds `counts` of the workspace.
    pub(super) fn build(workspace: &Workspace) -> Result<Self, Problem> {
        Self::built(workspace, "toolcrib-benches", "counts")
    }

    /// Builds a program of the workspace.
    pub(super) fn built(workspace: &Workspace, package: &str, name: &str) -> Result<Self, Problem> {
        Self::built_at(workspace, workspace.root(), &workspace.target(), package, name)
    }

    /// Builds `counts` of another root. Each root needs a separate target folder: cargo considers the
    /// same crate at the same relative path unchanged, and would not build it again.
    pub(super) fn build_at(
        workspace: &Workspace,
        root: &Path,
        target: &Path,
    ) -> Result<Self, Problem> {
        Self::built_at(workspace, root, target, "toolcrib-benches", "counts")
    }

    fn built_at(
        workspace: &Workspace,
        root: &Path,
        target: &Path,
        package: &str,
        name: &str,
    ) -> Result<Self, Problem> {
        let mut cargo = workspace.cargo(["build", "--package", package, "--bin", name]);
        cargo.current_dir(root).args(["--profile", "counts"]);
        cargo.args(PROFILE.iter().flat_map(|setting| ["--config", setting]));
        // Personal build flags must not affect counts.
        cargo.arg("--target-dir").arg(target).env_remove("RUSTFLAGS");
        run(&mut cargo, "fix the compiler errors above")?;
        Ok(Self(target.join("counts").join(name)))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Runs it without valgrind.
    pub(super) fn command(&self, workspace: &Workspace) -> Command {
        workspace.program(&self.0)
    }

    /// Counts all benches, one per processor at a time.
    pub(super) fn count(&self, workspace: &Workspace) -> Result<Counts, Problem> {
        let names = output(workspace.program(&self.0).arg("--list"), BROKEN)?;
        let waiting = Mutex::new(names.lines());
        let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
        let work = || {
            let mut counts = Counts::new();
            while let Some(name) = next() {
                counts.insert(name.to_owned(), self.count_one(workspace, name)?);
            }
            Ok(counts)
        };
        thread::scope(|scope| {
            let processors = thread::available_parallelism().map_or(1, usize::from);
            let workers: Vec<_> = (0..processors).map(|_| scope.spawn(work)).collect();
            let mut all = Counts::new();
            for worker in workers {
                let counts = worker
                    .join()
                    .unwrap_or_else(|_| Err(Problem::new("a thread panicked", BROKEN)));
                all.extend(counts?);
            }
            Ok(all)
        })
    }

    fn count_one(&self, workspace: &Workspace, name: &str) -> Result<Count, Problem> {
        let file = folder(workspace)?.join(format!("{name}.out"));
        let mut valgrind = counting(workspace, &file);
        valgrind.arg("--toggle-collect=*counted_region*").arg(&self.0).arg(name);
        let said = output(&mut valgrind, BROKEN)?;
        let counted = workspace.read(&file)?;
        let count = || {
            let said: HashMap<String, JsonValue> =
                said.parse::<JsonValue>().ok()?.try_into().ok()?;
            Some(Count {
                times: whole(&said, "times")?,
                allocations: whole(&said, "allocations")?,
                instructions: total(&counted)?,
            })
        };
        count().ok_or_else(|| {
            Problem::new(format!("bench {name} was not counted; its output: {said}"), BROKEN)
        })
    }
}

/// Callgrind, which writes into a file; its other options and the program follow.
pub(super) fn counting(workspace: &Workspace, file: &Path) -> Command {
    let mut valgrind = workspace.program("valgrind");
    valgrind.args(["--quiet", "--tool=callgrind"]).env("GLIBC_TUNABLES", TUNABLES);
    valgrind.arg(format!("--callgrind-out-file={}", file.display()));
    valgrind
}

/// The instructions in a file of callgrind.
pub(super) fn total(file: &str) -> Option<u64> {
    let total = file.lines().find_map(|line| line.strip_prefix("totals:"))?;
    total.trim().parse().ok().filter(|counted| *counted > 0)
}

pub(super) const BROKEN: &str = "look at the programs in benches/src/bin, which run";

/// The folder of this step.
pub(super) fn folder(workspace: &Workspace) -> Result<PathBuf, Problem> {
    let folder = workspace.target().join(FOLDER);
    fs::create_dir_all(&folder).map_err(|error| {
        Problem::new(
            format!("{} cannot be created: {error}", folder.display()),
            "make the target folder writable",
        )
    })?;
    Ok(folder)
}
