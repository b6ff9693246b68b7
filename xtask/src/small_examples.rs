//! The crates of `examples/`: each prints what its `expected.txt` says. One without such a file is a
//! library, and its tests are run with all others.

use std::fs;

use crate::{
    problem::Problem,
    workspace::{Workspace, output, unreadable},
};

pub(crate) fn check(workspace: &Workspace) -> Result<(), Problem> {
    let mut expectations = workspace.files(&["examples"], "txt")?;
    expectations.retain(|path| path.ends_with("expected.txt"));
    if expectations.is_empty() {
        return Err(Problem::new("no example has an expected.txt", "restore them"));
    }
    for path in expectations {
        let expected = fs::read_to_string(&path).map_err(|error| unreadable(&path, &error))?;
        let folder = path.parent().and_then(|folder| folder.file_name()).unwrap_or_default();
        let package = format!("example-{}", folder.to_string_lossy());
        eprintln!("$ cargo run --quiet --package {package}");
        let printed = output(
            &mut workspace.cargo(["run", "--quiet", "--package", &package]),
            "mend the example: it is what newcomers copy",
        )?;
        if printed != expected.trim() {
            return Err(Problem::new(
                format!(
                    "{package} does not print what {} says; it prints:\n{printed}",
                    path.display()
                ),
                "mend the example, or write what it prints now into that file",
            ));
        }
    }
    Ok(())
}
