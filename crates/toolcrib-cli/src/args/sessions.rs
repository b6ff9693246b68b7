//! The arguments of sessions.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use toolcrib_core::{is_session_id, is_session_name};

use super::IdentityArgs;

/// The session of a run.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RunSession {
    /// Continue the last session of this project and principal
    #[arg(short = 'c', long = "continue", conflicts_with = "session")]
    pub(crate) last: bool,
    /// Store nothing: the run cannot be continued [default: the project's `[sessions]`, else every
    /// run is a session]
    #[arg(long, conflicts_with_all = ["last", "session"])]
    pub(crate) no_session: bool,
}

/// The id or name of a session.
pub(crate) fn session_word(text: &str) -> Result<String, String> {
    if is_session_id(text) || is_session_name(text) {
        return Ok(text.to_owned());
    }
    Err("use an id of `toolcrib sessions`, or a name of letters, digits, `-`, `_` and `.` that \
         begins with a letter or digit"
        .to_owned())
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List the sessions, the last used first; the same as `sessions` alone
    List(ListArgs),
    /// Delete sessions, with their artifacts
    Delete {
        /// The ids or names
        #[arg(required = true, value_name = "SESSION", value_parser = session_word)]
        sessions: Vec<String>,
        #[command(flatten)]
        whom: IdentityArgs,
    },
    /// Show what restricts a caller of `serve` beyond its sessions, or lift it
    Restrictions {
        /// Lift it: the caller has read nothing untrusted since, as far as you know
        #[arg(long)]
        lift: bool,
        #[command(flatten)]
        whom: IdentityArgs,
    },
}

#[derive(Debug, Clone, Args)]
pub(crate) struct ListArgs {
    /// List at most this number
    #[arg(long, value_name = "NUMBER", default_value_t = 20)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) whom: IdentityArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The id or name
    #[arg(value_name = "SESSION", value_parser = session_word)]
    pub(crate) session: String,
    #[command(flatten)]
    pub(crate) whom: IdentityArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) show: ShowArgs,
    /// The format
    #[arg(long, value_name = "FORMAT", default_value = "md")]
    pub(crate) format: ExportFormat,
    /// Write to this new file, which only you can read [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// One JSON object, the same as of `show --json`
    Json,
    /// Markdown
    Md,
}
