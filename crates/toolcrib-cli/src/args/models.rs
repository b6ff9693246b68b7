//! The arguments of `models`.

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// Make a model your default, and store its key
    #[command(after_help = "\
Examples:
  toolcrib models add
  toolcrib models add anthropic
  toolcrib models add openai:gpt-6.2-sol --key-from-env WORK_KEY
  pass show openrouter | toolcrib models add openai:qwen/qwen3 --base-url https://openrouter.ai/api/v1 --key-stdin
  toolcrib models add ollama:qwen3

At a terminal it asks for what is missing, and does not show the key. `chat` and `run` use the model \
where neither `--model` nor the project names one. The key is sent only to the vendor, or to the base URL \
with which it was added.")]
    Add(ModelsAddArgs),
    /// Remove the key and the models of a vendor
    #[command(after_help = "\
Examples:
  toolcrib models remove openai")]
    Remove {
        /// The vendor, or one of its models
        #[arg(value_name = "VENDOR")]
        vendor: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ModelsAddArgs {
    /// VENDOR:MODEL, or a vendor for its default model [default: ask at the terminal]
    #[arg(value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// The endpoint of the model and of its vendor's other models, such as http://127.0.0.1:8080/v1
    /// [default: the vendor's]
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Store the value of this environment variable as the key
    #[arg(long, value_name = "VARIABLE")]
    pub(crate) key_from_env: Option<String>,
    /// Read the key from standard input
    #[arg(long, conflicts_with = "key_from_env")]
    pub(crate) key_stdin: bool,
    /// Do not query the server of the model
    #[arg(long)]
    pub(crate) offline: bool,
}
