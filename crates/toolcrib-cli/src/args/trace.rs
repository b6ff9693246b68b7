//! The arguments of commands about stored runs.

use std::path::PathBuf;

use clap::Args;

use super::{Claim, IdentityArgs, sessions::ListArgs};
use crate::trace::RunName;

#[derive(Debug, Args)]
pub(crate) struct RunsArgs {
    /// List the calls of a gateway, which `serve --store-calls` has stored
    #[arg(long)]
    pub(crate) gateway: bool,
    #[command(flatten)]
    pub(crate) list: ListArgs,
}

#[derive(Debug, Args)]
pub(crate) struct TraceArgs {
    /// The run, as SESSION/TURN of `toolcrib runs`; SESSION alone is its last turn [default: the
    /// last run]
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<RunName>,
    /// Write one page with everything to this new file, which only you can read. It contains no
    /// script and loads nothing
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Look at the calls of a gateway, which `serve --store-calls` has stored
    #[arg(long)]
    pub(crate) gateway: bool,
    #[command(flatten)]
    pub(crate) whom: IdentityArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The run, as SESSION/TURN of `toolcrib runs`; SESSION alone is its last turn [default: the
    /// last run]
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<RunName>,
    /// The journal answers for the model; read-only tools run
    #[arg(long)]
    pub(crate) model: bool,
    /// The journal answers for the tools; the model runs
    #[arg(long)]
    pub(crate) tools: bool,
    /// The model of --tools, as `--model` of `run` [default: the project's, else the first
    /// configured model]
    #[arg(long = "with", value_name = "MODEL", requires = "tools", conflicts_with = "model")]
    pub(crate) with: Option<String>,
    #[command(flatten)]
    pub(crate) whom: IdentityArgs,
    /// A token claim (a string) of the run, which is not stored. May be repeated; repeating a name
    /// makes a list [default: no claims]
    #[arg(long = "claim", value_name = "NAME=VALUE")]
    pub(crate) claims: Vec<Claim>,
}
