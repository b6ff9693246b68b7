//! Errors that prevent a command from starting, and their output.

use std::env;

use agent_client_protocol::ErrorCode;
use clap::{
    builder::StyledStr,
    error::{ContextKind, ContextValue},
};
use toolcrib_agent::{EndReason, RunError};
use toolcrib_approvals::ApprovalError;
use toolcrib_config::suggest;
use toolcrib_core::{ApprovalStoreError, SessionStoreError, UnknownEventError};
use toolcrib_engine::TurnError;
use toolcrib_project::{Diagnostic, InitError, InstallError, LoadError};

use crate::{
    args::{Cli, Command},
    exit::{self, Exit},
    output::{self, ProblemJson, RunJson},
};

/// Why a command could not start.
#[derive(Debug)]
pub(crate) struct Problem {
    exit: Exit,
    /// Boxed to keep every command's result small.
    error: Box<RunError>,
    diagnostics: Vec<Diagnostic>,
}

/// The format of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Text for people.
    Text,
    /// As one JSON object.
    Json,
    /// As the JSON object of a run, with the fields of every run.
    RunJson,
}

impl Form {
    pub(crate) fn of(cli: &Cli) -> Self {
        Self::new(cli.global.json, matches!(cli.command, Command::Run(_) | Command::Resume(_)))
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
    /// Its text.
    pub(crate) fn message(&self) -> &str {
        &self.error.message
    }

    /// An error in the command line.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(exit::USAGE, "usage", message)
    }

    /// A name in the command line that is none of the known ones.
    pub(crate) fn unknown<'a>(
        what: &str,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let help = suggest::help(name, &format!("{what}s"), known);
        Self::usage(format!("unknown {what} {}; {help}", suggest::quoted([name])))
    }

    /// An error in the project.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(exit::USAGE, "project_invalid", message)
    }

    /// Something failed.
    pub(crate) fn failed(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(exit::FAILED, code, message)
    }

    /// Cancelled by Ctrl-C.
    pub(crate) fn cancelled() -> Self {
        Self::new(exit::CANCELLED, "cancelled", "cancelled")
    }

    fn new(exit: Exit, code: &'static str, message: impl Into<String>) -> Self {
        let error = Box::new(RunError::new(code, message));
        Self { exit, error, diagnostics: Vec::new() }
    }

    /// Whether it was made by [`cancelled`](Self::cancelled).
    pub(crate) fn is_cancelled(&self) -> bool {
        self.exit == exit::CANCELLED
    }

    /// Prints it, and returns the exit code.
    pub(crate) fn report(&self, form: Form) -> Exit {
        let json = ProblemJson::new(&self.error, &self.diagnostics);
        match form {
            Form::Json => output::json(&json),
            Form::RunJson => {
                let stopped =
                    if self.is_cancelled() { EndReason::Cancelled } else { EndReason::Failed };
                output::json(&RunJson::never_began(stopped, json));
            }
            Form::Text if self.diagnostics.is_empty() => output::complain(&self.error.message),
            Form::Text => output::diagnostics(&self.diagnostics),
        }
        self.exit
    }
}

/// For an editor. The message is the whole text, as editors show no data.
impl From<Problem> for agent_client_protocol::Error {
    fn from(problem: Problem) -> Self {
        let code = match problem.exit {
            exit::USAGE => ErrorCode::INVALID_PARAMS,
            exit::CANCELLED => ErrorCode::REQUEST_CANCELLED,
            _ => ErrorCode::INTERNAL_ERROR,
        };
        let RunError { message, code: name, .. } = *problem.error;
        Self::new(code, message).data(serde_json::json!({ "code": name }))
    }
}

impl From<InitError> for Problem {
    fn from(error: InitError) -> Self {
        match error {
            InitError::AlreadyThere { .. }
            | InitError::Unusable { .. }
            | InitError::NotAFolder { .. }
            | InitError::Foreign { .. } => Self::usage(error.to_string()),
            error => Self::failed("unwritable", error.to_string()),
        }
    }
}

impl From<RunError> for Problem {
    fn from(error: RunError) -> Self {
        Self { exit: exit::FAILED, error: Box::new(error), diagnostics: Vec::new() }
    }
}

impl From<UnknownEventError> for Problem {
    fn from(error: UnknownEventError) -> Self {
        Self::failed("internal", error.to_string())
    }
}

impl From<TurnError> for Problem {
    fn from(error: TurnError) -> Self {
        let message = error.to_string();
        match error {
            TurnError::Cancelled => Self::cancelled(),
            TurnError::UnknownSkill { .. }
            | TurnError::SkillOutOfReach { .. }
            | TurnError::SkillRefused { .. }
            | TurnError::UnknownPersonality { .. }
            | TurnError::InvalidClaim(_)
            | TurnError::ReadSkill(_) => Self::usage(message),
            _ => Self::failed(RunError::DISCOVERY_FAILED, message),
        }
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

impl From<ApprovalError> for Problem {
    fn from(error: ApprovalError) -> Self {
        let message = error.to_string();
        match error {
            ApprovalError::Store(ApprovalStoreError::Store(error)) => error.into(),
            ApprovalError::Store(ApprovalStoreError::Unknown { .. }) => Self::usage(message),
            ApprovalError::Key(_) => Self::failed("key_unavailable", message),
            _ => Self::failed("not_settled", message),
        }
    }
}

impl From<SessionStoreError> for Problem {
    fn from(error: SessionStoreError) -> Self {
        let message = error.to_string();
        match error {
            SessionStoreError::Unknown { .. }
            | SessionStoreError::NameTaken { .. }
            | SessionStoreError::InvalidName { .. } => Self::usage(message),
            SessionStoreError::InUse { .. } => Self::failed("session_in_use", message),
            _ => Self::failed(RunError::SESSION_FAILED, message),
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

/// Reports why the command line could not be parsed, or prints the requested help or version.
pub(crate) fn misread(mut error: clap::Error) -> Exit {
    suggest_command(&mut error);
    if !error.use_stderr() {
        output::help(&error.render().ansi().to_string());
        return exit::FINE;
    }
    let json = env::args_os().skip(1).take_while(|arg| arg != "--").any(|arg| arg == "--json");
    if !json {
        output::misread(&error.render().ansi().to_string());
        return exit::USAGE;
    }
    let text = error.to_string();
    let message = text.strip_prefix("error: ").unwrap_or(&text).trim();
    Problem::usage(message).report(Form::new(true, asks_for_run()))
}

/// Names of commands in other programs, and what does the same here.
const ELSEWHERE: [(&str, &str); 14] = [
    ("add", "mcp add"),
    ("ask", "run"),
    ("config", "check"),
    ("cost", "usage"),
    ("exec", "call"),
    ("history", "sessions"),
    ("login", "mcp login"),
    ("logs", "trace"),
    ("new", "init"),
    ("prompt", "run"),
    ("start", "serve"),
    ("test", "check"),
    ("validate", "check"),
    ("version", "--version"),
];

/// Replaces the suggestion by spelling where another program has a command of that name.
fn suggest_command(error: &mut clap::Error) {
    let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) else {
        return;
    };
    if let Some((_, here)) = ELSEWHERE.iter().find(|(elsewhere, _)| elsewhere == name) {
        error.remove(ContextKind::SuggestedSubcommand);
        let tip = StyledStr::from(format!("write 'toolcrib {here}'"));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
}

/// Whether the command is `run`, as far as the command line can be parsed.
fn asks_for_run() -> bool {
    let read = Cli::line().ignore_errors(true).try_get_matches();
    read.is_ok_and(|matches| matches.subcommand_name() == Some("run"))
}
