//! The arguments of a chat.

use std::time::Duration;

use clap::Args;

use super::{FreshArgs, ModelArgs, RunSession, ScratchArgs, Situation, run::timeout};

#[derive(Debug, Args)]
pub(crate) struct ChatArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) situation: Situation,
    #[command(flatten)]
    pub(crate) session: RunSession,
    #[command(flatten)]
    pub(crate) scratch: ScratchArgs,
    #[command(flatten)]
    pub(crate) fresh: FreshArgs,
    /// Stop a turn after this time, such as 30s or "1h 30m" [default: the project's, else 10m]
    #[arg(long, value_name = "DURATION", value_parser = timeout)]
    pub(crate) timeout: Option<Duration>,
}
