//! The arguments of `trust`, and related ones of other commands.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    /// The project's folder [default: the nearest folder upward with a toolcrib.toml]; with --owner
    /// also a folder above projects, or an imported file
    #[arg(value_name = "PATH")]
    pub(crate) path: Option<PathBuf>,
    /// Accept the user who owns PATH: trust their files in and below it like your own
    #[arg(long)]
    pub(crate) owner: bool,
    /// List the trusted projects, files and owners
    #[arg(long, conflicts_with_all = ["path", "owner", "remove"])]
    pub(crate) list: bool,
    /// Revoke the trust in PATH, and the owner that was accepted for it
    #[arg(long, conflicts_with = "owner")]
    pub(crate) remove: bool,
}

/// Options of commands that only inspect.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct OfflineArgs {
    /// Start no program and open no connection; show the declarations
    #[arg(long)]
    pub(crate) offline: bool,
}

/// Whether databases are recreated.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct FreshArgs {
    /// Recreate the project's databases from their seeds first. The old files are kept next to
    /// them. At a terminal it asks for confirmation
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Recreate the databases without asking
    #[arg(long, requires = "fresh")]
    pub(crate) yes: bool,
}
