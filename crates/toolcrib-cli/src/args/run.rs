//! The arguments of `run` and `resume`.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use toolcrib_core::{ToolChoice, ToolName};

use super::{Claim, FreshArgs, IdentityArgs, RunSession, Situation, sessions::session_word};

/// The model, which replaces the project's.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ModelArgs {
    /// The model, instead of the project's: openai:MODEL, anthropic:MODEL, gemini:MODEL,
    /// ollama:MODEL, the name of a [model.NAME], or script:FILE, relative to the project [default:
    /// the project's, else yours of `models add`, else the first configured model]
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// The model's endpoint, such as http://127.0.0.1:8080/v1. API keys of the environment are not
    /// sent there; docs/models.md says how to configure one
    #[arg(long, value_name = "URL", requires = "model")]
    pub(crate) base_url: Option<String>,
}

/// The tools of a conversation without a project.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ScratchArgs {
    /// Without a project: give the agent the files of this folder (files), web pages (web), a SQLite
    /// database (FILE.db) or an HTTP API (the file or URL of its OpenAPI document). A person approves
    /// what changes something. May be repeated [default: no tools]
    #[arg(long, value_name = "TOOLS")]
    pub(crate) with: Vec<String>,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct RunArgs {
    /// The message to the agent, several words are joined; @FILE reads a file; `-`, or no message,
    /// reads standard input
    #[arg(value_name = "MESSAGE")]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// Attach a file, - for standard input, or a resource of an MCP server (mcp:SERVER:URI), to the
    /// message: the model reads its text, and tools that take attachments open it by its id. May be
    /// repeated, up to 16 files of 8 MiB
    #[arg(long = "attach", value_name = "FILE")]
    pub(crate) attachments: Vec<PathBuf>,
    /// Which tools the model may or must call: auto, none, required, or a tool's name. The first
    /// value applies to the first iteration, and so on; later iterations use auto [default: auto]
    #[arg(long = "tool-choice", value_name = "CHOICE", value_parser = tool_choice)]
    pub(crate) tool_choices: Vec<ToolChoice>,
    #[command(flatten)]
    pub(crate) situation: Situation,
    #[command(flatten)]
    pub(crate) session: RunSession,
    #[command(flatten)]
    pub(crate) scratch: ScratchArgs,
    /// Write every event to this file as JSON Lines; - is standard error and implies --quiet. An
    /// existing file is replaced; inside the project's and the state folder only if it is named
    /// *.jsonl, *.ndjson or *.log
    #[arg(long, value_name = "FILE")]
    pub(crate) events: Option<PathBuf>,
    /// Record the model's responses as a script in this new file, redacted: `--model script:FILE`
    /// replays them
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// The answer must be JSON that is valid for the JSON Schema in this file. An answer that is not
    /// is requested again, at most twice; then the run fails
    #[arg(long, value_name = "FILE")]
    pub(crate) schema: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) fresh: FreshArgs,
    /// Make no calls that have an effect, and show which would be made and which need approval.
    /// Nothing is stored
    #[arg(long, conflicts_with_all = ["last", "session", "fresh"])]
    pub(crate) dry_run: bool,
    /// Stop the run after this time, such as 30s or "1h 30m" [default: the project's, else 10m]
    #[arg(long, value_name = "DURATION", value_parser = timeout)]
    pub(crate) timeout: Option<Duration>,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// The session, by id or name [default: the last one whose run was interrupted]
    #[arg(value_name = "SESSION", value_parser = session_word)]
    pub(crate) session: Option<String>,
    #[command(flatten)]
    whom: IdentityArgs,
    /// Add a token claim (a string), used to resolve roles. Claims are not stored: repeat those of
    /// the run. May be repeated; repeating a name makes a list [default: no claims]
    #[arg(long = "claim", value_name = "NAME=VALUE")]
    claims: Vec<Claim>,
    /// The model, as of `run` [default: as of `run`]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// The model's endpoint, as of `run`
    #[arg(long, value_name = "URL", requires = "model")]
    base_url: Option<String>,
    /// Write every event to this file as JSON Lines, as of `run`
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
    /// Stop the run after this time from now, such as 30s or "1h 30m" [default: the project's, else
    /// 10m]
    #[arg(long, value_name = "DURATION", value_parser = timeout)]
    timeout: Option<Duration>,
}

impl ResumeArgs {
    /// The arguments of a run without a message.
    pub(crate) fn into_run(self) -> RunArgs {
        let Self { session, whom, claims, model, base_url, events, timeout } = self;
        RunArgs {
            words: Vec::new(),
            model: ModelArgs { model, base_url },
            attachments: Vec::new(),
            tool_choices: Vec::new(),
            situation: Situation { session, whom, claims, ..Situation::default() },
            session: RunSession::default(),
            scratch: ScratchArgs::default(),
            events,
            record: None,
            schema: None,
            fresh: FreshArgs::default(),
            dry_run: false,
            timeout,
        }
    }
}

fn tool_choice(text: &str) -> Result<ToolChoice, String> {
    Ok(match text {
        "auto" => ToolChoice::Auto,
        "none" => ToolChoice::None,
        "required" => ToolChoice::Required,
        name => ToolChoice::Tool(ToolName::new(name).map_err(|error| error.to_string())?),
    })
}

/// The time after which a run or a turn stops.
pub(super) fn timeout(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(Duration::ZERO) => Err("the timeout is zero; the run would end before it began".into()),
        Ok(duration) => Ok(duration),
        Err(error) => Err(error.to_string()),
    }
}
