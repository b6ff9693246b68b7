//! What `trust` takes, and what other commands take of the same matter.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    /// The project's folder [default: the nearest with a toolcrib.toml, upward from here]; with
    /// --owner also a folder above projects, or an imported file
    #[arg(value_name = "PATH")]
    pub(crate) path: Option<PathBuf>,
    /// Accept the user who owns PATH: their files in it are as good as your own, also below it
    #[arg(long)]
    pub(crate) owner: bool,
    /// List what is trusted
    #[arg(long, conflicts_with_all = ["path", "owner", "remove"])]
    pub(crate) list: bool,
    /// Take back what was trusted in PATH, and the owner that was accepted for it
    #[arg(long, conflicts_with = "owner")]
    pub(crate) remove: bool,
}

/// What commands take that only look.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct Look {
    /// Start and dial nothing: show what is declared
    #[arg(long)]
    pub(crate) offline: bool,
}

/// Whether databases are replaced.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct Fresh {
    /// Make the project's databases anew from their seeds first. The old files are kept beside them,
    /// and at a terminal it asks before
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Replace the databases without asking
    #[arg(long, requires = "fresh")]
    pub(crate) yes: bool,
}
