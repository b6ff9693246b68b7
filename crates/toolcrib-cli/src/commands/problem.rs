//! Why a command could not even begin its work, and how that is told.

use std::env;

use clap::CommandFactory as _;
use toolcrib_agent::{RunError, Stopped};
use toolcrib_core::UnknownEventError;
use toolcrib_project::{Diagnostic, InstallError, LoadError};

use crate::{
    args::{Cli, Command},
    exit::{self, Exit},
    output::{self, ProblemJson, RunJson},
};

/// Why a command could not even begin its work.
#[derive(Debug)]
pub(crate) struct Problem {
    exit: Exit,
    /// Boxed, because every command's result has room for it.
    error: Box<RunError>,
    diagnostics: Vec<Diagnostic>,
}

/// How a problem is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// To people.
    Text,
    /// As one JSON object.
    Json,
    /// As the JSON object of a run, so that whoever reads runs finds every field.
    RunJson,
}

impl Form {
    pub(crate) fn of(cli: &Cli) -> Self {
        Self::new(cli.global.json, matches!(cli.command, Command::Run(_)))
    }

    fn new(json: bool, of_run: bool) -> Self {
        match (json, of_run) {
            (false, _) => Self::Text,
            (true, false) => Self::Json,
            (true, true) => Self::RunJson,
        }
    }
}

impl Problem {
    /// The command line is wrong.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(exit::USAGE, "usage", message)
    }

    /// The project is wrong.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(exit::USAGE, "project_invalid", message)
    }

    /// Something failed.
    pub(crate) fn failed(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(exit::FAILED, code, message)
    }

    /// Somebody pressed Ctrl-C.
    pub(crate) fn cancelled() -> Self {
        Self::new(exit::CANCELLED, "cancelled", "cancelled")
    }

    fn new(exit: Exit, code: &'static str, message: impl Into<String>) -> Self {
        let error = Box::new(RunError::new(code, message));
        Self { exit, error, diagnostics: Vec::new() }
    }

    /// Whether it is [that](Self::cancelled).
    pub(crate) fn is_cancelled(&self) -> bool {
        self.exit == exit::CANCELLED
    }

    /// Prints it, and gives the exit code.
    pub(crate) fn report(&self, form: Form) -> Exit {
        let json = ProblemJson::new(&self.error, &self.diagnostics);
        match form {
            Form::Json => output::json(&json),
            Form::RunJson => {
                let stopped =
                    if self.is_cancelled() { Stopped::Cancelled } else { Stopped::Failed };
                output::json(&RunJson::never_began(stopped, json));
            }
            Form::Text if self.diagnostics.is_empty() => output::complain(&self.error.message),
            Form::Text => output::diagnostics(&self.diagnostics),
        }
        self.exit
    }
}

impl From<UnknownEventError> for Problem {
    fn from(error: UnknownEventError) -> Self {
        Self::failed("internal", error.to_string())
    }
}

impl From<LoadError> for Problem {
    fn from(error: LoadError) -> Self {
        let message = error.to_string();
        match error {
            LoadError::Diagnostics(diagnostics) => Self {
                diagnostics: diagnostics.iter().cloned().collect(),
                ..Self::invalid(message)
            },
            LoadError::Cancelled => Self::cancelled(),
            LoadError::Database(_) => Self::failed("database_unavailable", message),
            LoadError::Import { .. } => Self::usage(format!("`--import`: {message}")),
            LoadError::NotTrusted { .. } => Self::new(exit::USAGE, "not_trusted", message),
            LoadError::NotReplaced => Self::new(exit::USAGE, "not_replaced", message),
            LoadError::NoState => Self::usage(format!("{message} with `--state DIR`")),
            LoadError::Model { .. } => Self::usage(format!("`--model`: {message}")),
            LoadError::State { .. } => Self::failed("state_unavailable", message),
            _ => Self::invalid(message),
        }
    }
}

impl From<InstallError> for Problem {
    fn from(error: InstallError) -> Self {
        let message = error.to_string();
        match error {
            InstallError::Broken(diagnostics) => {
                Self { diagnostics: diagnostics.iter().cloned().collect(), ..Self::usage(message) }
            }
            InstallError::Write { .. } | InstallError::Displaced { .. } => {
                Self::failed("install_failed", message)
            }
            _ => Self::usage(message),
        }
    }
}

/// Tells why the command line could not be read, or prints the help or version that it asks for.
pub(crate) fn misread(error: &clap::Error) -> Exit {
    if !error.use_stderr() {
        output::delivered(error.print());
        return exit::FINE;
    }
    let json = env::args_os().skip(1).take_while(|arg| arg != "--").any(|arg| arg == "--json");
    if !json {
        // It says where it went wrong in colours of its own; there is nobody else to tell.
        let _ = error.print();
        return exit::USAGE;
    }
    let text = error.to_string();
    let message = text.strip_prefix("error: ").unwrap_or(&text).trim();
    Problem::usage(message).report(Form::new(true, asks_for_run()))
}

/// Whether the command is `run`, as far as the command line can be read.
fn asks_for_run() -> bool {
    let read = Cli::command().ignore_errors(true).try_get_matches();
    read.is_ok_and(|matches| matches.subcommand_name() == Some("run"))
}
