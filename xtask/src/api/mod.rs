//! The public names of the facade as a text file, which the repository keeps, so that a change of them is seen.

mod facade;
mod features;
mod names;
mod rustdoc;

use std::{collections::BTreeSet, env, fs, process::Command};

use self::facade::Facade;
use crate::{
    problem::Problem,
    workspace::{Workspace, run, unreadable},
};

/// The snapshot.
const FILE: &str = "docs/internal/public-api.txt";
/// The most names in the root of the facade.
const MAX_ROOT: usize = 40;

/// Makes rustdoc write each crate's API as JSON, with the lints of its pages, before it tests the
/// examples in the documentation. `cargo doc` would compile all dependencies once more.
const RUSTDOC: &str = r#"#!/bin/sh
set -e
pages() {
    count=$#
    while [ "$count" -gt 0 ]; do
        arg=$1; shift; count=$((count - 1))
        case $arg in
            --test) ;;
            --test-run-directory) shift; count=$((count - 1)) ;;
            *) set -- "$@" "$arg" ;;
        esac
    done
    # Only here may its unstable output be used.
    RUSTC_BOOTSTRAP=1 "$RUSTDOC_OF_API" "$@" --out-dir "$API_PAGES" -D warnings \
        -Zunstable-options --output-format=json
}
case " $* " in
    *" --crate-name example_"* | *" --crate-name toolcrib_benches "* | *" --crate-name toolcrib_testbed "*) ;;
    *" --test "*) pages "$@" ;;
esac
[ -n "$ONLY_PAGES" ] || exec "$RUSTDOC_OF_API" "$@"
"#;

/// Makes a `cargo test` write the files that [`check`] reads.
pub(crate) fn with_pages(cargo: &mut Command, workspace: &Workspace) -> Result<(), Problem> {
    let script = workspace.target().join("rustdoc-json.sh");
    fs::write(&script, RUSTDOC).map_err(|error| unreadable(&script, &error))?;
    run(workspace.program("chmod").arg("+x").arg(&script), "look at the permissions of `target`")?;
    cargo
        .env("RUSTDOC_OF_API", env::var_os("RUSTDOC").unwrap_or_else(|| "rustdoc".into()))
        .env("API_PAGES", workspace.target().join("doc"))
        .env("RUSTDOC", &script);
    Ok(())
}

/// Writes those files, and tests nothing.
pub(crate) fn write_pages(workspace: &Workspace) -> Result<(), Problem> {
    let mut cargo = workspace.cargo(["test", "--workspace", "--doc", "--quiet"]);
    with_pages(&mut cargo, workspace)?;
    let help = "fix the links and comments listed above; `cargo doc --workspace --no-deps --open` shows the pages";
    run(cargo.env("ONLY_PAGES", "yes"), help)
}

/// Fails if the API is not that of the snapshot.
pub(crate) fn check(workspace: &Workspace) -> Result<(), Problem> {
    let (kept, now) = (workspace.read(FILE)?, list(workspace)?);
    let (before, after): (BTreeSet<_>, BTreeSet<_>) =
        (kept.lines().collect(), now.lines().collect());
    let gone = before.difference(&after).map(|line| format!("- {line}"));
    let changes: Vec<_> =
        gone.chain(after.difference(&before).map(|line| format!("+ {line}"))).collect();
    if changes.is_empty() {
        eprintln!("{} lines of public names, as in {FILE}", after.len());
        return Ok(());
    }
    Err(Problem::new(
        format!("the public names of the facade differ from {FILE}:\n{}", changes.join("\n")),
        "if the change is intended, write the new list with `cargo xtask api --bless`",
    ))
}

/// Writes the snapshot.
pub(crate) fn bless(workspace: &Workspace) -> Result<(), Problem> {
    let path = workspace.root().join(FILE);
    fs::write(&path, list(workspace)?).map_err(|error| unreadable(&path, &error))
}

fn list(workspace: &Workspace) -> Result<String, Problem> {
    let crates = rustdoc::read(workspace)?;
    let facade = facade::check(workspace, &crates)?;
    check_root(&facade)?;
    Ok(names::list(workspace, &facade).join("\n") + "\n")
}

fn check_root(facade: &Facade<'_>) -> Result<(), Problem> {
    let root: BTreeSet<_> = facade.places().map(|place| place.path.as_str()).collect();
    let root = root.into_iter().filter(|path| path.matches("::").count() == 1).count();
    eprintln!("{root} names in the root of the facade");
    if root <= MAX_ROOT {
        return Ok(());
    }
    Err(Problem::new(
        format!("the root of `toolcrib` has {root} names, more than {MAX_ROOT}"),
        "put new names into the module that they belong to",
    ))
}
