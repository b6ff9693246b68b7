//! The options of every command.

use std::path::PathBuf;

use clap::{
    Arg, ArgMatches, Args, Command, Error, ValueHint, builder::Resettable, error::ErrorKind,
    parser::ValueSource,
};

/// The heading of the options of every command.
const GLOBAL: &str = "Global options";

/// Options of every command.
#[derive(Debug, Clone, Args)]
pub(crate) struct GlobalArgs {
    /// The project's folder [default: the nearest folder upward with a toolcrib.toml]
    #[arg(short, long, value_name = "DIR", global = true, help_heading = GLOBAL)]
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) project: Option<PathBuf>,
    /// The folder for the project's state [default: .toolcrib in the project]
    #[arg(long, value_name = "DIR", global = true, help_heading = GLOBAL)]
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) state: Option<PathBuf>,
    /// The PostgreSQL database that stores sessions, instead of the project's own place. A password in
    /// it is visible to others on this machine: `[sessions] store` takes a secret
    #[arg(long, value_name = "URL", global = true, help_heading = GLOBAL)]
    pub(crate) store: Option<String>,
    /// Import the MCP servers of this `mcpServers` file. With --project they are added to the
    /// project's servers; without it no project is needed. May be repeated
    #[arg(long = "import", value_name = "FILE", global = true, help_heading = GLOBAL)]
    #[arg(hide_short_help = true)]
    pub(crate) imports: Vec<PathBuf>,
    /// Ignore the project in the current folder (and its rules); use only the imported servers
    #[arg(long, global = true, help_heading = GLOBAL)]
    #[arg(requires = "imports", conflicts_with = "project", hide_short_help = true)]
    pub(crate) no_project: bool,
    /// Start imported servers even where their child processes cannot be guaranteed to end with
    /// them
    #[arg(long, global = true, help_heading = GLOBAL, requires = "imports", hide_short_help = true)]
    pub(crate) allow_stray_children: bool,
    /// Believe the hints of this imported server about the effects of its tools. May be repeated
    #[arg(long = "trust", value_name = "NAME", global = true, help_heading = GLOBAL)]
    #[arg(requires = "imports", hide_short_help = true)]
    pub(crate) trusted: Vec<String>,
    /// Offer tools of this imported server that this lint rule withholds (see `toolcrib lint`). May be
    /// repeated
    #[arg(long, value_name = "NAME=RULE", value_parser = pair, global = true)]
    #[arg(requires = "imports", help_heading = GLOBAL, hide_short_help = true)]
    pub(crate) lint_allow: Vec<(String, String)>,
    /// For CI: refuse each server with a definition that differs from toolcrib.lock
    #[arg(long, global = true, help_heading = GLOBAL, hide_short_help = true)]
    pub(crate) locked: bool,
    /// Print one JSON object instead of text
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub(crate) json: bool,
    /// Print only the result
    #[arg(short, long, global = true, help_heading = GLOBAL, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Print results and reasons in full
    #[arg(short, long, global = true, help_heading = GLOBAL)]
    pub(crate) verbose: bool,
    /// The folder from which a project is searched upward, instead of the current one. Not an
    /// option: an editor names it.
    #[arg(skip)]
    pub(crate) search_from: Option<PathBuf>,
}

/// `NAME=VALUE`.
fn pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(name, value)| !name.is_empty() && !value.is_empty());
    let (name, value) = pair.ok_or("write NAME=RULE, such as files=hidden-markup")?;
    Ok((name.to_owned(), value.to_owned()))
}

impl GlobalArgs {
    /// Whether there is a project in addition to imported servers.
    pub(crate) fn has_project(&self) -> bool {
        self.project.is_some() || self.imports.is_empty()
    }
}

const PROJECT: &[&str] = &["project", "state", "store"];
const STORE: &[&str] = &["store"];
const IMPORTS: &[&str] = &["imports", "no_project"];
/// About imported servers that are started or listed.
const SERVERS: &[&str] = &["allow_stray_children", "trusted", "lint_allow"];
const LOCKED: &[&str] = &["locked"];
const JSON: &[&str] = &["json"];
const QUIET: &[&str] = &["quiet"];
const VERBOSE: &[&str] = &["verbose"];

/// The options of a command, in groups.
type Options = &'static [&'static [&'static str]];

/// The reason of commands that only read or write what is stored.
const STORED: &str = "it lists no definitions of servers";
/// The reason of commands that print a text for another program.
const A_TEXT: &str = "its output is one text, the same for each project";

/// The options that have no effect on a command, and why. They are neither listed nor accepted.
const UNUSED: &[(&str, Options, &str)] = &[
    ("approvals", &[LOCKED], STORED),
    ("approve", &[LOCKED], STORED),
    ("cancel", &[LOCKED], STORED),
    (
        "check-server",
        &[PROJECT, IMPORTS, SERVERS, LOCKED, VERBOSE],
        "it checks one server by its URL or program",
    ),
    ("completions", &[PROJECT, IMPORTS, SERVERS, LOCKED, QUIET, VERBOSE], A_TEXT),
    ("deny", &[LOCKED], STORED),
    (
        "discover",
        &[PROJECT, IMPORTS, SERVERS, LOCKED, VERBOSE],
        "it reads the files of MCP clients",
    ),
    ("doctor", &[IMPORTS, SERVERS, LOCKED, VERBOSE], "it starts no server"),
    ("export", &[LOCKED], STORED),
    ("follow", &[LOCKED], STORED),
    (
        "init",
        &[PROJECT, IMPORTS, SERVERS, LOCKED, VERBOSE],
        "it creates the folder that you name, as in `toolcrib init DIR`",
    ),
    (
        "install",
        &[STORE],
        "its URL may contain a password, which is not written to another file; write `[sessions]` with \
         store = \"secret:NAME\" in the project file",
    ),
    ("lock", &[LOCKED], "it shows or accepts what differs from toolcrib.lock"),
    ("man", &[PROJECT, IMPORTS, SERVERS, LOCKED, QUIET, VERBOSE], A_TEXT),
    ("mcp add", &[IMPORTS, SERVERS, LOCKED], "it changes the project's file"),
    (
        "mcp get",
        &[STORE, IMPORTS, SERVERS, LOCKED, QUIET, VERBOSE],
        "it shows a part of the project's file",
    ),
    ("mcp login", &[LOCKED], STORED),
    ("mcp logout", &[LOCKED], STORED),
    ("mcp logs", &[LOCKED], STORED),
    ("mcp remove", &[IMPORTS, SERVERS, LOCKED], "it changes the project's file"),
    ("mcp status", &[LOCKED], STORED),
    (
        "models add",
        &[PROJECT, IMPORTS, SERVERS, LOCKED, VERBOSE],
        "it changes the models of your user, not of a project",
    ),
    (
        "models remove",
        &[PROJECT, IMPORTS, SERVERS, LOCKED, VERBOSE],
        "it changes the models of your user, not of a project",
    ),
    ("models", &[STORE, IMPORTS, SERVERS, LOCKED], "it uses no server and no session"),
    ("runs", &[LOCKED], STORED),
    ("schema", &[PROJECT, IMPORTS, SERVERS, LOCKED, QUIET, VERBOSE], A_TEXT),
    ("secret", &[PROJECT, IMPORTS, SERVERS, LOCKED, VERBOSE], "it is about the vault of this user"),
    ("sessions", &[LOCKED], STORED),
    ("show", &[LOCKED], STORED),
    ("skills", &[LOCKED], STORED),
    ("submit", &[LOCKED], STORED),
    ("trace", &[LOCKED], STORED),
    (
        "trust",
        &[&["state"], STORE, IMPORTS, SERVERS, LOCKED, VERBOSE],
        "it is about one folder; an imported file needs no trust, and `trust --owner FILE` accepts one of \
         another user",
    ),
    ("usage", &[LOCKED], STORED),
];

/// The options that a command does not list. They are read: commands that are suggested to users repeat
/// the options of a project, and a command that prints no JSON says what does.
const UNLISTED: &[(&str, Options)] = &[
    ("acp", &[JSON]),
    ("approvals", &[SERVERS]),
    ("approve", &[SERVERS]),
    ("cancel", &[SERVERS]),
    ("chat", &[JSON]),
    ("completions", &[JSON]),
    ("deny", &[SERVERS]),
    ("export", &[SERVERS]),
    ("follow", &[SERVERS]),
    ("lint", &[STORE]),
    ("man", &[JSON]),
    ("mcp add", &[STORE]),
    ("mcp list", &[STORE]),
    ("mcp login", &[STORE, SERVERS]),
    ("mcp logout", &[STORE, SERVERS]),
    ("mcp logs", &[STORE, SERVERS, JSON]),
    ("mcp remove", &[STORE]),
    ("mcp status", &[STORE, SERVERS]),
    ("mcp test", &[STORE]),
    ("runs", &[SERVERS]),
    ("serve", &[JSON]),
    ("sessions", &[SERVERS]),
    ("show", &[SERVERS]),
    ("skills", &[STORE, SERVERS]),
    ("submit", &[SERVERS]),
    ("tools", &[STORE]),
    ("trace", &[SERVERS]),
    ("usage", &[SERVERS]),
];

/// Whether a row is about a command, which is written with those above it, such as `mcp add`.
fn is_about(row: &str, command: &str) -> bool {
    command.strip_prefix(row).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// The command line, in which each command lists only the options that it uses.
pub(super) fn hide_unused(line: Command) -> Command {
    let global: Vec<_> = line.get_arguments().filter(|arg| arg.is_global_set()).cloned().collect();
    line.mut_subcommands(|command| hide(command, "", &global))
}

fn hide(command: Command, above: &str, global: &[Arg]) -> Command {
    let words = format!("{above} {}", command.get_name());
    let words = words.trim_start();
    let unused = UNUSED.iter().map(|(row, options, _)| (row, options));
    let unlisted = UNLISTED.iter().map(|(row, options)| (row, options));
    let of_command = unused.chain(unlisted).filter(|(row, _)| is_about(row, words));
    let names: Vec<_> = of_command.flat_map(|(_, options)| *options).copied().flatten().collect();
    let hidden = global.iter().filter(|arg| names.iter().any(|name| arg.get_id() == **name));
    // A refusal names the option itself, not one that it would need.
    let hidden = hidden.map(|arg| arg.clone().hide(true).requires(Resettable::Reset));
    let hidden: Vec<_> = hidden.collect();
    command.args(hidden).mut_subcommands(|command| hide(command, words, global))
}

/// Refuses an option that has no effect on the command.
pub(super) fn refuse_unused(line: &Command, matches: &ArgMatches) -> Result<(), Error> {
    let (mut words, mut of_command) = (String::new(), matches);
    while let Some((name, below)) = of_command.subcommand() {
        words = format!("{words} {name}").trim_start().to_owned();
        of_command = below;
    }
    for (row, options, reason) in UNUSED.iter().filter(|(row, ..)| is_about(row, &words)) {
        let is_given =
            |name: &&&str| of_command.value_source(name) == Some(ValueSource::CommandLine);
        let Some(given) = options.iter().copied().flatten().find(is_given) else { continue };
        let arg = line.get_arguments().find(|arg| arg.get_id() == *given);
        let flag = arg.and_then(Arg::get_long).unwrap_or(given);
        let message = format!("`{row}` does not use `--{flag}`: {reason}; leave out `--{flag}`\n");
        return Err(Error::raw(ErrorKind::ArgumentConflict, message));
    }
    Ok(())
}
