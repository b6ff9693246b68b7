//! The public API as a text file, which the repository keeps, so that a change of it is seen.

mod facade;
mod features;
mod rustdoc;

use std::{collections::BTreeSet, env, fs, process::Command};

use tinyjson::JsonValue;

use self::rustdoc::{Crate, kind, members, signature};
use crate::{
    example::{field, items, text},
    problem::Problem,
    workspace::{Workspace, run, unreadable},
};

/// The snapshot.
const FILE: &str = "docs/internal/public-api.txt";
/// Crates that no library user names.
const INTERNAL: [&str; 1] = ["toolcrib_config"];
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
        eprintln!("{} public items, as in {FILE}", after.len());
        return Ok(());
    }
    Err(Problem::new(
        format!("the public API differs from {FILE}:\n{}", changes.join("\n")),
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
    let mut all = Vec::new();
    for (name, krate) in &crates {
        if INTERNAL.contains(&name.as_str()) {
            continue;
        }
        let mut reader = Reader { workspace, krate, lines: BTreeSet::new() };
        if let Some(root) = krate.root() {
            reader.module(root, name);
        }
        if name == facade::NAME {
            check_root(&reader.lines)?;
        }
        all.extend(reader.lines);
    }
    facade::check(workspace, &crates)?;
    Ok(all.join("\n") + "\n")
}

fn check_root(lines: &BTreeSet<String>) -> Result<(), Problem> {
    let paths = lines.iter().filter_map(|line| line.split(' ').next());
    let root: BTreeSet<_> = paths.filter(|path| path.matches("::").count() == 1).collect();
    eprintln!("{} names in the root of the facade", root.len());
    if root.len() <= MAX_ROOT {
        return Ok(());
    }
    Err(Problem::new(
        format!("the root of `toolcrib` has {} names, more than {MAX_ROOT}", root.len()),
        "put new names into the module that they belong to",
    ))
}

/// Reads what rustdoc says of one crate: `path  signature`, one line for each public item.
struct Reader<'a> {
    workspace: &'a Workspace,
    krate: &'a Crate,
    lines: BTreeSet<String>,
}

impl<'a> Reader<'a> {
    fn module(&mut self, module: &JsonValue, path: &str) {
        let inner = field(module, "inner").and_then(|inner| field(inner, "module"));
        for item in inner.into_iter().flat_map(|inner| items(inner, "items")) {
            if let Some(item) = self.krate.item(item) {
                self.named(item, path);
            }
        }
    }

    /// An item of a module.
    fn named(&mut self, item: &JsonValue, parent: &str) {
        let Some((kind, inner)) = kind(item) else { return };
        if kind == "use" {
            return self.reexport(inner, parent);
        }
        self.shown(item, &format!("{parent}::{}", text(item, "name").unwrap_or_default()));
    }

    fn reexport(&mut self, used: &JsonValue, parent: &str) {
        let is_glob = field(used, "is_glob").and_then(JsonValue::get::<bool>) == Some(&true);
        let target = field(used, "id").and_then(|id| self.krate.item(id));
        let name = text(used, "name").unwrap_or_default();
        let source = text(used, "source").unwrap_or_default();
        match target {
            // The items of a public module are listed at its path.
            Some(module) if is_glob && text(module, "visibility") == Some("public") => {
                self.lines.insert(format!("{parent}::* = {source}"));
            }
            Some(module) if is_glob => self.module(module, parent),
            Some(item) => self.shown(item, &format!("{parent}::{name}")),
            None => {
                let name = if is_glob { "*" } else { name };
                self.lines.insert(format!("{parent}::{name} = {source}"));
            }
        }
    }

    /// An item under its path, with all that belongs to it.
    fn shown(&mut self, item: &JsonValue, path: &str) {
        let Some((kind, inner)) = kind(item) else { return };
        if kind == "module" {
            self.lines.insert(format!("{path} mod"));
            return self.module(item, path);
        }
        self.lines.insert(format!("{path} {}", signature(self.workspace, item, kind)));
        let members = members(inner).filter_map(|id| self.krate.item(id));
        for member in members.collect::<Vec<_>>() {
            self.shown(member, &format!("{path}::{}", text(member, "name").unwrap_or_default()));
        }
        let found: Vec<_> = items(inner, "impls").filter_map(|id| self.krate.item(id)).collect();
        let derived: BTreeSet<_> =
            found.into_iter().filter_map(|of| self.implementation(of, path)).collect();
        if !derived.is_empty() {
            let derived = derived.into_iter().collect::<Vec<_>>().join(", ");
            self.lines.insert(format!("{path} derive({derived})"));
        }
    }

    /// The name of the trait where it is derived.
    fn implementation(&mut self, item: &'a JsonValue, path: &str) -> Option<&'a str> {
        let (_, inner) = kind(item)?;
        let is = |name| field(inner, name).and_then(JsonValue::get::<bool>) == Some(&true);
        if is("is_synthetic") || field(inner, "blanket_impl").is_some_and(|of| !of.is_null()) {
            return None;
        }
        match field(inner, "trait").and_then(|of| text(of, "path")) {
            Some(name) => {
                let written = signature(self.workspace, item, "impl");
                if !written.starts_with("impl") {
                    return Some(name).filter(|name| *name != "StructuralPartialEq");
                }
                self.lines.insert(format!("{path} {written}"));
            }
            None => {
                let members: Vec<_> =
                    items(inner, "items").filter_map(|id| self.krate.item(id)).collect();
                for member in members {
                    let name = text(member, "name").unwrap_or_default();
                    self.shown(member, &format!("{path}::{name}"));
                }
            }
        }
        None
    }
}
