//! `docs/` as a book: its summary, the places that its links name, and the pages that mdBook makes.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    problem::Problem,
    workspace::{Workspace, run, unreadable},
};

/// The version that is installed. It compiles in about two minutes of processor time.
const VERSION: &str = "0.5.4";

/// Each page is in the summary once, and each link to a place in a page leads to a heading.
pub(crate) fn check(workspace: &Workspace) -> Result<(), Problem> {
    let folder = workspace.root().join("docs");
    let summary = read(&folder.join("SUMMARY.md"))?;
    let mut broken = Vec::new();
    for page in workspace.files(&["docs"], "md")? {
        let name = page.strip_prefix(&folder).unwrap_or(&page).display().to_string();
        if name != "SUMMARY.md" && summary.matches(&format!("]({name})")).count() != 1 {
            broken.push(format!("docs/SUMMARY.md must name {name} once"));
        }
        for (file, place) in places(&read(&page)?) {
            let target = match file {
                "" => page.clone(),
                file => page.parent().unwrap_or(&folder).join(file),
            };
            if !headings(&read(&target)?).any(|heading| heading == place) {
                broken.push(format!("{name} links to {file}#{place}, and no heading is called so"));
            }
        }
    }
    if broken.is_empty() {
        return Ok(());
    }
    Err(Problem::new(broken.join("\n"), "name the page and the heading as they are called now"))
}

/// Builds the book into `target/book`.
pub(crate) fn build(workspace: &Workspace) -> Result<(), Problem> {
    let folder = workspace.target().join("tools").join(format!("mdbook-{VERSION}"));
    let program: PathBuf = folder.join("bin").join("mdbook");
    if !program.exists() {
        let mut install = workspace.cargo(["install", "mdbook", "--locked", "--version", VERSION]);
        install.arg("--no-default-features").arg("--root").arg(&folder);
        run(&mut install, "install mdBook by hand: https://rust-lang.github.io/mdBook/")?;
    }
    let mut mdbook = workspace.program(&program);
    mdbook.arg("build").arg(workspace.root().join("docs"));
    mdbook.arg("--dest-dir").arg(workspace.target().join("book"));
    run(&mut mdbook, "correct the page that mdBook names")
}

fn read(path: &Path) -> Result<String, Problem> {
    fs::read_to_string(path).map_err(|error| unreadable(path, &error))
}

/// The links of a page that name a place in a page.
fn places(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split("](").skip(1).filter_map(|rest| {
        let (file, place) = rest.split_once(')')?.0.split_once('#')?;
        (!file.contains("://") && (file.is_empty() || file.ends_with(".md")))
            .then_some((file, place))
    })
}

/// The places in a page: its headings, as GitHub and mdBook name them.
fn headings(text: &str) -> impl Iterator<Item = String> {
    text.lines()
        .filter_map(|line| {
            line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#'))
        })
        .map(|heading| {
            let kept = heading.trim().to_lowercase();
            let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_headings_meet() {
        assert_eq!(
            places("[a](b.md#c-d) [e](#f) [g](h.md) [i](https://j#k)").collect::<Vec<_>>(),
            [("b.md", "c-d"), ("", "f")]
        );
        let found: Vec<_> = headings("# `mcpServers` files\ntext\n## A, and b?").collect();
        assert_eq!(found, ["mcpservers-files", "a-and-b"]);
    }
}
