//! The arguments of `acp`.

use std::time::Duration;

use clap::Args;

use super::{ModelArgs, Situation, run::timeout};

#[derive(Debug, Args)]
// The editor begins and loads the sessions.
#[command(mut_arg("session", |arg| arg.hide(true)))]
pub(crate) struct AcpArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) situation: Situation,
    /// Stop a turn after this time, such as 30s or "1h 30m" [default: the project's, else 10m]
    #[arg(long, value_name = "DURATION", value_parser = timeout)]
    pub(crate) timeout: Option<Duration>,
}
