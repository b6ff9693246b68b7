//! The arguments of `init`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// The folder to create
    pub(crate) dir: PathBuf,
    /// Begin with a SQLite database, an OpenAPI document (also by its URL) or an `mcpServers` file
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,
    /// Begin with an agent for a kind of work: browser
    #[arg(long, value_name = "KIND", conflicts_with = "from", hide_possible_values = true)]
    pub(crate) with: Option<InitKind>,
    #[command(flatten)]
    _hidden: NoProject,
}

/// Hides the options of a project in the help of a command that refuses them. Their values are in
/// [`GlobalArgs`](super::GlobalArgs).
#[derive(Debug, Args)]
struct NoProject {
    #[arg(short, long, value_name = "DIR", hide = true)]
    project: Option<PathBuf>,
    #[arg(long, value_name = "DIR", hide = true)]
    state: Option<PathBuf>,
    #[arg(long = "import", value_name = "FILE", hide = true)]
    imports: Vec<PathBuf>,
    #[arg(long, hide = true)]
    no_project: bool,
    #[arg(long, hide = true)]
    allow_stray_children: bool,
    #[arg(long = "trust", value_name = "NAME", hide = true)]
    trusted: Vec<String>,
    #[arg(long, value_name = "NAME=RULE", hide = true)]
    lint_allow: Vec<String>,
    #[arg(long, hide = true)]
    locked: bool,
}

/// The kind of agent of a new project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum InitKind {
    /// A web browser, over the MCP server of Playwright.
    Browser,
}
