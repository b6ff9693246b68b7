//! Checks that the imports of each crate point down, from one layer to those below it, and that its circles are
//! small: the files that use each other, directly or through others, and can only be understood together.

mod crate_tree;
mod graph;
mod layers;
mod source;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use self::{
    crate_tree::CrateTree,
    graph::{Edge, Graph},
    layers::Layers,
    source::Source,
};
use crate::{problem::Problem, workspace::Workspace};

/// The limit of files in a circle.
const LARGEST: usize = 8;

/// The folders with crates.
const FOLDERS: [&str; 5] = ["benches", "crates", "examples", "testbed", "xtask"];

/// Imports of a circle that one message names.
const MOST_NAMED: usize = 12;

/// Compares the imports of each crate with its layers, and its circles with the limit.
pub(crate) fn check(workspace: &Workspace) -> Result<(), Problem> {
    let mut found = Vec::new();
    for (name, graph) in crates(workspace)? {
        let largest = graph.largest();
        if largest > 1 {
            eprintln!("{name}: {largest} of {} files in the largest circle", graph.files.len());
        }
        found.extend(complaint(&name, &graph, LARGEST));
        found.extend(layers(workspace, &name, &graph)?);
    }
    if found.is_empty() {
        return Ok(());
    }
    Err(Problem::new(
        found.join("\n"),
        "move what both files need into a file that uses neither, or pass it as a parameter; `cargo xtask \
         shape` shows all circles",
    ))
}

/// The complaints about the layers of a crate.
fn layers(workspace: &Workspace, name: &str, graph: &Graph) -> Result<Vec<String>, Problem> {
    let folder = format!("{name}/src/");
    let roots = ["lib.rs", "main.rs"].map(|root| format!("{folder}{root}"));
    let Some(root) = roots.iter().find(|root| graph.files.contains(*root)) else {
        return Ok(Vec::new());
    };
    let root = workspace.read(root)?;
    Ok(Layers::read(&folder, &root).complaints(name, graph))
}

/// Prints the circles of each crate with the names that their files use of each other, and the complaints about
/// its layers.
pub(crate) fn show(workspace: &Workspace) -> Result<(), Problem> {
    for (name, graph) in crates(workspace)? {
        for files in graph.circles() {
            println!("{name}: a circle of {} files", files.len());
            let is_within = |(from, to): &Edge| files.contains(&**from) && files.contains(&**to);
            for edge in graph.edges.keys().filter(|edge| is_within(edge)) {
                println!("  {}", graph.line(edge));
            }
        }
        layers(workspace, &name, &graph)?.iter().for_each(|complaint| println!("{complaint}"));
    }
    Ok(())
}

/// The complaint about a crate with too large a circle.
fn complaint(name: &str, graph: &Graph, most: usize) -> Option<String> {
    let largest = graph.largest();
    if largest <= most {
        return None;
    }
    let (edges, is_alone) = graph.cuts(most);
    let which = if is_alone { "any one of" } else { "all of" };
    let mut text = format!(
        "{name}: {largest} files use each other in a circle, and {most} may. The circle is small enough \
         without {which} these imports:"
    );
    for edge in edges.iter().take(MOST_NAMED) {
        text.push_str(&format!("\n  {}", graph.line(edge)));
    }
    if let Some(more @ 1..) = edges.len().checked_sub(MOST_NAMED) {
        text.push_str(&format!("\n  and {more} more"));
    }
    Some(text)
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
