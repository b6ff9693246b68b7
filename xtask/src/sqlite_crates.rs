//! Checks that a crate can have Toolcrib's features with SQLite beside another crate that links SQLite. Cargo
//! links one version of `libsqlite3-sys` into a program, so each crate's range must meet ours.

use std::{fs, path::PathBuf};

use crate::{
    packages::unwritable,
    problem::Problem,
    workspace::{Workspace, output, run},
};

/// The page that lists them for users.
const PAGE: &str = "docs/library.md";

/// The newest minor version of each crate, with its feature that links SQLite.
const CRATES: [(&str, &str, &str); 4] = [
    ("diesel", "2.3", "sqlite"),
    ("rusqlite", "0.43", "bundled"),
    ("sea-orm", "2.0", "sqlx-sqlite"),
    ("sqlx", "0.9", "sqlite"),
];

const FEATURES: &str = r#"["project", "sessions", "sql"]"#;

const HELP: &str = "widen the range of `rusqlite` in Cargo.toml, as far as `cargo check` passes with each version \
     in it, or state in docs/library.md which version cannot be used";

/// Generates a lock file for each crate, and compiles nothing.
pub(crate) fn check(workspace: &Workspace) -> Result<(), Problem> {
    let page = workspace.read(PAGE)?;
    for (name, version, feature) in CRATES {
        if !page.contains(&format!("| `{name}` | {version} |")) {
            return Err(Problem::new(
                format!("{PAGE} has no row of `{name}` with version {version}"),
                "correct its table of SQLite crates",
            ));
        }
        let folder = workspace.target().join("sqlite-crates").join(name);
        let library = workspace.root().join("crates/toolcrib").display().to_string();
        let manifest = format!(
            "[workspace]\n\n[package]\nname = \"beside-{name}\"\nedition = \"2024\"\nrust-version = \"{}\"\n\n\
             [dependencies]\n{name} = {{ version = \"{version}\", features = [\"{feature}\"] }}\n\
             toolcrib = {{ path = {library:?}, features = {FEATURES} }}\n",
            env!("CARGO_PKG_RUST_VERSION"),
        );
        for (path, text) in [("Cargo.toml", manifest.as_str()), ("src/lib.rs", "")] {
            let path = folder.join(path);
            let parent = path.parent().unwrap_or(&folder);
            fs::create_dir_all(parent).map_err(|error| unwritable(parent, &error))?;
            fs::write(&path, text).map_err(|error| unwritable(&path, &error))?;
        }
        output(&mut cargo_beside(workspace, name, &["generate-lockfile"]), HELP)?;
        let lock = workspace.read(folder.join("Cargo.lock"))?;
        let linked = locked(&lock, "libsqlite3-sys");
        let [linked] = linked.as_slice() else {
            return Err(Problem::new(
                format!("beside {name}, {} versions of libsqlite3-sys are locked", linked.len()),
                HELP,
            ));
        };
        eprintln!(
            "{name} {}, rusqlite {}: libsqlite3-sys {linked}",
            locked(&lock, name).join(" and "),
            locked(&lock, "rusqlite").join(" and ")
        );
    }
    Ok(())
}

/// Compiles Toolcrib with the versions that were locked beside each crate.
pub(crate) fn compile(workspace: &Workspace) -> Result<(), Problem> {
    check(workspace)?;
    for (name, ..) in CRATES {
        let mut cargo =
            cargo_beside(workspace, name, &["check", "--quiet", "--package", "toolcrib"]);
        run(cargo.env("CARGO_TARGET_DIR", target(workspace)), HELP)?;
    }
    Ok(())
}

fn target(workspace: &Workspace) -> PathBuf {
    workspace.target().join("sqlite-crates").join("target")
}

fn cargo_beside(workspace: &Workspace, name: &str, args: &[&str]) -> std::process::Command {
    let mut cargo = workspace.cargo(args.iter().copied());
    cargo.current_dir(workspace.target().join("sqlite-crates").join(name));
    cargo
}

/// The versions of a package in a lock file.
fn locked<'l>(lock: &'l str, name: &str) -> Vec<&'l str> {
    let start = format!("name = \"{name}\"\nversion = \"");
    let parts = lock.split(start.as_str()).skip(1);
    parts.filter_map(|part| part.split('"').next()).collect()
}
