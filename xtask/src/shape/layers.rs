//! The layers of a crate: its folders and top files, in the order that the root file states.

use super::graph::{Edge, Graph};

/// The heading of the list in the documentation of a root file.
const HEADING: &str = "//! # Layers";

/// The layers, from the top.
pub(super) struct Layers<'a> {
    /// `crates/toolcrib-core/src/`.
    folder: &'a str,
    /// The folders and files of each layer.
    layers: Vec<Vec<&'a str>>,
}

impl<'a> Layers<'a> {
    /// Reads the list of a root file: lines of the form ``//! - `name`: what it is.`` Names in one line are one
    /// layer, whose files may use each other.
    pub(super) fn read(folder: &'a str, root: &'a str) -> Self {
        let lines = root.lines().skip_while(|line| *line != HEADING).skip(1);
        let lines = lines.take_while(|line| line.starts_with("//!") && !line.starts_with("//! #"));
        let layers = lines.filter_map(|line| {
            let (names, _) = line.strip_prefix("//! - ")?.split_once(':')?;
            Some(names.split(", ").map(|name| name.trim_matches('`')).collect())
        });
        Self { folder, layers: layers.collect() }
    }

    /// The layer of a file; `None` for a root file.
    fn of<'b>(&self, file: &'b str) -> Option<&'b str> {
        let path = file.strip_prefix(self.folder)?;
        let name = path.split_once('/').map_or(path, |(layer, _)| layer);
        let name = name.strip_suffix(".rs").unwrap_or(name);
        (!["lib", "main"].contains(&name)).then_some(name)
    }

    /// The layers that the list lacks or that do not exist, and the imports that point up. A crate
    /// without folders needs no list.
    pub(super) fn complaints(&self, name: &str, graph: &Graph) -> Vec<String> {
        let is_in_folder =
            |file: &String| file.strip_prefix(self.folder).is_some_and(|path| path.contains('/'));
        if self.layers.is_empty() && !graph.files.iter().any(is_in_folder) {
            return Vec::new();
        }
        let mut all: Vec<&str> = graph.files.iter().filter_map(|file| self.of(file)).collect();
        all.dedup();
        let unlisted = all.iter().filter(|name| self.position(name).is_none());
        let mut found: Vec<String> = unlisted
            .map(|layer| {
                format!("{name}: `{layer}` is not in the list `# Layers` of its root file")
            })
            .collect();
        let gone = self.layers.iter().flatten().filter(|listed| !all.contains(listed));
        found.extend(gone.map(|listed| format!("{name}: there is no layer `{listed}`")));
        found.extend(
            graph
                .edges
                .keys()
                .filter(|edge| self.points_up(edge))
                .map(|edge| format!("{name}: an import points up: {}", graph.line(edge))),
        );
        found
    }

    /// The position of the layer with a folder or file, from the top.
    fn position(&self, name: &str) -> Option<usize> {
        self.layers.iter().position(|layer| layer.contains(&name))
    }

    /// Whether the first file is in a layer below the second one. Root files are above all layers.
    fn points_up(&self, (from, to): &Edge) -> bool {
        match (self.of(from), self.of(to)) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(from), Some(to)) => match (self.position(from), self.position(to)) {
                (Some(from), Some(to)) => from > to,
                // An unlisted layer has its own complaint.
                _ => false,
            },
        }
    }
}
