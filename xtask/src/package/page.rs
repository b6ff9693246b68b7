//! The page of the packages: README without the sources, with what a user of a package needs first.

use super::wheel::SOURCE;
use crate::{problem::Problem, workspace::Workspace};

/// The start of the page, in place of building from the sources.
const START: &str = "## Start\n\n\
    This package contains the program; it needs no compiler and no key for its first run:\n\n\
    ```console\n\
    $ toolcrib init my-agent\n\
    $ toolcrib run -p my-agent \"what do we know about the printer?\"\n\
    ```\n\n\
    `toolcrib --help` lists the commands. A page that a help text names, such as docs/models.md, is in \
    [docs](docs).\n\n";

/// The sections of README that are about its sources.
const OF_SOURCES: [&str; 3] = ["Two commands", "Way 1: ", "Not there yet"];

/// The page. Links to files of the repository also work elsewhere.
pub(super) fn page(workspace: &Workspace) -> Result<String, Problem> {
    Ok(with_full_links(&of_readme(&workspace.read("README.md")?)))
}

fn of_readme(readme: &str) -> String {
    // Comments name the commands that write a section.
    let lines: Vec<_> = readme.lines().filter(|line| !line.starts_with("<!--")).collect();
    let readme = lines.join("\n");
    let mut sections = readme.split("\n## ");
    let mut page = format!("{}\n{START}", sections.next().unwrap_or_default());
    let is_of_sources = |section: &&str| OF_SOURCES.iter().any(|title| section.starts_with(title));
    let sections: Vec<_> =
        sections.filter(|one| !is_of_sources(one)).map(|one| format!("## {one}")).collect();
    page += &sections.join("\n");
    page + "\nLicensed under either of Apache-2.0 or MIT, at your option.\n"
}

fn with_full_links(page: &str) -> String {
    let mut parts = page.split("](");
    let mut full = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_file = !["http", "#"].iter().any(|start| part.starts_with(start));
        full += "](";
        full += &if is_file { format!("{SOURCE}/blob/main/{part}") } else { part.to_owned() };
    }
    full
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_a_package_is_not_about_the_sources() {
        let page = with_full_links(&of_readme(include_str!("../../../README.md")));
        for absent in ["cargo", "Rust 1.", "No release", "](docs"] {
            assert!(!page.contains(absent), "{absent} is in\n{page}");
        }
        for title in ["# Toolcrib", "## Start", "## Way 2", "## Way 3", "## I want to"] {
            assert_eq!(page.matches(title).count(), 1, "{title}\n{page}");
        }
    }
}
