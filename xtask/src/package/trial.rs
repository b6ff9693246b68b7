//! Packages in empty environments: no compiler, no network, and nothing in the `PATH` but the package.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use super::{Built, empty};
use crate::{
    packages::{self, unwritable},
    peers,
    problem::Problem,
    workspace::{output, run},
};

/// From the installation until the answer.
const LONGEST: Duration = Duration::from_secs(15);

const QUESTION: &str = "what do we know about the printer?";

/// The folder of the environments.
pub(super) struct Trial<'a> {
    built: &'a Built<'a>,
    folder: PathBuf,
}

impl<'a> Trial<'a> {
    pub(super) fn in_folder(built: &'a Built<'a>, folder: PathBuf) -> Self {
        Self { built, folder }
    }

    /// A program with an empty environment but for these folders of the `PATH`, and its own home.
    fn command(&self, program: &Path, path: &[&Path], home: &Path) -> Command {
        let mut command = self.built.workspace.program(program);
        let path = std::env::join_paths(path).unwrap_or_default();
        command.env_clear().env("PATH", path).env("HOME", home).current_dir(home);
        command
    }

    /// Unpacks the archive and runs the program.
    pub(super) fn archive(&self, archive: &Path) -> Result<(), Problem> {
        let (home, began) = (empty(self.folder.join("archive"))?, Instant::now());
        run(
            self.built.workspace.program("tar").arg("-xzf").arg(archive).arg("-C").arg(&home),
            "the archive is damaged",
        )?;
        let folder = home.join(self.built.name_of_archive());
        let program = folder.join("toolcrib");
        for file in ["man/man1/toolcrib.1", "man/man1/toolcrib-run.1", "completions/_toolcrib"] {
            if !folder.join(file).is_file() {
                return Err(Problem::new(format!("the archive lacks {file}"), "fix `write_texts`"));
            }
        }
        self.main_job("the archive", || self.command(&program, &[], &home), &home, began)
    }

    /// Installs the wheel into a new virtual environment, without an index.
    pub(super) fn wheel(&self, wheel: &Path) -> Result<(), Problem> {
        let home = empty(self.folder.join("wheel"))?;
        let venv = home.join("venv");
        let python = packages::interpreter(&super::tools(self.built.workspace));
        run(
            self.built.workspace.program(python).args(["-m", "venv"]).arg(&venv),
            "install Python's module venv",
        )?;
        let (bin, began) = (venv.join("bin"), Instant::now());
        run(
            self.command(&bin.join("python"), &[&bin], &home)
                .args([
                    "-m",
                    "pip",
                    "install",
                    "--quiet",
                    "--no-index",
                    "--disable-pip-version-check",
                ])
                .arg(wheel),
            "the wheel does not fit this machine, or is damaged",
        )?;
        let program = bin.join("toolcrib");
        self.main_job("the wheel", || self.command(&program, &[], &home), &home, began)
    }

    /// Installs the npm packages into a new prefix, without a registry.
    pub(super) fn npm(&self, files: &[PathBuf; 2]) -> Result<(), Problem> {
        let home = empty(self.folder.join("npm"))?;
        let node = peers::node(self.built.workspace);
        let (bin, began) = (node.join("bin"), Instant::now());
        run(
            self.command(&bin.join("node"), &[&bin], &home)
                .arg(node.join("lib/node_modules/npm/bin/npm-cli.js"))
                .args(["install", "--offline", "--no-audit", "--no-fund", "--loglevel=error"])
                .args(files),
            "the packages do not fit this machine, or are damaged",
        )?;
        let program = home.join("node_modules/.bin/toolcrib");
        self.main_job("the npm packages", || self.command(&program, &[&bin], &home), &home, began)
    }

    /// `toolcrib init`, then a run that must answer.
    fn main_job(
        &self,
        what: &str,
        toolcrib: impl Fn() -> Command,
        home: &Path,
        began: Instant,
    ) -> Result<(), Problem> {
        let help = "the packaged program must do this without anything else";
        let project = home.join("notes");
        output(toolcrib().arg("init").arg(&project), help)?;
        let answer =
            output(toolcrib().args(["run", "-q", "-p"]).arg(&project).arg(QUESTION), help)?;
        let took = began.elapsed();
        if !answer.contains("printer") {
            return Err(Problem::new(format!("{what} answers: {answer}"), help));
        }
        if took > LONGEST {
            return Err(Problem::new(
                format!("{what} took {:.1} s until its answer", took.as_secs_f64()),
                format!("it should take less than {} s", LONGEST.as_secs()),
            ));
        }
        eprintln!("{what}: installed and answered in {:.1} s", took.as_secs_f64());
        fs::remove_dir_all(home).map_err(|error| unwritable(home, &error))
    }
}
