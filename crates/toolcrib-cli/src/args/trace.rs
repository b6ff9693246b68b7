//! The arguments of commands about stored runs.

use std::path::PathBuf;

use clap::Args;

use super::Whom;
use crate::trace::RunName;

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
    #[command(flatten)]
    pub(crate) whom: Whom,
}
