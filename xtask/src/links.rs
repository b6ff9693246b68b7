//! Links between the repository's documents lead somewhere.

use std::fs;

use crate::{
    problem::Problem,
    workspace::{Workspace, unreadable},
};

/// Where documents lie.
const FOLDERS: [&str; 4] = [".", "crates", "docs", "examples"];

pub(crate) fn check(workspace: &Workspace) -> Result<(), Problem> {
    let documents = workspace.files(&FOLDERS, "md")?;
    let mut broken = Vec::new();
    for path in &documents {
        let text = fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
        let folder = path.parent().unwrap_or(workspace.root());
        for target in targets(&text) {
            if !folder.join(target).exists() {
                let shown = path.strip_prefix(workspace.root()).unwrap_or(path);
                broken.push(format!("{} links to {target}, which is not there", shown.display()));
            }
        }
    }
    if broken.is_empty() {
        eprintln!("{} documents", documents.len());
        return Ok(());
    }
    broken.dedup();
    Err(Problem::new(broken.join("\n"), "name the file as it is called now"))
}

/// The files that a text links to, without the place in them.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    text.split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .filter_map(|(target, _)| target.split('#').next())
        .filter(|target| !target.is_empty() && !target.contains("://"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_are_looked_for() {
        let text = "[a](b/c.md#d) and [e](#f), [g](https://h.example), `x[1](`";
        assert_eq!(targets(text).collect::<Vec<_>>(), ["b/c.md"]);
    }
}
