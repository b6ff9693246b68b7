//! What can be typed.

mod lint;
mod serve;
mod trust;

use std::{path::PathBuf, str::FromStr, time::Duration};

use clap::{Args, Parser, Subcommand};
use serde_json::{Map, Value};
use toolcrib_core::{ToolChoice, ToolName};

pub(crate) use self::{
    lint::{LintArgs, ToolsArgs},
    serve::{HttpAddress, ServeArgs},
    trust::{Fresh, Look, TrustArgs},
};

const EXIT_CODES: &str = "\
Exit codes:
  0  fine: the model answered, or the cap on steps was reached; `serve` was stopped by Ctrl-C or
     SIGTERM, or its input ended
  1  failed: the run failed or timed out, a call was not ok, the server of `mcp test` or one that
     may not be left out cannot be reached, `lint` found something
  2  the command line or the project is wrong
  3  cancelled by Ctrl-C or SIGTERM; `serve` too, when a second signal ends it at once";

/// The tool layer for LLM agents: decides what a model may see, bounds what a call may do,
/// cleans what comes back.
#[derive(Debug, Parser)]
#[command(name = "toolcrib", version, after_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// The project's folder [default: the nearest with a toolcrib.toml, upward from here]
    #[arg(short, long, value_name = "DIR", global = true)]
    pub(crate) project: Option<PathBuf>,
    /// Where the project keeps what it writes [default: .toolcrib in the project]
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) state: Option<PathBuf>,
    /// Take in the MCP servers of this `mcpServers` file, beside those of `--project`, else with no
    /// project at all; may be given again
    #[arg(long = "import", value_name = "FILE", global = true)]
    pub(crate) imports: Vec<PathBuf>,
    /// Leave the project out in whose folder this is, and with it its rules: imported servers alone
    #[arg(long, global = true, requires = "imports", conflicts_with = "project")]
    pub(crate) no_project: bool,
    /// Start programs of imported files also where what they start could outlive them
    #[arg(long, global = true, requires = "imports")]
    pub(crate) allow_stray_children: bool,
    /// Print one JSON object instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print only the result
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Print results and reasons in full
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
}

impl Global {
    /// Whether there is a project beside imported servers.
    pub(crate) fn has_project(&self) -> bool {
        self.project.is_some() || self.imports.is_empty()
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Give the agent a message and follow it step by step
    #[command(after_help = "\
Examples:
  toolcrib run -p examples/support-desk \"I was charged twice for order 1042\"
  toolcrib run --as intern --json \"Refund order 1042\"
  toolcrib run --model anthropic:claude-sonnet-5-5 --record refund.toml \"Refund order 1042\"
  toolcrib run --events events.jsonl --timeout 30s \"Where is order 1042?\"")]
    Run(RunArgs),
    /// Show what the model would see, and what not
    #[command(after_help = "\
Examples:
  toolcrib menu -p examples/support-desk --skill billing
  toolcrib menu --as intern --why")]
    Menu(MenuArgs),
    /// Say why a tool is offered, or is not: every cause in order, and the smallest change that would
    /// turn the matter round
    #[command(after_help = "\
Examples:
  toolcrib explain refund_duplicate_charge -p examples/support-desk --as intern
  toolcrib explain list_charges --skill shipping --json")]
    Explain(ExplainArgs),
    /// Make one call, through everything that a model's call goes through
    #[command(after_help = "\
Examples:
  toolcrib call list_charges order_id=1042 -p examples/support-desk
  toolcrib call list_charges '{\"order_id\": 1042}' --json
  toolcrib call import_orders rows:='[1, 2]'
  toolcrib call import_orders @arguments.json
  generate-arguments | toolcrib call import_orders -")]
    Call(CallArgs),
    /// Stand between an MCP client and tools: on standard input and output, or over HTTP
    #[command(after_help = "\
Examples:
  toolcrib serve --import .mcp.json
  toolcrib serve -p my-agent --as intern --skill billing
  toolcrib serve -p my-agent --http --access-log access.jsonl

In the configuration of an MCP client:
  { \"mcpServers\": { \"toolcrib\": { \"command\": \"toolcrib\", \"args\": [\"serve\", \"-p\", \"DIR\"] } } }

It serves until Ctrl-C or SIGTERM stops it, on standard input and output also until its input ends:
exit code 0. A second signal ends it at once: 3.")]
    Serve(ServeArgs),
    /// Look at the MCP servers of a project
    Mcp {
        #[command(subcommand)]
        command: McpCommand,
    },
    /// List the tools of a project, declared and remote, whoever may see them; `menu` says who does
    #[command(after_help = "\
Examples:
  toolcrib tools -p examples/support-desk
  toolcrib tools --toolset billing --json
  toolcrib tools --tenant acme

Hubs are asked as `--as` and `--tenant` say. The exit code is 1 when a source cannot be listed that
may not be left out.")]
    Tools(ToolsArgs),
    /// Look over a catalogue of tools: what a model would mix up, misunderstand, pay for, or be talked
    /// into
    #[command(after_help = "\
Examples:
  toolcrib lint -p examples/support-desk
  toolcrib lint --allow says-what-not-when --max-tokens 5000
  toolcrib lint --tenant acme
  toolcrib lint tools.json --json
  my-mcp-client tools/list | toolcrib lint -

FILE is JSON: a list of tools or an object with such a list as `tools`, each with its schema as
`inputSchema` (MCP), `input_schema` (Anthropic) or `parameters` (OpenAI). Of a project, hubs are asked
as `--as` and `--tenant` say.

The exit code is 0 when nothing is found, 1 when something is, 2 when there is nothing to look over.
docs/lint.md has all rules. Tokens are estimated: four characters are one.")]
    Lint(LintArgs),
    /// List the skills of a project, or install one
    #[command(after_help = "\
Examples:
  toolcrib skills -p my-agent
  toolcrib skills install refunds.zip -p my-agent
  toolcrib skills install refunds.tar.gz --force

An installed skill is trusted: a model that activates it follows what it says. Read it first.")]
    Skills {
        #[command(flatten)]
        look: Look,
        #[command(subcommand)]
        command: Option<SkillsCommand>,
    },
    /// List the models that are configured, ask whether each can be reached, and say why not
    #[command(after_help = "\
Examples:
  toolcrib models
  toolcrib models -p my-agent --json")]
    Models(Look),
    /// Load everything and say what is there, or all that is wrong
    #[command(after_help = "\
Examples:
  toolcrib check -p examples/support-desk
  toolcrib check --json")]
    Check(Look),
    /// Trust the project of this folder, as it is now, to do what it declares: start programs, send
    /// requests, read variables
    #[command(after_help = "\
Examples:
  toolcrib trust
  toolcrib trust my-agent
  toolcrib trust --owner /mnt/work
  toolcrib trust --list

A project that is named with `-p` needs no trust, and neither does a file that is named with `--import`,
if they belong to you or to root. One that is found, in this folder or above it, is trusted once, and
again when its files have changed. docs/project-file.md says more.")]
    Trust(TrustArgs),
    /// Begin a small project that runs at once
    #[command(after_help = "\
Examples:
  toolcrib init my-agent && toolcrib run -p my-agent \"what do we know about the printer?\"")]
    Init(InitArgs),
}

/// On whose behalf.
#[derive(Debug, Default, Args)]
pub(crate) struct Whom {
    /// Act for this principal [default: nobody]
    #[arg(long = "as", value_name = "PRINCIPAL")]
    pub(crate) principal: Option<String>,
    /// Act within this tenant [default: none]
    #[arg(long, value_name = "TENANT")]
    pub(crate) tenant: Option<String>,
}

/// A claim, as `NAME=VALUE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) name: String,
    pub(crate) value: String,
}

impl FromStr for Claim {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, value) = text.split_once('=').ok_or("write NAME=VALUE: groups=trainees")?;
        if name.trim().is_empty() {
            return Err("it has no name; write NAME=VALUE: groups=trainees");
        }
        if name.trim() != name {
            return Err(
                "its name begins or ends with white space, and no role asks for such a claim",
            );
        }
        if name.ends_with(':') {
            return Err(
                "a claim is a text, not JSON; write NAME=VALUE, once for each value of a list",
            );
        }
        Ok(Self { name: name.to_owned(), value: value.to_owned() })
    }
}

/// The claims as a token has them: a text each, and a list of those whose name was given again.
pub(crate) fn claims(given: &[Claim]) -> Map<String, Value> {
    let mut claims = Map::new();
    for Claim { name, value } in given {
        let value = Value::from(value.as_str());
        match claims.get_mut(name) {
            None => drop(claims.insert(name.clone(), value)),
            Some(Value::Array(values)) => values.push(value),
            Some(first) => *first = Value::Array(vec![first.take(), value]),
        }
    }
    claims
}

/// On whose behalf, and with which skills.
#[derive(Debug, Default, Args)]
pub(crate) struct Situation {
    /// Start with this skill active; may be given again, the last one is the active one
    #[arg(long = "skill", value_name = "SKILL")]
    pub(crate) skills: Vec<String>,
    #[command(flatten)]
    pub(crate) whom: Whom,
    /// Act with this claim of a token, a text, for roles that ask for it; may be given again, and a
    /// name that is has a list of its values [default: no claims]
    #[arg(long = "claim", value_name = "NAME=VALUE")]
    pub(crate) claims: Vec<Claim>,
    /// Act as this personality of the project [default: the one called default]
    #[arg(long, value_name = "PERSONALITY")]
    pub(crate) personality: Option<String>,
    /// The conversation that tools and policies see [default: the run's id]
    #[arg(long, value_name = "ID")]
    pub(crate) conversation: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// What you say to the agent
    #[arg(value_parser = message)]
    pub(crate) message: String,
    /// The model, in place of the project's: openai:MODEL, anthropic:MODEL, gemini:MODEL,
    /// ollama:MODEL, the name of a [model.NAME], or script:FILE, relative to the project
    /// [default: the project's, else the first that is configured]
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Where that model is, such as http://127.0.0.1:8080/v1. No key of the environment goes there;
    /// docs/models.md says how to give one
    #[arg(long, value_name = "URL", requires = "model")]
    pub(crate) base_url: Option<String>,
    /// What the model may or must call: auto, none, required, or a tool's name; the first stands
    /// for the first step, and so on, and later steps are free [default: auto]
    #[arg(long = "tool-choice", value_name = "CHOICE", value_parser = tool_choice)]
    pub(crate) tool_choices: Vec<ToolChoice>,
    #[command(flatten)]
    pub(crate) situation: Situation,
    /// Write every event to this file as JSON Lines; - is standard error and implies --quiet.
    /// A file that is there is replaced; within the project's and the state folder only if it is
    /// called *.jsonl, *.ndjson or *.log
    #[arg(long, value_name = "FILE")]
    pub(crate) events: Option<PathBuf>,
    /// Keep what the model says as a script in this new file, redacted: `--model script:FILE`
    /// plays it back
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) fresh: Fresh,
    /// End the run after this time, such as 30s or "1h 30m" [default: the project's, else 10m]
    #[arg(long, value_name = "DURATION", value_parser = timeout)]
    pub(crate) timeout: Option<Duration>,
}

fn message(text: &str) -> Result<String, &'static str> {
    if text.trim().is_empty() {
        return Err("it is empty; say what the agent is to do");
    }
    Ok(text.to_owned())
}

fn tool_choice(text: &str) -> Result<ToolChoice, String> {
    Ok(match text {
        "auto" => ToolChoice::Auto,
        "none" => ToolChoice::None,
        "required" => ToolChoice::Required,
        name => ToolChoice::Tool(ToolName::new(name).map_err(|error| error.to_string())?),
    })
}

fn timeout(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(Duration::ZERO) => Err("it is zero; the run would end before it began".into()),
        Ok(duration) => Ok(duration),
        Err(error) => Err(error.to_string()),
    }
}

#[derive(Debug, Args)]
pub(crate) struct MenuArgs {
    #[command(flatten)]
    pub(crate) situation: Situation,
    /// Say of each tool why it is offered or withheld, and of the withheld ones what would have to
    /// change
    #[arg(long)]
    pub(crate) why: bool,
    #[command(flatten)]
    pub(crate) look: Look,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The tool's name
    pub(crate) tool: String,
    #[command(flatten)]
    pub(crate) situation: Situation,
    #[command(flatten)]
    pub(crate) look: Look,
}

#[derive(Debug, Args)]
pub(crate) struct CallArgs {
    /// The tool's name
    pub(crate) tool: String,
    /// key=value (typed by the tool's schema), key:=JSON, one JSON object, @FILE, or - for
    /// standard input. What begins like JSON goes to the tool as a model's text does, broken or
    /// not; any other word is a mistake of the command line
    #[arg(value_name = "ARGUMENT")]
    pub(crate) arguments: Vec<String>,
    #[command(flatten)]
    pub(crate) situation: Situation,
    #[command(flatten)]
    pub(crate) fresh: Fresh,
}

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Ask every server for its tools, and say where it stands; the exit code is 0 also when some
    /// cannot be reached
    #[command(after_help = "\
Examples:
  toolcrib mcp list -p my-agent
  toolcrib mcp list --import .mcp.json --json")]
    List(Look),
    /// Ask one server for its tools, and say which are offered, which are held back, and why; the
    /// exit code is 1 when it cannot be reached
    #[command(after_help = "\
Examples:
  toolcrib mcp test git -p my-agent
  toolcrib mcp test git --import .mcp.json")]
    Test {
        /// The server's name
        server: String,
    },
    /// Make one call by the name that the server gives its tool, through everything that a model's
    /// call goes through
    #[command(after_help = "\
Examples:
  toolcrib mcp call git git_log repo_path=. max_count=3 --import .mcp.json")]
    Call {
        /// The server's name
        server: String,
        #[command(flatten)]
        call: CallArgs,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum SkillsCommand {
    /// List the skills with their tools, steps and files: what `skills` alone does too
    List(Look),
    /// Unpack an archive with one skill in it into the project's folder of skills; it is checked
    /// first, and put in place as a whole or not at all
    Install {
        /// A .zip or .tar.gz file
        file: PathBuf,
        /// Replace a skill of that name
        #[arg(long)]
        force: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// The folder to make
    pub(crate) dir: PathBuf,
    // These stand for the ones of all commands, which `init` refuses and its help need not name.
    #[arg(short, long, value_name = "DIR", hide = true)]
    pub(crate) project: Option<PathBuf>,
    #[arg(long, value_name = "DIR", hide = true)]
    pub(crate) state: Option<PathBuf>,
    #[arg(long = "import", value_name = "FILE", hide = true)]
    pub(crate) imports: Vec<PathBuf>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
