//! `docs/` as a book: its summary, the places that its links name, and the pages that mdBook makes.

use std::path::PathBuf;

use crate::{
    links::links,
    problem::Problem,
    workspace::{Workspace, run},
};

/// The version that is installed. It compiles in about two minutes of processor time.
const VERSION: &str = "0.5.4";

/// The page for contributors alone, which is not in the book; `CONTRIBUTING.md` links to it.
const LEFT_OUT: &str = "internal/from-the-sources.md";

/// Each page is in the summary once, and each link to a place in a page leads to a heading.
pub(crate) fn check(workspace: &Workspace) -> Result<(), Problem> {
    let folder = workspace.root().join("docs");
    let summary = workspace.read("docs/SUMMARY.md")?;
    let mut broken = Vec::new();
    for page in workspace.files(&["docs"], "md")? {
        let name = page.strip_prefix(&folder).unwrap_or(&page).display().to_string();
        let named = summary.matches(&format!("]({name})")).count();
        if name != "SUMMARY.md" && named != usize::from(name != LEFT_OUT) {
            broken.push(format!("docs/SUMMARY.md names {name} {named} times"));
        }
        for (_, file, place) in links(&workspace.read(&page)?) {
            let is_page = file.is_empty() || file.ends_with(".md");
            let Some(place) = place.filter(|_| is_page) else { continue };
            let target = match file {
                "" => page.clone(),
                file => page.parent().unwrap_or(&folder).join(file),
            };
            if !headings(&workspace.read(&target)?).any(|heading| heading == place) {
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
    fn headings_are_named_as_in_links() {
        let found: Vec<_> = headings("# `mcpServers` files\ntext\n## A, and b?").collect();
        assert_eq!(found, ["mcpservers-files", "a-and-b"]);
    }
}
