//! The paths of the workspace, and running programs in it.

use std::{
    env,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    problem::Problem,
    report::{self, Report},
};

/// The workspace that this program was built from.
pub(crate) struct Workspace {
    root: PathBuf,
    /// Whether clippy compiles the workspace's crates.
    by_clippy: bool,
    report: Report,
}

impl Workspace {
    pub(crate) fn here() -> Self {
        let own = Path::new(env!("CARGO_MANIFEST_DIR"));
        Self {
            root: own.parent().unwrap_or(own).to_owned(),
            by_clippy: false,
            report: Report::begin(),
        }
    }

    /// The same workspace with clippy in the place of the compiler: it generates code too, and one
    /// compilation gives both tests and lints. `cargo clippy` compiles all dependencies besides.
    pub(crate) fn by_clippy(self) -> Self {
        Self { by_clippy: true, ..self }
    }

    pub(crate) fn report(&self) -> &Report {
        &self.report
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Cargo's target folder.
    pub(crate) fn target(&self) -> PathBuf {
        let chosen = env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| OsString::from("target"));
        self.root.join(chosen)
    }

    /// The names of the crates in `crates/`, which equal those of their folders.
    pub(crate) fn crates(&self) -> Result<Vec<String>, Problem> {
        let folder = self.root.join("crates");
        let mut names = fs::read_dir(&folder)
            .and_then(|entries| {
                entries
                    .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
                    .collect::<io::Result<Vec<_>>>()
            })
            .map_err(|error| unreadable(&folder, &error))?;
        names.sort();
        Ok(names)
    }

    /// The files in some folders whose names have an ending, sorted. The root itself is `.`, which
    /// means only its direct files; build output and tools' files are excluded.
    pub(crate) fn files(&self, folders: &[&str], ending: &str) -> Result<Vec<PathBuf>, Problem> {
        let mut found = Vec::new();
        for folder in folders {
            let path = self.root.join(folder);
            if path.is_dir() {
                collect(&path, ending, *folder != ".", &mut found)
                    .map_err(|error| unreadable(&path, &error))?;
            }
        }
        found.sort();
        Ok(found)
    }

    /// The text of a file, whose path may be relative to the root.
    pub(crate) fn read(&self, path: impl AsRef<Path>) -> Result<String, Problem> {
        let path = self.root.join(path);
        fs::read_to_string(&path).map_err(|error| unreadable(&path, &error))
    }

    /// A path relative to the root, for messages.
    pub(crate) fn shown(&self, path: &Path) -> String {
        let relative = path.strip_prefix(&self.root).unwrap_or(path).display().to_string();
        relative.trim_start_matches("./").to_owned()
    }

    /// A command that runs a program at the root.
    pub(crate) fn program(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command.current_dir(&self.root);
        command
    }

    /// The cargo that started this program.
    pub(crate) fn cargo<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Command {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
        let mut command = self.program(PathBuf::from(cargo));
        command.args(args);
        // Variables of `cargo run`, which started this program. Some build scripts depend on them: a cargo
        // that a person starts would run those again, and compile what depends on them.
        for (name, _) in env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
                command.env_remove(&name);
            }
        }
        command
    }

    /// The same, to compile the workspace for tests.
    pub(crate) fn compile<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = self.cargo(args);
        if self.by_clippy {
            command.env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver");
            // `cargo clippy -- -D warnings` passes its arguments in this form.
            command.env("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__");
        }
        command
    }
}

/// Runs a program to its end, with inherited output.
pub(crate) fn run(command: &mut Command, help: &str) -> Result<(), Problem> {
    let line = command_line(command);
    eprintln!("$ {line}");
    match command.spawn().and_then(report::wait) {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Problem::new(format!("`{line}` failed: {status}"), help)),
        Err(error) => Err(not_started(&line, &error)),
    }
}

/// Runs a program to its end; returns its output, without surrounding whitespace.
pub(crate) fn output(command: &mut Command, help: &str) -> Result<String, Problem> {
    let line = command_line(command);
    match command.output() {
        Ok(output) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        }
        Ok(output) => {
            let complaint = String::from_utf8_lossy(&output.stderr);
            Err(Problem::new(format!("`{line}` failed: {}\n{complaint}", output.status), help))
        }
        Err(error) => Err(Problem::new(format!("`{line}` could not be started: {error}"), help)),
    }
}

/// The error for a program that is missing or not executable.
pub(crate) fn not_started(line: &str, error: &io::Error) -> Problem {
    Problem::new(
        format!("`{line}` could not be started: {error}"),
        "install the program, or put it on the PATH",
    )
}

/// The error for a file or folder that cannot be read.
pub(crate) fn unreadable(path: &Path, error: &io::Error) -> Problem {
    Problem::new(
        format!("{} cannot be read: {error}", path.display()),
        "check its permissions, and that a file is UTF-8",
    )
}

/// A command as a shell line, for people to repeat.
pub(crate) fn command_line(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let program = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy();
    let mut line = program.into_owned();
    for arg in command.get_args() {
        let arg = arg.to_string_lossy();
        line.push(' ');
        if arg.contains(char::is_whitespace) {
            line.push_str(&format!("{arg:?}"));
        } else {
            line.push_str(&arg);
        }
    }
    line
}

fn collect(folder: &Path, ending: &str, below: bool, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        let name = entry.file_name();
        let is_hidden = name.as_encoded_bytes().starts_with(b".");
        if kind.is_dir() && below && !is_hidden && name != "target" {
            collect(&path, ending, below, found)?;
        } else if kind.is_file() && path.extension().is_some_and(|own| own == ending) {
            found.push(path);
        }
    }
    Ok(())
}
