//! What `lint` and `tools` take.

use std::path::PathBuf;

use clap::Args;

use super::{Look, Whom};

#[derive(Debug, Args)]
pub(crate) struct LintArgs {
    /// A catalogue as JSON, - for standard input, in place of the project's: a list of tools, the
    /// result of an MCP server's `tools/list`, tools as OpenAI's or Anthropic's API take them
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Do without this rule, such as says-what-not-when; may be given again
    #[arg(long, value_name = "RULE")]
    pub(crate) allow: Vec<String>,
    /// How many tokens all tools may take of a request [default: 10000]
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens: Option<usize>,
    #[command(flatten)]
    pub(crate) whom: Whom,
    #[command(flatten)]
    pub(crate) look: Look,
}

#[derive(Debug, Args)]
pub(crate) struct ToolsArgs {
    /// Only the tools of this toolset
    #[arg(long, value_name = "TOOLSET")]
    pub(crate) toolset: Option<String>,
    #[command(flatten)]
    pub(crate) whom: Whom,
    #[command(flatten)]
    pub(crate) look: Look,
}
