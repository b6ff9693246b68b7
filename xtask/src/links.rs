//! Checks the links between the repository's documents: the file exists, and a test that the label
//! names too.

use crate::{problem::Problem, workspace::Workspace};

/// The folders with documents.
const FOLDERS: [&str; 5] = [".", "crates", "deploy", "docs", "examples"];

pub(crate) fn check(workspace: &Workspace) -> Result<(), Problem> {
    let documents = workspace.files(&FOLDERS, "md")?;
    let mut broken = Vec::new();
    for path in &documents {
        let text = workspace.read(path)?;
        let folder = path.parent().unwrap_or(workspace.root());
        let shown = workspace.shown(path);
        for (label, target, _) in links(&text).filter(|(_, target, _)| !target.is_empty()) {
            let file = folder.join(target);
            if !file.exists() {
                broken.push(format!("{shown} links to {target}, which does not exist"));
            } else if let Some(test) = test_in(label)
                && !workspace.read(&file)?.contains(&format!("fn {test}("))
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

/// The links of a page within the repository: the label, the file, which is empty for the page
/// itself, and the place in it.
pub(crate) fn links(text: &str) -> impl Iterator<Item = (&str, &str, Option<&str>)> {
    text.match_indices("](").filter_map(|(at, opening)| {
        let label = text.get(..at)?.rsplit('[').next()?;
        let (target, _) = text.get(at + opening.len()..)?.split_once(')')?;
        let (file, place) =
            target.split_once('#').map_or((target, None), |(file, place)| (file, Some(place)));
        (!file.contains("://")).then_some((label, file, place))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_has_a_label_a_file_and_a_place() {
        let text = "[a](b/c.md#d) and [e](#f), [g](h.md), [i](https://j.example#k), `x[1](`";
        assert_eq!(
            links(text).collect::<Vec<_>>(),
            [("a", "b/c.md", Some("d")), ("e", "", Some("f")), ("g", "h.md", None)]
        );
    }

    #[test]
    fn a_label_that_names_a_test_is_told_from_others() {
        assert_eq!(test_in("engine providers::a_gate_fails"), Some("a_gate_fails"));
        assert_eq!(test_in("cli harm::one_json::a_key"), Some("a_key"));
        for other in ["`Tool::call`", "decisions", "One call, there and back", "the Tool::call"] {
            assert_eq!(test_in(other), None, "{other}");
        }
    }
}
