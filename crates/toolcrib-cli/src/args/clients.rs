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
    /// Add the gateway at this URL, which runs already, instead of one that the client starts
    #[arg(long, value_name = "URL", conflicts_with_all = ["principal", "tenant", "personality", "uninstall"])]
    pub(crate) url: Option<String>,
    /// The environment variable with the token of --url, which the client reads [default: none: the
    /// client logs in]
    #[arg(long, value_name = "NAME", requires = "url", value_parser = variable)]
    pub(crate) token_variable: Option<String>,
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

/// The name of an environment variable.
fn variable(name: &str) -> Result<String, &'static str> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match !name.is_empty() && name.chars().all(is_name) {
        true => Ok(name.to_owned()),
        false => Err("write the name of a variable, of letters, digits and `_`"),
    }
}
