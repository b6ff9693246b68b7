//! The arguments of `mcp add`.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct McpAddArgs {
    /// The server's name in the project
    pub(crate) name: String,
    /// The server's URL, or its program with its arguments
    #[arg(value_name = "URL|PROGRAM", required = true, trailing_var_arg = true)]
    #[arg(allow_hyphen_values = true)]
    pub(crate) words: Vec<String>,
    /// Set this variable of the program, or send this header. May be repeated
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    /// Replace a server of this name
    #[arg(long)]
    pub(crate) replace: bool,
}
