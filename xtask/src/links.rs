//! Checks the links between the repository's documents: the file exists, and a test that the label
//! names too.

use std::{fs, path::Path};

use crate::{
    problem::Problem,
    workspace::{Workspace, unreadable},
};

/// The folders with documents.
const FOLDERS: [&str; 4] = [".", "crates", "docs", "examples"];

pub(crate) fn check(workspace: &Workspace) -> Result<(), Problem> {
    let documents = workspace.files(&FOLDERS, "md")?;
    let mut broken = Vec::new();
    for path in &documents {
        let text = fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
        let folder = path.parent().unwrap_or(workspace.root());
        let shown = path.strip_prefix(workspace.root()).unwrap_or(path).display();
        for (label, target) in links(&text) {
            let file = folder.join(target);
            if !file.exists() {
                broken.push(format!("{shown} links to {target}, which does not exist"));
            } else if let Some(test) = test_in(label)
                && !has_function(&file, test)?
            {
                broken.push(format!("{shown} names {label}, and {target} has no `fn {test}`"));
            }
        }
    }
    if broken.is_empty() {
        eprintln!("{} documents", documents.len());
        return Ok(());
    }
    broken.dedup();
    Err(Problem::new(broken.join("\n"), "use the current names of the file and the test"))
}

/// The labels of links to files, and the files, without fragments.
fn links(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.match_indices("](").filter_map(|(at, opening)| {
        let label = text.get(..at)?.rsplit('[').next()?;
        let (target, _) = text.get(at + opening.len()..)?.split_once(')')?;
        let file = target.split('#').next()?;
        (!file.is_empty() && !file.contains("://")).then_some((label, file))
    })
}

/// The function that a label `CRATE FILE::NAME` names.
fn test_in(label: &str) -> Option<&str> {
    let (package, test) = label.split_once(' ')?;
    let (modules, name) = test.rsplit_once("::")?;
    let is_name = |text: &str| {
        text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b':'))
    };
    [package, modules, name].into_iter().all(is_name).then_some(name)
}

fn has_function(file: &Path, name: &str) -> Result<bool, Problem> {
    let code = fs::read_to_string(file).map_err(|error| unreadable(file, &error))?;
    Ok(code.contains(&format!("fn {name}(")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_are_looked_for() {
        let text = "[a](b/c.md#d) and [e](#f), [g](https://h.example), `x[1](`";
        assert_eq!(links(text).collect::<Vec<_>>(), [("a", "b/c.md")]);
    }

    #[test]
    fn a_label_that_names_a_test_is_told_from_others() {
        assert_eq!(test_in("engine providers::a_gate_fails"), Some("a_gate_fails"));
        assert_eq!(test_in("cli harm::one_json::a_key"), Some("a_key"));
        for other in ["`Tool::call`", "decisions", "One call, there and back", "the Tool::call"] {
            assert_eq!(test_in(other), None, "{other}");
        }
        let this = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/links.rs");
        assert!(has_function(&this, "test_in").is_ok_and(|is_there| is_there));
        assert!(has_function(&this, concat!("test", "_out")).is_ok_and(|is_there| !is_there));
    }
}
