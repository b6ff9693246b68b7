//! The arguments of `lint` and `tools`.

use std::path::PathBuf;

use clap::Args;

use super::{IdentityArgs, OfflineArgs};

#[derive(Debug, Args)]
pub(crate) struct LintArgs {
    /// A catalog as JSON, - for standard input, instead of the project's: a list of tools, the
    /// result of an MCP server's `tools/list`, or tools in the format of OpenAI's or Anthropic's
    /// API
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Skip this rule, such as says-what-not-when. May be repeated
    #[arg(long, value_name = "RULE")]
    pub(crate) allow: Vec<String>,
    /// The limit of tokens for all tools in a request [default: 10000]
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens: Option<usize>,
    #[command(flatten)]
    pub(crate) whom: IdentityArgs,
    #[command(flatten)]
    pub(crate) look: OfflineArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ToolsArgs {
    /// List only the tools of this toolset
    #[arg(long, value_name = "TOOLSET")]
    pub(crate) toolset: Option<String>,
    #[command(flatten)]
    pub(crate) whom: IdentityArgs,
    #[command(flatten)]
    pub(crate) look: OfflineArgs,
}
