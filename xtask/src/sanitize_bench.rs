//! Measures how many files of published packages a model would not read as they are: those that the
//! lock files of the repository name, which it installs.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use tinyjson::JsonValue;

use crate::{
    packages, peers,
    problem::Problem,
    workspace::{Workspace, output},
};

/// Of this many files, fewer than one may be altered because of tokens.
const FILES: usize = 2_000;

/// Of this many files, fewer than one may have hidden characters and terminal escapes that are left out.
const FILES_WITH_HIDDEN: usize = 1_000;

/// The list of a data set that has the chat templates of most models, to measure the tool search: most
/// of its few files contain tokens.
const TEMPLATES: &str = "crates/toolcrib-search/benches/requirements.txt";

/// The folders with lock files.
const FOLDERS: [&str; 5] = ["benches", "crates", "examples", "testbed", "xtask"];

/// Counts for each language; fails if one is over the limit.
pub(crate) fn measure(workspace: &Workspace) -> Result<(), Problem> {
    let mut over = Vec::new();
    for (language, folders) in [
        ("rust", crates(workspace)?),
        ("python", python(workspace)?),
        ("javascript", javascript(workspace)?),
    ] {
        let mut counting = workspace.cargo(["run", "--quiet", "--release"]);
        counting.args(["--package", "toolcrib-core", "--example", "altered", "--", language]);
        let printed = output(counting.args(&folders), "fix the error above")?;
        let (files, counts) = printed.rsplit_once('\n').unwrap_or(("", &printed));
        let mut counts = counts.split(' ').filter_map(|count| count.parse::<usize>().ok());
        let (Some(all), Some(tokens), Some(hidden)) = (counts.next(), counts.next(), counts.next())
        else {
            return Err(Problem::new(format!("no counts of {language}"), "look at the example"));
        };
        println!(
            "{files}\n{language}: {all} files, {tokens} with tokens, {hidden} with hidden characters"
        );
        if tokens * FILES >= all || hidden * FILES_WITH_HIDDEN >= all {
            over.push(language);
        }
    }
    match over.as_slice() {
        [] => Ok(()),
        over => Err(Problem::new(
            format!("{}: too many files are not shown as they are", over.join(", ")),
            "narrow the patterns in crates/toolcrib-core/src/untrusted/sanitize/project.rs, or the rule of \
             `is_run_of_code` in crates/toolcrib-core/src/text/hidden.rs",
        )),
    }
}

/// The folders of the crates of the registry that lock files name.
fn crates(workspace: &Workspace) -> Result<Vec<PathBuf>, Problem> {
    let mut folders = Vec::new();
    for lock in locks(workspace, "lock", "Cargo.lock")? {
        let mut metadata = workspace.cargo(["metadata", "--locked", "--format-version", "1"]);
        metadata.arg("--manifest-path").arg(lock.with_file_name("Cargo.toml"));
        let metadata = output(&mut metadata, "the crates come from crates.io: is it reachable?")?;
        let metadata: JsonValue = metadata.parse().map_err(|error| {
            Problem::new(format!("cargo's metadata: {error}"), "is this cargo too old?")
        })?;
        let found: Option<&Vec<JsonValue>> = field(&metadata, "packages").and_then(JsonValue::get);
        for package in found.into_iter().flatten() {
            let text = |name| field(package, name).and_then(JsonValue::get::<String>);
            let manifest = text("manifest_path").filter(|_| text("source").is_some());
            folders.extend(manifest.and_then(|path| Path::new(path).parent()).map(Path::to_owned));
        }
    }
    folders.sort_unstable();
    folders.dedup();
    Ok(folders)
}

fn field<'a>(object: &'a JsonValue, name: &str) -> Option<&'a JsonValue> {
    object.get::<HashMap<String, JsonValue>>()?.get(name)
}

/// The folders with the packages of Python that lists of requirements name.
fn python(workspace: &Workspace) -> Result<Vec<PathBuf>, Problem> {
    let mut lists = locks(workspace, "txt", "requirements.txt")?;
    lists.retain(|list| workspace.shown(list) != TEMPLATES);
    let install = |list: PathBuf| {
        let list = workspace.shown(&list);
        let folder = folder_of(workspace, &list);
        packages::install_once(workspace, &folder, &list)?;
        Ok(folder.join("venv").join("lib"))
    };
    lists.into_iter().map(install).collect()
}

/// The folders with the packages of npm that lock files name.
fn javascript(workspace: &Workspace) -> Result<Vec<PathBuf>, Problem> {
    peers::install(workspace)?;
    let node = peers::node(workspace);
    let install = |lock: PathBuf| {
        let package = workspace.shown(&lock.with_file_name("package.json"));
        let lock = workspace.shown(&lock);
        let (folder, files) = (folder_of(workspace, &lock), [&*package, &*lock]);
        let modules = folder.join("node_modules");
        packages::once(
            workspace,
            &folder,
            &files,
            || modules.is_dir(),
            || packages::npm_ci(workspace, &folder, &node, files),
        )?;
        Ok(modules)
    };
    locks(workspace, "json", "package-lock.json")?.into_iter().map(install).collect()
}

/// The lock files with this name, and the root's.
fn locks(workspace: &Workspace, ending: &str, name: &str) -> Result<Vec<PathBuf>, Problem> {
    let mut found = workspace.files(&FOLDERS, ending)?;
    found.extend(workspace.files(&["."], ending)?);
    found.retain(|path| path.file_name().is_some_and(|own| own == name));
    found.retain(|path| !path.iter().any(|part| part == "node_modules"));
    Ok(found)
}

/// The folder for the packages of a list.
fn folder_of(workspace: &Workspace, list: &str) -> PathBuf {
    workspace.target().join("sanitize-bench").join(list.replace(['/', '\\'], "-"))
}
