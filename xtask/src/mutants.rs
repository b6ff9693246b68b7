//! Mutation testing: whether the tests of a module notice when its code is changed.
//!
//! Never part of CI: each module takes many minutes. What survived, and why it may, stands in
//! `docs/mutants.md`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

use crate::{
    packages::unwritable,
    problem::Problem,
    workspace::{Workspace, run as run_program},
};

/// The version of cargo-mutants that is installed where none is on the PATH.
const VERSION: &str = "27.1.0";

/// How a value prints itself to who debugs: nothing is decided there.
const DECIDES_NOTHING: &str = "impl (std::)?fmt::Debug for";

/// A part of the code that decides, by the name that it goes by here. None is meant to
/// take longer than three quarters of an hour where nothing else is done.
struct Module {
    name: &'static str,
    /// The crate that is changed, and whose tests have to notice.
    package: &'static str,
    /// Another crate whose tests may notice instead.
    or: Option<&'static str>,
    /// The files that are changed.
    files: &'static [&'static str],
    /// Those of them that are another module's.
    without: &'static [&'static str],
}

const MODULES: [Module; 20] = [
    Module {
        name: "policy",
        package: "toolcrib-engine",
        or: None,
        files: &["crates/toolcrib-engine/src/policy.rs"],
        without: &[],
    },
    Module {
        name: "composition",
        package: "toolcrib-engine",
        or: None,
        files: &["crates/toolcrib-engine/src/compose/**"],
        without: &["**/change.rs", "**/fact.rs"],
    },
    Module {
        name: "changes",
        package: "toolcrib-engine",
        or: None,
        files: &[
            "crates/toolcrib-engine/src/compose/change.rs",
            "crates/toolcrib-engine/src/compose/fact.rs",
        ],
        without: &[],
    },
    Module {
        name: "visibility",
        package: "toolcrib-engine",
        or: None,
        files: &[
            "crates/toolcrib-engine/src/personality.rs",
            "crates/toolcrib-engine/src/skills/**",
        ],
        without: &["**/active.rs", "**/steps.rs"],
    },
    Module {
        name: "steps",
        package: "toolcrib-engine",
        or: None,
        files: &[
            "crates/toolcrib-engine/src/skills/active.rs",
            "crates/toolcrib-engine/src/skills/steps.rs",
        ],
        without: &[],
    },
    Module {
        name: "rules",
        package: "toolcrib-engine",
        or: None,
        files: &["crates/toolcrib-engine/src/reliability/**"],
        without: &["**/breakers.rs", "**/budget.rs"],
    },
    Module {
        name: "breakers",
        package: "toolcrib-engine",
        or: None,
        files: &[
            "crates/toolcrib-engine/src/breaker.rs",
            "crates/toolcrib-engine/src/reliability/breakers.rs",
            "crates/toolcrib-engine/src/reliability/budget.rs",
        ],
        without: &[],
    },
    Module {
        name: "conditions",
        package: "toolcrib-core",
        or: None,
        files: &["crates/toolcrib-core/src/policy/**"],
        without: &[],
    },
    Module {
        name: "failures",
        package: "toolcrib-core",
        or: None,
        files: &["crates/toolcrib-core/src/reliability/**"],
        without: &[],
    },
    Module {
        name: "providers",
        package: "toolcrib-core",
        or: None,
        files: &["crates/toolcrib-core/src/provider/**"],
        without: &["**/cached/*"],
    },
    Module {
        name: "cache",
        package: "toolcrib-core",
        or: None,
        files: &["crates/toolcrib-core/src/provider/cached/*"],
        without: &[],
    },
    Module {
        name: "registry",
        package: "toolcrib-core",
        or: None,
        files: &["crates/toolcrib-core/src/registry/**", "crates/toolcrib-core/src/signals.rs"],
        without: &["**/merge.rs"],
    },
    Module {
        name: "merge",
        package: "toolcrib-core",
        or: None,
        files: &["crates/toolcrib-core/src/registry/merge.rs"],
        without: &[],
    },
    Module {
        name: "scopes",
        package: "toolcrib-engine",
        or: None,
        files: &["crates/toolcrib-engine/src/turn/**", "crates/toolcrib-engine/src/sessions.rs"],
        without: &[],
    },
    Module {
        name: "lines",
        package: "toolcrib-core",
        or: None,
        files: &["crates/toolcrib-core/src/spool/**"],
        without: &[],
    },
    Module {
        name: "stores",
        package: "toolcrib-artifacts",
        or: None,
        files: &[
            "crates/toolcrib-artifacts/src/stores/**",
            "crates/toolcrib-artifacts/src/content.rs",
        ],
        without: &[],
    },
    Module {
        name: "keeping",
        package: "toolcrib-artifacts",
        or: None,
        files: &[
            "crates/toolcrib-artifacts/src/artifacts.rs",
            "crates/toolcrib-artifacts/src/turn.rs",
            "crates/toolcrib-artifacts/src/writer.rs",
        ],
        without: &[],
    },
    Module {
        name: "pages",
        package: "toolcrib-artifacts",
        or: None,
        files: &["crates/toolcrib-artifacts/src/page.rs"],
        without: &[],
    },
    Module {
        name: "searches",
        package: "toolcrib-artifacts",
        or: None,
        files: &["crates/toolcrib-artifacts/src/search/**"],
        without: &[],
    },
    Module {
        name: "spooling",
        package: "toolcrib-engine",
        // Where there is a store to keep something in.
        or: Some("toolcrib-artifacts"),
        files: &["crates/toolcrib-engine/src/pipe/spool.rs"],
        without: &[],
    },
];

/// Changes one module of the code, one place at a time, and runs its crate's tests on each.
pub(crate) fn run(workspace: &Workspace, name: &str) -> ExitCode {
    let Some(module) = MODULES.iter().find(|module| module.name == name) else {
        let known: Vec<_> = MODULES.iter().map(|module| module.name).collect();
        eprintln!("there is no module `{name}`; there are: {}", known.join(", "));
        return ExitCode::from(2);
    };
    match test(workspace, module) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

fn test(workspace: &Workspace, module: &Module) -> Result<(), Problem> {
    let program = find_or_install(workspace)?;
    let found = workspace.target().join("mutants").join(module.name);
    fs::create_dir_all(&found).map_err(|error| unwritable(&found, &error))?;
    let mut mutants = workspace.program(&program);
    mutants
        .args(["mutants", "--no-shuffle", "--colors", "never", "--exclude-re", DECIDES_NOTHING])
        .args(["--package", module.package, "--test-package", module.package])
        .arg("--output")
        .arg(found);
    if let Some(other) = module.or {
        mutants.args(["--test-package", other]);
    }
    for file in module.files {
        mutants.args(["--file", file]);
    }
    for file in module.without {
        mutants.args(["--exclude", file]);
    }
    // Examples of the documentation show and do not judge, and each of them is linked by itself.
    mutants.args(["--", "--lib", "--tests"]);
    // That a property fails is enough to know, without the smallest case.
    mutants.env("PROPTEST_MAX_SHRINK_ITERS", "0");
    // What is changed is a copy of the workspace: what is built of it must not be taken for ours.
    mutants.env_remove("CARGO_TARGET_DIR");
    run_program(
        &mut mutants,
        "each `MISSED` line is a change that no test noticed: write one that does, or say in \
         docs/mutants.md why it may survive",
    )
}

fn find_or_install(workspace: &Workspace) -> Result<PathBuf, Problem> {
    let on_path = PathBuf::from("cargo-mutants");
    if works(&on_path) {
        return Ok(on_path);
    }
    let folder = workspace.target().join("tools").join(format!("cargo-mutants-{VERSION}"));
    let installed = folder.join("bin").join("cargo-mutants");
    if !works(&installed) {
        eprintln!("cargo-mutants is not on the PATH; building version {VERSION}");
        run_program(
            workspace
                .cargo(["install", "cargo-mutants", "--locked", "--version", VERSION, "--root"])
                .arg(&folder),
            "put a cargo-mutants on the PATH: https://mutants.rs/",
        )?;
    }
    Ok(installed)
}

fn works(program: &Path) -> bool {
    Command::new(program)
        .args(["mutants", "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
