//! Checks that `docs/internal/dependencies.md` lists exactly the direct dependencies.

use std::collections::BTreeMap;

use crate::{problem::Problem, workspace::Workspace};

/// The page that gives a reason for each dependency.
const PAGE: &str = "docs/internal/dependencies.md";

pub(crate) fn check(workspace: &Workspace) -> Result<(), Problem> {
    let (manifest, page) = (workspace.read("Cargo.toml")?, workspace.read(PAGE)?);
    let (declared, described) = (declared(&manifest), described(&page));
    let missing = declared.iter().filter(|(name, version)| described.get(*name) != Some(*version));
    let gone = described.keys().filter(|name| !declared.contains_key(*name));
    let problems: Vec<String> = missing
        .map(|(name, version)| format!("{PAGE} has no row `{name}` with version {version}"))
        .chain(gone.map(|name| format!("{PAGE} has a row `{name}`, which is not in Cargo.toml")))
        .collect();
    if problems.is_empty() {
        eprintln!("{} direct dependencies, each with its reason", declared.len());
        return Ok(());
    }
    Err(Problem::new(
        problems.join("\n"),
        "add the crate's purpose and the alternatives, or remove the row",
    ))
}

/// Names and versions in `[workspace.dependencies]`, without the workspace's own crates.
fn declared(manifest: &str) -> BTreeMap<&str, &str> {
    manifest
        .lines()
        .skip_while(|line| *line != "[workspace.dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter(|line| !line.contains("{ path = "))
        .filter_map(|line| {
            let (name, value) = line.split_once(" = ")?;
            // The version comes first, whether alone or in a table.
            Some((name, value.split('"').nth(1)?))
        })
        .collect()
}

/// Names and versions in the rows of the page's tables.
fn described(page: &str) -> BTreeMap<&str, &str> {
    page.lines()
        .filter_map(|line| {
            let (name, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
            Some((name, rest.split_once(" |")?.0))
        })
        .collect()
}
