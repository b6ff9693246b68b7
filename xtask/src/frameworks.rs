//! Runs the programs of `examples/frameworks` and `examples/restate`, a separate workspace, and compares pages
//! with programs.

use std::{env, fs, path::Path, process::Command};

use crate::{
    crash_table,
    example::Copy,
    packages, peers,
    problem::Problem,
    small_examples::{build_programs, program},
    workspace::{Workspace, output, run, unreadable},
};

const FOLDER: &str = "examples/frameworks";

/// Folders with programs, and the pages that show their snippets.
const PAGES: [(&str, &str); 3] = [
    (FOLDER, "docs/frameworks.md"),
    ("examples/restate", "docs/frameworks.md"),
    ("examples/web-service", "docs/library.md"),
];

/// In the output of both clients.
const CLIENTS_PRINT: [&str; 2] = ["offered: ", "\"charge_id\":75"];

/// Runs the Rust programs, each without network, the clients in Python and TypeScript, and the service of
/// Restate. The peers must be installed.
pub(crate) fn check(workspace: &Workspace) -> Result<(), Problem> {
    let folder = workspace.root().join(FOLDER);
    let manifest = folder.join("Cargo.toml").display().to_string();
    let target = workspace.target().join("frameworks");
    run(
        workspace
            .cargo(["build", "--locked", "--manifest-path", &manifest])
            .env("CARGO_TARGET_DIR", &target),
        "fix the example for the version of the framework that it names",
    )?;
    for path in workspace.files(&[FOLDER], "txt")? {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let program = target.join("debug").join(format!("{name}{}", env::consts::EXE_SUFFIX));
        prints(&mut workspace.program(program), &workspace.read(&path)?)?;
    }
    clients(workspace, &folder)?;
    crash_table::check_example(workspace)
}

/// Compares the lock file with the manifests of our crates, without downloading any crate. CI compiles none of
/// these programs, so it would not notice a dependency that the lock file lacks.
pub(crate) fn check_lock_file(workspace: &Workspace) -> Result<(), Problem> {
    let manifest = workspace.root().join(FOLDER).join("Cargo.toml").display().to_string();
    let args = ["update", "--workspace", "--locked", "--quiet", "--manifest-path", &manifest];
    run(
        &mut workspace.cargo(args),
        &format!(
            "run `cargo update --workspace --manifest-path {FOLDER}/Cargo.toml`, and commit its lock file"
        ),
    )
}

/// Both clients, each on a copy of the support desk.
fn clients(workspace: &Workspace, folder: &Path) -> Result<(), Problem> {
    build_programs(workspace)?;
    let desk = Copy::of(&workspace.root().join("examples/support-desk"))?;
    let tools = program(workspace, "toolcrib");
    let tools = tools.parent().into_iter().map(Path::to_owned);
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths(tools.chain(env::split_paths(&path))).unwrap_or_default();
    // Node looks for packages beside the script.
    let script = peers::folder(workspace).join("frameworks.ts");
    fs::copy(folder.join("client.ts"), &script).map_err(|error| unreadable(&script, &error))?;
    let python = packages::interpreter(&peers::folder(workspace));
    for (interpreter, script) in
        [(python, folder.join("client.py")), (peers::node(workspace).join("bin/node"), script)]
    {
        let mut client = Command::new(interpreter);
        client.arg(script).current_dir(desk.path()).env("PATH", &path);
        let printed = output(&mut client, "fix the example: newcomers copy it")?;
        if let Some(missing) = CLIENTS_PRINT.iter().find(|line| !printed.contains(**line)) {
            return Err(Problem::new(
                format!("a client of {FOLDER} does not print `{missing}`; it prints:\n{printed}"),
                "fix the example: newcomers copy it",
            ));
        }
    }
    Ok(())
}

fn prints(program: &mut Command, expected: &str) -> Result<(), Problem> {
    let printed = output(program, "fix the example: newcomers copy it")?;
    if printed == expected.trim() {
        return Ok(());
    }
    Err(Problem::new(
        format!("an example prints other lines than its file in {FOLDER}/expected:\n{printed}"),
        "fix the example, or write its current output into that file",
    ))
}

/// Compares the snippets of the examples with their pages.
pub(crate) fn check_pages(workspace: &Workspace) -> Result<(), Problem> {
    PAGES.into_iter().try_for_each(|(folder, page)| check_page(workspace, folder, page))
}

fn check_page(workspace: &Workspace, folder: &str, shown: &str) -> Result<(), Problem> {
    let page = workspace.read(shown)?;
    let mut sources = Vec::new();
    for ending in ["rs", "py", "ts"] {
        sources.extend(workspace.files(&[folder], ending)?);
    }
    let mut found = 0;
    for path in sources {
        for snippet in snippets(&workspace.read(&path)?) {
            found += 1;
            if !page.contains(&format!("```{}\n{snippet}```", language(&path))) {
                return Err(Problem::new(
                    format!("{shown} lacks this snippet of {}:\n{snippet}", path.display()),
                    "copy it to the page",
                ));
            }
        }
    }
    if found == 0 {
        return Err(Problem::new(format!("{folder} has no snippets"), "restore their marks"));
    }
    Ok(())
}

fn language(path: &Path) -> &'static str {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("py") => "python",
        Some("ts") => "typescript",
        _ => "rust,ignore",
    }
}

/// The parts between the marks, each without its indentation.
fn snippets(source: &str) -> Vec<String> {
    let comment = |line: &str| {
        let line = line.trim();
        let text = line.strip_prefix("//").or_else(|| line.strip_prefix('#'));
        text.map(|text| text.trim().to_owned())
    };
    let is = |line: &str, mark: &str| comment(line).is_some_and(|text| text == mark);
    let mut snippets = Vec::new();
    let mut lines = source.lines();
    while lines.any(|line| is(line, "snippet")) {
        let part: Vec<&str> = lines.by_ref().take_while(|line| !is(line, "end")).collect();
        let indentation = |line: &&str| line.len() - line.trim_start().len();
        let filled = part.iter().filter(|line| !line.is_empty());
        let cut = filled.map(indentation).min().unwrap_or(0);
        let part = part.iter().map(|line| format!("{}\n", line.get(cut..).unwrap_or_default()));
        snippets.push(part.collect());
    }
    snippets
}
