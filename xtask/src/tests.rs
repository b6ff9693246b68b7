//! Running the tests of the workspace. `cargo test` runs one test program after the other; here two run at a
//! time, because tests often wait for processes and timeouts.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::Path,
    process::{Command, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
};

use tinyjson::JsonValue;

use crate::{
    api,
    example::{field, text},
    oracle,
    packages::{self, unwritable},
    peers,
    problem::{Problem, joined},
    report,
    workspace::{Workspace, output, run, unreadable},
};

/// Test programs at a time.
const PROGRAMS: usize = 2;

/// Tests of one program at a time: twice the processors of a small machine, because most of them wait.
const THREADS: &str = "4";

/// Random cases of a property that sets no number: an eighth of the default, which `full` uses.
const CASES: &str = "32";

const HELP: &str = "run one test alone with `cargo test -p CRATE NAME`; if a snapshot differs and the new one is \
     correct, accept it with `INSTA_UPDATE=always cargo test -p CRATE NAME`";

/// All targets except benches.
pub(crate) const COMPILED: [&str; 3] = ["test", "--workspace", "--no-run"];

/// Runs all tests of CI, and `others` in the place of a program.
pub(crate) fn run_all(
    workspace: &Workspace,
    others: impl FnOnce() -> Result<(), Problem> + Send,
) -> Result<(), Problem> {
    let mut waiting = programs(workspace)?;
    let mut examples = workspace.compile(["test", "--workspace", "--doc"]);
    api::with_pages(&mut examples, workspace)?;
    waiting.push(("examples of the documentation".to_owned(), examples));
    let folder = workspace.target().join("test-output");
    fs::create_dir_all(&folder).map_err(|error| unwritable(&folder, &error))?;

    let report = workspace.report();
    let (waiting, failed) = (Mutex::new(waiting), Mutex::new(Vec::new()));
    let mut settings = workspace.program("env");
    set(&mut settings, workspace);
    settings.env("PROPTEST_CASES", CASES);
    let worker = |number: usize| {
        let log = folder.join(format!("{number}.txt"));
        loop {
            let next = locked(&waiting).pop();
            let Some((name, mut command)) = next else { return Ok(()) };
            command.envs(settings.get_envs().filter_map(|(name, value)| Some((name, value?))));
            let (is_ok, shown) = report
                .measured(name.clone(), || run_into(&log, &mut command))
                .map_err(|error| unwritable(&log, &error))?;
            report.add_skipped(&shown);
            if !is_ok {
                locked(&failed).push((name.clone(), failures(&shown)));
            }
            // One write: the texts of two programs do not mix.
            let text = [b"     Running ", name.as_bytes(), b"\n", &shown].concat();
            io::stdout()
                .write_all(&text)
                .map_err(|error| unwritable(Path::new("standard output"), &error))?;
        }
    };
    thread::scope(|scope| {
        let worker = &worker;
        let first = scope.spawn(move || others().and(worker(0)));
        let workers = (1..PROGRAMS).map(|number| scope.spawn(move || worker(number)));
        let workers: Vec<_> = workers.collect();
        workers.into_iter().chain([first]).try_for_each(joined)
    })?;
    let failed = locked(&failed);
    if !failed.is_empty() {
        // Printed again at the end: of a long log often only the end is kept.
        failed.iter().for_each(|(name, failures)| eprintln!("\n     Failed {name}\n{failures}"));
        let names: Vec<_> = failed.iter().map(|(name, _)| name.as_str()).collect();
        return Err(Problem::new(format!("tests failed: {}", names.join(", ")), HELP));
    }
    if report.is_skip_an_error() {
        return Err(Problem::new(
            "tests were skipped where `CI` is set; they are listed below",
            "install what they need, or unset `CI`",
        ));
    }
    Ok(())
}

/// Runs the tests of a cargo command, one program after the other.
pub(crate) fn run_in_turn(mut cargo: Command, workspace: &Workspace) -> Result<(), Problem> {
    set(&mut cargo, workspace);
    run(&mut cargo, HELP)
}

/// The programs with tests, compiled, each in the folder of its package; the largest, which take longest,
/// last.
fn programs(workspace: &Workspace) -> Result<Vec<(String, Command)>, Problem> {
    let mut cargo = workspace.compile(COMPILED);
    let units = output(cargo.args(["--quiet", "--message-format=json"]), HELP)?;
    let mut programs = Vec::new();
    for unit in units.lines().filter_map(|line| line.parse::<JsonValue>().ok()) {
        let is_test = field(&unit, "profile").and_then(|profile| field(profile, "test"));
        let paths = (text(&unit, "executable"), text(&unit, "manifest_path").map(Path::new));
        if let (Some(program), Some(manifest)) = paths
            && is_test == Some(&JsonValue::Boolean(true))
            && let Some(package) = manifest.parent()
        {
            let size =
                fs::metadata(program).map_err(|error| unreadable(program.as_ref(), &error))?;
            let mut command = Command::new(program);
            command.current_dir(package).env("CARGO_MANIFEST_DIR", package);
            programs.push((size.len(), (workspace.shown(program.as_ref()), command)));
        }
    }
    if programs.is_empty() {
        return Err(Problem::new("cargo listed no program with tests", HELP));
    }
    programs.sort_by_key(|(size, _)| *size);
    Ok(programs.into_iter().map(|(_, program)| program).collect())
}

/// The last lines of the part of a test program's output that describes the failed tests; of a program that
/// printed no such part, of all.
fn failures(output: &[u8]) -> String {
    const LINES: usize = 120;
    let output = String::from_utf8_lossy(output);
    let part = output.split_once("\nfailures:\n").map_or(&*output, |(_, part)| part);
    let lines: Vec<_> = part.lines().collect();
    let end = lines.get(lines.len().saturating_sub(LINES)..).unwrap_or_default();
    end.join("\n")
}

/// Runs a command to its end; returns whether it succeeded, and what it printed. A file gets the output: a
/// pipe would stay open as long as a program that a test has left.
fn run_into(log: &Path, command: &mut Command) -> io::Result<(bool, Vec<u8>)> {
    let file = File::create(log)?;
    let child = command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).spawn()?;
    let status = report::wait(child)?;
    Ok((status.success(), fs::read(log)?))
}

/// Sets the environment of all tests.
fn set(command: &mut Command, workspace: &Workspace) {
    packages::with_bare_python(workspace, command);
    command
        .env("RUST_TEST_THREADS", THREADS)
        .env(oracle::VARIABLE, oracle::python(workspace))
        .env(peers::VARIABLE, peers::folder(workspace));
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
