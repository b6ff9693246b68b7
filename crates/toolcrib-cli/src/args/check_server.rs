//! The arguments of `check-server`.

use std::time::Duration;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct CheckServerArgs {
    /// The server's URL, or its program with its arguments
    #[arg(value_name = "URL|PROGRAM", required = true, trailing_var_arg = true)]
    #[arg(allow_hyphen_values = true)]
    pub(crate) words: Vec<String>,
    /// Send this header, such as `Authorization=Bearer ${TOKEN}`, or set this variable of the
    /// program. May be repeated
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    /// Fail on warnings too
    #[arg(long)]
    pub(crate) strict: bool,
    /// Disable a lint rule. May be repeated
    #[arg(long, value_name = "RULE")]
    pub(crate) allow: Vec<String>,
    /// The limit of tokens of all definitions together [default: 10000]
    #[arg(long, value_name = "TOKENS")]
    pub(crate) max_tokens: Option<usize>,
    /// The limit for connecting, and for each listing
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = super::run::timeout)]
    pub(crate) timeout: Duration,
}
