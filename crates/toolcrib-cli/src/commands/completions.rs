//! `toolcrib completions`: completes commands and options, and the names in a project, which the shell
//! requests from the program itself.

mod line;
mod values;

use std::{env, ffi::OsStr};

use clap::{Arg, Command};
use clap_complete::{
    CompleteEnv, Shell,
    engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate},
    env::Shells,
};

use self::{line::Line, values::Values};
use super::generate::refuse_json;
use crate::{
    args::{Cli, GlobalArgs},
    exit::{self, Exit},
    output,
    problem::Problem,
};

/// The variable by which a shell requests candidates.
const VARIABLE: &str = "TOOLCRIB_COMPLETE";

/// The scripts in place of those of `clap_complete`, whose comments say why.
const SCRIPTS: [(Shell, &str); 2] = [
    (Shell::Bash, include_str!("completions/bash.sh")),
    (Shell::Zsh, include_str!("completions/zsh.sh")),
];

/// Prints the script for a shell.
pub(super) fn completions(global: &GlobalArgs, shell: Shell) -> Result<Exit, Problem> {
    refuse_json(global, "completions")?;
    if let Some((_, script)) = SCRIPTS.iter().find(|(known, _)| *known == shell) {
        output::raw(script.as_bytes());
        return Ok(exit::FINE);
    }
    let internal = |problem: String| Problem::failed("internal", problem);
    let shells = Shells::builtins();
    let shell = shell.to_string();
    let completer =
        shells.completer(&shell).ok_or_else(|| internal(format!("`{shell}` has no script")))?;
    let mut script = Vec::new();
    completer
        .write_registration(VARIABLE, "toolcrib", "toolcrib", "toolcrib", &mut script)
        .map_err(|error| internal(error.to_string()))?;
    output::raw(&script);
    Ok(exit::FINE)
}

/// Answers a shell that requests candidates, and then ends the process; otherwise does nothing.
pub(crate) fn answer() {
    let line = || Cli::line().mut_subcommands(|command| with_candidates(command, ""));
    CompleteEnv::with_factory(line).var(VARIABLE).complete();
}

fn with_candidates(command: Command, above: &str) -> Command {
    let words = format!("{above} {}", command.get_name());
    let words = words.trim_start();
    let command = command.mut_args(|arg| with_values(arg, words));
    command.mut_subcommands(|below| with_candidates(below, words))
}

/// The argument of a command with the candidates for its values.
fn with_values(arg: Arg, command: &str) -> Arg {
    let named = arg.get_value_names().and_then(|names| names.first());
    let name = named.map_or_else(|| arg.get_id().as_str().to_uppercase(), ToString::to_string);
    match values::of(command, &name) {
        None => arg,
        Some(Values::Names(names)) => arg.add(ArgValueCandidates::new(move || candidates(*names))),
        Some(Values::Paths(paths)) => {
            let paths = *paths;
            arg.add(ArgValueCompleter::new(move |current: &OsStr| paths(current)))
        }
    }
}

/// The candidates for the command line. Nothing of its project is started.
fn candidates(names: fn(&Line) -> Option<Vec<CompletionCandidate>>) -> Vec<CompletionCandidate> {
    let mut found = Line::read(env::args_os()).as_ref().and_then(names).unwrap_or_default();
    // Bash inserts a candidate as it is, and a server chooses the names of its tools.
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:@+,=".contains(c);
    found.retain(|one| one.get_value().to_str().is_some_and(|name| name.chars().all(is_plain)));
    found
}
