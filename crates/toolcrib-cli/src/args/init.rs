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
}

/// The kind of agent of a new project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum InitKind {
    /// A web browser, over the MCP server of Playwright.
    Browser,
}
