//! The arguments of approvals.

use std::time::Duration;

use clap::{Args, Subcommand};
use toolcrib_core::is_session_id;

/// The id of a call that waits for approval.
fn approval_id(text: &str) -> Result<String, String> {
    match is_session_id(text) {
        true => Ok(text.to_owned()),
        false => Err("use an id of `toolcrib approvals`: 12 hexadecimal digits".to_owned()),
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum ApprovalsCommand {
    /// List the calls that wait, and the grants; the same as `approvals` alone
    List(ApprovalsArgs),
    /// Show a call in full: exactly what would run
    Show {
        /// The id
        #[arg(value_name = "ID", value_parser = approval_id)]
        id: String,
    },
    /// Revoke a grant
    Revoke {
        /// The id of the grant
        #[arg(value_name = "ID", value_parser = approval_id)]
        id: String,
    },
}

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct ApprovalsArgs {
    /// List also the calls of the last 30 days that are over
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ApproveArgs {
    /// The id of the call
    #[arg(value_name = "ID", value_parser = approval_id)]
    pub(crate) id: String,
    /// Approve further calls of this tool by the same principal too, for this time, such as 1h or
    /// "2days 12h". Without --where, only calls with exactly the same arguments
    #[arg(long = "for", value_name = "DURATION", value_parser = grant_time)]
    pub(crate) time: Option<Duration>,
    /// With --for, the condition on an argument, which may then differ from this call: NAME=VALUE,
    /// NAME<=NUMBER, NAME<NUMBER, NAME>=NUMBER, NAME>NUMBER, or NAME^=START for a text. NAME may be a
    /// JSON pointer. May be repeated; all must be met
    #[arg(long = "where", value_name = "CONDITION", requires = "time")]
    pub(crate) conditions: Vec<String>,
    /// With --for, permit any value of the arguments without a condition
    #[arg(long, requires = "time")]
    pub(crate) any_arguments: bool,
    /// Do not ask at the terminal after the call is shown
    #[arg(long)]
    pub(crate) yes: bool,
}

fn grant_time(text: &str) -> Result<Duration, String> {
    const YEAR: Duration = Duration::from_hours(365 * 24);
    match humantime::parse_duration(text) {
        Ok(Duration::ZERO) => Err("the grant would end at once".to_owned()),
        Ok(duration) if duration > YEAR => Err("a grant is valid for at most a year".to_owned()),
        Ok(duration) => Ok(duration),
        Err(error) => Err(error.to_string()),
    }
}

#[derive(Debug, Args)]
pub(crate) struct DenyArgs {
    /// The id of the call
    #[arg(value_name = "ID", value_parser = approval_id)]
    pub(crate) id: String,
    /// The reason, which the model reads
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}
