//! Measures the tool search on a public data set, which it installs.

use crate::{
    bench, packages,
    problem::Problem,
    workspace::{Workspace, output, run},
};

/// The exact version, with the digest of the file.
const REQUIREMENTS: &str = "crates/toolcrib-search/benches/requirements.txt";

const PAGE: &str = "docs/tool-search.md";

/// The environment variable with the folder of the data.
const DATA: &str = "TOOLCRIB_BFCL_DATA";

/// Prints the folder of the package's data without importing it, which would need its dependencies.
const FOLDER: &str = "import importlib.util as u; \
     print(u.find_spec('bfcl_eval').submodule_search_locations[0] + '/data')";

/// Installs the data set into a separate folder, unless this version is there.
pub(crate) fn install(workspace: &Workspace) -> Result<(), Problem> {
    packages::install_once(workspace, &workspace.target().join("search-bench"), REQUIREMENTS)
}

/// Writes the figures into the page.
pub(crate) fn measure(workspace: &Workspace) -> Result<(), Problem> {
    let data = data(workspace)?;
    let mut found = String::new();
    for name in ["recall", "speed"] {
        let mut bench = workspace.cargo(["bench", "--quiet", "--package", "toolcrib-search"]);
        bench.args(["--bench", name]).env(DATA, &data);
        let printed = output(&mut bench, "fix the error above")?;
        println!("{printed}\n");
        found.push_str(&format!("{}\n\n", printed.trim_end()));
    }
    bench::write(workspace, PAGE, "search-bench", found.trim_end_matches('\n'))
}

/// Prints the weights that are best on all sets of needs, and what those that were chosen without a
/// catalog reach on it. A person writes them into the crate.
pub(crate) fn choose(workspace: &Workspace) -> Result<(), Problem> {
    run(
        workspace
            .cargo(["bench", "--quiet", "--package", "toolcrib-search", "--bench", "choose"])
            .env(DATA, data(workspace)?),
        "fix the error above",
    )
}

fn data(workspace: &Workspace) -> Result<String, Problem> {
    let python = packages::interpreter(&workspace.target().join("search-bench"));
    let printed = output(workspace.program(python).args(["-c", FOLDER]), "install it again")?;
    Ok(printed.trim().to_owned())
}
