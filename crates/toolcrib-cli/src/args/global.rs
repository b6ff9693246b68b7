//! The options of every command.

use std::path::PathBuf;

use clap::{Arg, Args, Command, builder::Resettable};

/// The heading of the options of every command.
const GLOBAL: &str = "Global options";

/// Options of every command.
#[derive(Debug, Clone, Args)]
pub(crate) struct GlobalArgs {
    /// The project's folder [default: the nearest folder upward with a toolcrib.toml]
    #[arg(short, long, value_name = "DIR", global = true, help_heading = GLOBAL)]
    pub(crate) project: Option<PathBuf>,
    /// The folder for the project's state [default: .toolcrib in the project]
    #[arg(long, value_name = "DIR", global = true, help_heading = GLOBAL)]
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
const IMPORTS: &[&str] =
    &["imports", "no_project", "allow_stray_children", "trusted", "lint_allow", "locked"];
const JSON: &[&str] = &["json"];
const VERBOSE: &[&str] = &["verbose"];

/// The options that a command refuses or does not read.
const UNUSED: &[(&str, &[&[&str]])] = &[
    ("acp", &[JSON]),
    ("chat", &[JSON]),
    ("check-server", &[PROJECT, IMPORTS, VERBOSE]),
    ("completions", &[PROJECT, IMPORTS, VERBOSE, JSON]),
    ("discover", &[PROJECT, IMPORTS, VERBOSE]),
    ("doctor", &[IMPORTS, VERBOSE]),
    ("init", &[PROJECT, IMPORTS, VERBOSE]),
    ("install", &[&["store"]]),
    ("man", &[PROJECT, IMPORTS, VERBOSE, JSON]),
    ("mcp add", &[IMPORTS]),
    ("mcp get", &[IMPORTS]),
    ("mcp logs", &[JSON]),
    ("mcp remove", &[IMPORTS]),
    ("models add", &[PROJECT, IMPORTS, VERBOSE]),
    ("models remove", &[PROJECT, IMPORTS, VERBOSE]),
    ("schema", &[PROJECT, IMPORTS, VERBOSE, JSON]),
    ("secret", &[PROJECT, IMPORTS, VERBOSE]),
    ("serve", &[JSON]),
    ("trust", &[&["state", "store"], IMPORTS, VERBOSE]),
];

/// The command line, in which each command hides the options that it does not use. They are still read,
/// so that a command can say why it refuses one.
pub(super) fn hide_unused(line: Command) -> Command {
    let global: Vec<_> = line.get_arguments().filter(|arg| arg.is_global_set()).cloned().collect();
    line.mut_subcommands(|command| hide(command, "", &global))
}

fn hide(command: Command, above: &str, global: &[Arg]) -> Command {
    let words = format!("{above} {}", command.get_name());
    let words = words.trim_start();
    let is_of = |name: &str| {
        words.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    let unused = UNUSED.iter().filter(|(name, _)| is_of(name)).flat_map(|(_, options)| *options);
    let unused: Vec<_> = unused.copied().flatten().collect();
    let hidden = global.iter().filter(|arg| unused.iter().any(|name| arg.get_id() == **name));
    // A refusal names the option itself, not one that it would need.
    let hidden = hidden.map(|arg| arg.clone().hide(true).requires(Resettable::Reset));
    let hidden: Vec<_> = hidden.collect();
    command.args(hidden).mut_subcommands(|command| hide(command, words, global))
}
