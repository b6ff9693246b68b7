//! The arguments of `lock`.

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum LockCommand {
    /// Show each definition that differs from its pin, word by word. The exit code is 1 if there is
    /// one
    #[command(after_help = "\
Examples:
  toolcrib lock diff -p my-agent
  toolcrib lock diff git git_log
  toolcrib lock diff --json")]
    Diff(LockScope),
    /// Accept definitions as they are listed now: shows them, and asks at a terminal
    #[command(after_help = "\
Examples:
  toolcrib lock accept git git_log -p my-agent
  toolcrib lock accept git
  toolcrib lock accept --yes

A running `serve` offers an accepted definition within two seconds.")]
    Accept(AcceptArgs),
}

#[derive(Debug, Args)]
pub(crate) struct AcceptArgs {
    #[command(flatten)]
    pub(crate) scope: LockScope,
    /// Do not ask at the terminal after the definitions are shown
    #[arg(long)]
    pub(crate) yes: bool,
}

/// The definitions that a command is about.
#[derive(Debug, Args)]
pub(crate) struct LockScope {
    /// Only those of this server or hub
    pub(crate) server: Option<String>,
    /// Only this tool or prompt, by its name on the server
    #[arg(requires = "server")]
    pub(crate) tool: Option<String>,
}
