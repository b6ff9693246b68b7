//! The arguments of `install` and `discover`.

use clap::Args;

use super::IdentityArgs;
use crate::clients::{Client, Scope};

#[derive(Debug, Args)]
pub(crate) struct InstallArgs {
    /// The MCP client
    #[arg(long, value_enum)]
    pub(crate) client: Client,
    /// The configuration that is changed
    #[arg(long, value_enum, default_value_t)]
    pub(crate) scope: Scope,
    /// The name of the entry
    #[arg(long, default_value = "toolcrib")]
    pub(crate) name: String,
    /// Replace an entry of this name that `install` did not write
    #[arg(long)]
    pub(crate) replace: bool,
    /// Undo it: restore the file, or remove only the entry if the file has changed since
    #[arg(long, conflicts_with_all = ["replace", "principal", "tenant", "personality"])]
    pub(crate) uninstall: bool,
    /// Show the change, and do not make it
    #[arg(long, conflicts_with = "yes")]
    pub(crate) dry_run: bool,
    /// Change the target of a symlink without a question
    #[arg(long)]
    pub(crate) follow_link: bool,
    /// Make the change without a question
    #[arg(short, long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) whom: IdentityArgs,
    /// Serve with this personality of the project [default: the one named default]
    #[arg(long, value_name = "PERSONALITY")]
    pub(crate) personality: Option<String>,
}
