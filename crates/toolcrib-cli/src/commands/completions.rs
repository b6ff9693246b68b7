//! `toolcrib completions`: completes commands and options, and the names of the project's tools, skills,
//! sessions and runs, which the shell requests from the program itself.

use std::env;

use clap::{Arg, Command, Parser as _};
use clap_complete::{
    CompleteEnv, Shell,
    engine::{ArgValueCandidates, CompletionCandidate},
    env::Shells,
};
use tokio::runtime::Builder;
use toolcrib_core::{CancellationToken, SessionInfo, SessionOwner};
use toolcrib_project::Project;

use super::generate::refuse_json;
use crate::{
    args::{Cli, GlobalArgs},
    exit::{self, Exit},
    host::stored::inspected,
    output,
    problem::Problem,
};

/// The variable by which a shell requests candidates.
const VARIABLE: &str = "TOOLCRIB_COMPLETE";

/// The most sessions among the candidates, the newest first.
const MOST_SESSIONS: usize = 50;

type Names = fn(&Project) -> Vec<CompletionCandidate>;

/// The names of values in help, and the candidates for them.
const VALUES: [(&str, Names); 4] =
    [("TOOL", tools), ("SKILL", skills), ("SESSION", sessions), ("RUN", sessions)];

/// Prints the script for a shell.
pub(super) fn completions(global: &GlobalArgs, shell: Shell) -> Result<Exit, Problem> {
    refuse_json(global, "completions")?;
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
    CompleteEnv::with_factory(|| with_candidates(Cli::line())).var(VARIABLE).complete();
}

fn with_candidates(command: Command) -> Command {
    command.mut_args(with_names).mut_subcommands(with_candidates)
}

fn with_names(arg: Arg) -> Arg {
    let named = arg.get_value_names().and_then(|names| names.first());
    let name = named.map_or_else(|| arg.get_id().as_str().to_uppercase(), ToString::to_string);
    match VALUES.iter().find(|(value, _)| *value == name) {
        Some((_, names)) => arg.add(ArgValueCandidates::new(|| of_project(*names))),
        None => arg,
    }
}

/// The candidates of the project of the command line. Nothing of it is started; a project that cannot be
/// loaded has none.
fn of_project(names: Names) -> Vec<CompletionCandidate> {
    let words: Vec<_> = env::args().collect();
    let is_project = |word: &str| matches!(word, "-p" | "--project");
    let folder = words.iter().skip_while(|word| !is_project(word)).nth(1).map(String::as_str);
    let project = folder.into_iter().flat_map(|folder| ["--project", folder]);
    let line = ["toolcrib", "--quiet"].into_iter().chain(project).chain(["skills"]);
    let Ok(cli) = Cli::try_parse_from(line) else { return Vec::new() };
    let Ok(runtime) = Builder::new_current_thread().enable_all().build() else { return Vec::new() };
    let project = runtime.block_on(inspected(&cli.global, &CancellationToken::new()));
    project.map(|project| names(&project)).unwrap_or_default()
}

fn tools(project: &Project) -> Vec<CompletionCandidate> {
    project.tools().iter().map(|tool| CompletionCandidate::new(tool.name().as_str())).collect()
}

fn skills(project: &Project) -> Vec<CompletionCandidate> {
    let skills = project.skills().iter();
    skills.map(|skill| CompletionCandidate::new(skill.id.as_str())).collect()
}

fn sessions(project: &Project) -> Vec<CompletionCandidate> {
    let Ok(Some(store)) = project.sessions().open_existing() else { return Vec::new() };
    let owner = SessionOwner { tenant: None, principal: None };
    let listed = store.list(&owner, MOST_SESSIONS).unwrap_or_default();
    let candidate = |session: SessionInfo| {
        CompletionCandidate::new(&*session.id).help(Some(output::safe(&session.title).into()))
    };
    listed.into_iter().map(candidate).collect()
}
