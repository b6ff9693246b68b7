//! Checks that the largest import circle of each crate does not grow: the files that use each other, directly
//! or through others, and can only be understood together.

mod crate_tree;
mod graph;
mod source;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use self::{
    crate_tree::CrateTree,
    graph::{Edge, Graph},
    source::Source,
};
use crate::{problem::Problem, workspace::Workspace};

/// The recorded sizes, a crate per line.
const RECORD: &str = "xtask/shape.txt";

/// The folders with crates.
const FOLDERS: [&str; 5] = ["benches", "crates", "examples", "testbed", "xtask"];

/// Imports of a circle that one message names.
const MOST_NAMED: usize = 12;

/// Compares the circles of each crate with the recorded sizes.
pub(crate) fn check(workspace: &Workspace) -> Result<(), Problem> {
    let record = workspace.read(RECORD)?;
    let mut recorded = recorded(&record)?;
    let mut found = Vec::new();
    for (name, graph) in crates(workspace)? {
        let largest = graph.largest();
        if largest > 1 {
            eprintln!("{name}: {largest} of {} files in the largest circle", graph.files.len());
        }
        found.extend(complaint(&name, &graph, recorded.remove(&*name).unwrap_or(1)));
    }
    found.extend(
        recorded
            .keys()
            .map(|name| format!("{RECORD} has a line for `{name}`, which is not a crate")),
    );
    if found.is_empty() {
        return Ok(());
    }
    Err(Problem::new(
        found.join("\n"),
        "move what both files need into a file that uses neither, or pass it as a parameter; `cargo xtask \
         shape` shows all circles",
    ))
}

/// Prints the circles of each crate with the names that their files use of each other.
pub(crate) fn show(workspace: &Workspace) -> Result<(), Problem> {
    for (name, graph) in crates(workspace)? {
        for files in graph.circles() {
            println!("{name}: a circle of {} files", files.len());
            let is_within = |(from, to): &Edge| files.contains(&**from) && files.contains(&**to);
            for edge in graph.edges.keys().filter(|edge| is_within(edge)) {
                println!("  {}", line(&graph, edge));
            }
        }
    }
    Ok(())
}

/// The complaint about a crate whose largest circle has another size than the recorded one.
fn complaint(name: &str, graph: &Graph, recorded: usize) -> Option<String> {
    let largest = graph.largest();
    if largest < recorded {
        let line = if largest > 1 {
            format!("write `{name} {largest}`")
        } else {
            "remove the line".to_owned()
        };
        return Some(format!(
            "{name}: the largest circle has {largest} files, fewer than the recorded {recorded}: {line} in {RECORD}"
        ));
    }
    if largest == recorded {
        return None;
    }
    let (edges, is_alone) = graph.cuts(recorded);
    let which = if is_alone { "any one of" } else { "all of" };
    let mut text = format!(
        "{name}: {largest} files use each other in a circle; {RECORD} allows {recorded}. The circle is no \
         larger without {which} these imports:"
    );
    for edge in edges.iter().take(MOST_NAMED) {
        text.push_str(&format!("\n  {}", line(graph, edge)));
    }
    if let Some(more @ 1..) = edges.len().checked_sub(MOST_NAMED) {
        text.push_str(&format!("\n  and {more} more"));
    }
    Some(text)
}

fn line(graph: &Graph, edge: &Edge) -> String {
    let names: Vec<&str> =
        graph.edges.get(edge).into_iter().flatten().map(String::as_str).collect();
    format!("{} uses {}: {}", edge.0, edge.1, names.join(", "))
}

/// The recorded size of each crate that has a circle.
fn recorded(text: &str) -> Result<BTreeMap<&str, usize>, Problem> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let entries = lines.map(|line| {
        let entry = line.split_once(' ').and_then(|(name, size)| Some((name, size.parse().ok()?)));
        entry.ok_or_else(|| {
            Problem::new(
                format!("{RECORD}: `{line}` is not a crate and a number"),
                "write `crates/NAME NUMBER`",
            )
        })
    });
    entries.collect()
}

/// The graph of each crate, by its folder. A program and a library of one crate have the same graph.
fn crates(workspace: &Workspace) -> Result<BTreeMap<String, Graph>, Problem> {
    let mut graphs: BTreeMap<String, Graph> = BTreeMap::new();
    let files: Vec<String> =
        workspace.files(&FOLDERS, "rs")?.iter().map(|path| workspace.shown(path)).collect();
    let known: BTreeSet<&str> = files.iter().map(String::as_str).collect();
    for root in &files {
        let Some((folder, _)) = root.split_once("/src/") else { continue };
        if !root.ends_with("/lib.rs") && !root.ends_with("/main.rs") {
            continue;
        }
        let mut read = |file: &str| {
            if !known.contains(file) {
                return Ok(None);
            }
            let source = Source::parse(&workspace.read(file)?);
            source.map(Some).map_err(|error| {
                Problem::new(
                    format!("{file} cannot be read: {error}"),
                    "make the file compile: `cargo check`",
                )
            })
        };
        let tree = CrateTree::read(root, &mut read)?;
        tree.add_to(graphs.entry(folder.to_owned()).or_default());
    }
    Ok(graphs)
}
