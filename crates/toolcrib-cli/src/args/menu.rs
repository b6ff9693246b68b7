//! The arguments of the commands that look at the tools that a model is offered.

use clap::Args;

use super::{OfflineArgs, Situation};

#[derive(Debug, Args)]
pub(crate) struct MenuArgs {
    #[command(flatten)]
    pub(crate) situation: Situation,
    /// Say for each tool why it is offered or withheld, and for withheld ones what would have to
    /// change
    #[arg(long)]
    pub(crate) why: bool,
    #[command(flatten)]
    pub(crate) look: OfflineArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The tool's name
    pub(crate) tool: String,
    #[command(flatten)]
    pub(crate) situation: Situation,
    #[command(flatten)]
    pub(crate) look: OfflineArgs,
}

#[derive(Debug, Args)]
pub(crate) struct FindArgs {
    /// The need, in words
    pub(crate) need: String,
    /// A tool that should be found
    #[arg(long, value_name = "TOOL")]
    pub(crate) expect: Option<String>,
    #[command(flatten)]
    pub(crate) situation: Situation,
    #[command(flatten)]
    pub(crate) look: OfflineArgs,
}
