//! The arguments of a chat.

use std::time::Duration;

use clap::Args;

use super::{Fresh, RunSession, Situation, timeout};

/// The model, which replaces the project's.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ModelArgs {
    /// The model, instead of the project's: openai:MODEL, anthropic:MODEL, gemini:MODEL,
    /// ollama:MODEL, the name of a [model.NAME], or script:FILE, relative to the project [default:
    /// the project's, else the first configured model]
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// The model's endpoint, such as http://127.0.0.1:8080/v1. API keys of the environment are not
    /// sent there; docs/models.md says how to configure one
    #[arg(long, value_name = "URL", requires = "model")]
    pub(crate) base_url: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ChatArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) situation: Situation,
    #[command(flatten)]
    pub(crate) session: RunSession,
    #[command(flatten)]
    pub(crate) fresh: Fresh,
    /// Stop a turn after this time, such as 30s or "1h 30m" [default: the project's, else 10m]
    #[arg(long, value_name = "DURATION", value_parser = timeout)]
    pub(crate) timeout: Option<Duration>,
}
