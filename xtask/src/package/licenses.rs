//! The licenses of the crates in the program.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::PathBuf,
};

use crate::{
    problem::Problem,
    workspace::{Workspace, output, unreadable},
};

/// The license texts of all crates that are compiled into the program, each text once, with the crates that
/// it is for.
pub(super) fn of_dependencies(workspace: &Workspace) -> Result<String, Problem> {
    let mut cargo = workspace.cargo(["tree", "--package", "toolcrib-cli", "--edges", "normal"]);
    let listed = output(
        cargo.args(["--prefix", "none", "--format", "{p}|{l}"]),
        "`cargo tree` lists the dependencies",
    )?;
    let mut texts = BTreeMap::<String, BTreeSet<String>>::new();
    let mut without = Vec::new();
    let crates: BTreeSet<&str> = listed.lines().map(|line| line.trim_end_matches(" (*)")).collect();
    // A crate of this workspace has its path after its version.
    for line in crates.into_iter().filter(|line| !line.contains(" (/")) {
        let (name, license) = line.split_once('|').unwrap_or((line, ""));
        let name = name.trim_end_matches(" (proc-macro)").replace(" v", " ");
        let found = license_files(&name.replace(' ', "-"))?;
        if found.is_empty() {
            without.push(format!("{name}: {license}"));
        }
        for text in found {
            texts.entry(text).or_default().insert(format!("{name} ({license})"));
        }
    }
    let mut all = String::from(
        "The program `toolcrib` contains the crates below, from https://crates.io. Their licenses:\n",
    );
    for (text, crates) in texts {
        let crates: Vec<_> = crates.into_iter().collect();
        all += &format!("\n{}\n{}\n\n{}\n", "=".repeat(80), crates.join("\n"), text.trim());
    }
    all += &format!(
        "\n{}\nWithout a license text in their packages:\n\n{}\n",
        "=".repeat(80),
        without.join("\n")
    );
    Ok(all)
}

/// The license texts in the package of a crate, which cargo has unpacked; also those of C libraries in it.
fn license_files(folder: &str) -> Result<Vec<String>, Problem> {
    let home = env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo")));
    let sources = home.unwrap_or_default().join("registry").join("src");
    let indices = fs::read_dir(&sources).map_err(|error| unreadable(&sources, &error))?;
    let mut texts = Vec::new();
    for index in indices.flatten() {
        let mut folders = vec![index.path().join(folder)];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let (path, name) = (entry.path(), entry.file_name());
                let name = name.to_string_lossy().to_uppercase();
                let is_license = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"]
                    .iter()
                    .any(|start| name.starts_with(start));
                if path.is_dir() {
                    folders.push(path);
                } else if is_license && !name.ends_with(".RS") {
                    let text = fs::read(&path).map_err(|error| unreadable(&path, &error))?;
                    texts.push(String::from_utf8_lossy(&text).replace("\r\n", "\n"));
                }
            }
        }
        if !texts.is_empty() {
            break;
        }
    }
    Ok(texts)
}
