//! The command line arguments.

mod acp;
mod approvals;
mod chat;
mod check_server;
mod clients;
mod global;
mod identity;
mod init;
mod lint;
mod lock;
mod mcp;
mod mcp_entry;
mod menu;
mod models;
mod run;
mod secret;
mod serve;
mod sessions;
mod trace;
mod trust;
mod usage;
mod work;

use std::path::PathBuf;

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use clap_complete::Shell;

pub(crate) use self::{
    acp::AcpArgs,
    approvals::{ApprovalsArgs, ApprovalsCommand, ApproveArgs, DenyArgs},
    chat::ChatArgs,
    check_server::{AuthorsCall, CheckServerArgs},
    clients::InstallArgs,
    global::GlobalArgs,
    identity::{Claim, IdentityArgs, Situation, claims},
    init::{InitArgs, InitKind},
    lint::{LintArgs, ToolsArgs},
    lock::{AcceptArgs, LockCommand, LockScope},
    mcp::McpCommand,
    mcp_entry::McpAddArgs,
    menu::{ExplainArgs, FindArgs, MenuArgs},
    models::{ModelsAddArgs, ModelsCommand},
    run::{ModelArgs, ResumeArgs, RunArgs, ScratchArgs},
    secret::SecretCommand,
    serve::{HttpAddress, ServeArgs},
    sessions::{ExportArgs, ExportFormat, ListArgs, RunSession, SessionsCommand, ShowArgs},
    trace::{ReplayArgs, RunsArgs, TraceArgs},
    trust::{FreshArgs, OfflineArgs, TrustArgs},
    usage::{Day, UsageArgs, UsageGrouping},
    work::{CancelArgs, FollowArgs, SubmitArgs, WorkCommand, WorkerArgs},
};

/// The layout of `toolcrib --help`. Clap has no headings for subcommands; a test compares this list
/// with the commands.
const HELP: &str = "\
{about-with-newline}
{usage-heading} {usage}

Set up a project:
  init     Create a small project that runs at once
  trust    Trust the project of this folder, as it is now, to do what it declares
  secret   Store, list and remove the secrets of this user's vault
  check    Load the project and report its contents, or all its errors

Use its tools:
  run      Send a message to the agent and print each iteration
  resume   Continue a run whose process was killed, where it stopped
  chat     Talk with the agent at the terminal
  call     Call one tool, through the same pipe as a model's call
  serve    Serve the tools over MCP: on standard input and output, or over HTTP
  acp      Serve the project as an agent to an editor, over the Agent Client Protocol
  install  Add the gateway to the configuration of an MCP client, or remove it

Let workers run it, on one machine or several:
  submit   Submit a message to a session, for a worker to run
  worker   Run submitted messages, and continue the runs of processes that died
  follow   Print the messages of a session as they are stored, until its run ends
  cancel   Cancel the run of a session, and its submitted messages, on whatever machine

Sessions of `run`, `chat` and `acp`:
  sessions List the sessions of a project, or delete some
  show     Show a session: its turns, messages and calls
  export   Write a session as Markdown or JSON

Look back at a run:
  runs     List the runs of all sessions, the last one first
  trace    Show what happened in a run, as text or as a page for a browser
  replay   Repeat a run from its journal, and name the first difference
  usage    Show tokens and money per day, session, principal, model or tool

Approve calls that a rule asks about:
  approvals List the calls that wait for approval, and the grants
  approve  Approve a call, once, or calls like it for a time
  deny     Deny a call

Inspect it:
  menu     Show the tools that the model would see, and the withheld ones
  explain  Explain why a tool is offered or withheld, and what would reverse it
  find     Search the tools as a model would, and explain why one is not found
  tools    List all tools of a project, declared and remote, also withheld ones
  lint     Find tools that a model may confuse or misread, or that cost too much
  skills   List the skills of a project, install or remove one
  models   List the configured models, test whether each can be reached, add or remove one
  mcp      List, test, call, add and remove the MCP servers of a project
  lock     Show and accept changed definitions of servers and hubs
  discover List the MCP servers that editors on this machine have configured
  check-server Check an MCP server for its author: messages, definitions, results, cost
  doctor   Show which sandboxes this machine enforces, and what the store's database promises

For shells, editors and packages:
  completions Print the completions of a shell
  man      Print the manual page, or write those of all commands
  schema   Print the JSON Schema of toolcrib.toml, for editors
  help     Print this message or the help of the given subcommand(s)

Options:
{options}{after-help}";

const EXIT_CODES: &str = "\
Exit codes:
  0  success: the model answered or reached the iteration limit; `serve`, `acp` or `worker` was \
stopped by Ctrl-C or SIGTERM, or its input was closed
  1  failure, one of these:
     - the run failed, timed out or reached a limit of `[limits]` or `[budget]`
     - its session is in use or cannot be stored
     - a call was not ok
     - a required server or the server of `mcp test` cannot be reached
     - `lint` has findings
     - `lock diff` has changes, or `lock` cannot list a source
     - `find` does not find the expected tool
     - `replay` differs
     - `doctor` finds a sandbox that is not enforced, or a problem of the store's database
  2  error in the command line or in the project
  3  cancelled by Ctrl-C, SIGTERM or `cancel`; `serve` and `worker` only when a second signal ends it at once
  4  waiting: the run or the call needs an approval, see `toolcrib approvals`
  5  the answer of the run is cut off: it reached the model's output limit
  6  the model's answer was empty, also after retries";

/// The tool layer for LLM agents: decides what a model may see, bounds what a call may do,
/// cleans what comes back.
#[derive(Debug, Parser)]
#[command(name = "toolcrib", version, help_template = HELP, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// The command line. The help of a command lists only the options that apply to it.
    pub(crate) fn line() -> clap::Command {
        global::hide_unused(Self::command())
    }

    /// Reads the command line of this process.
    ///
    /// # Errors
    /// The problem, the requested help or the version.
    pub(crate) fn read() -> Result<Self, clap::Error> {
        let line = Self::line();
        let mut matches = line.clone().try_get_matches()?;
        global::refuse_unused(&line, &matches)?;
        Self::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut Self::line()))
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create a small project that runs at once
    #[command(after_help = "\
Examples:
  toolcrib init my-agent
  toolcrib init shop --from shop.db
  toolcrib init desk --from openapi.yaml
  toolcrib init local --from http://localhost:8000/openapi.json
  toolcrib init helper --from .mcp.json
  toolcrib init web --with browser
  toolcrib run -p my-agent \"what do we know about the printer?\"")]
    Init(InitArgs),
    /// Trust the project of this folder, as it is now, to do what it declares
    #[command(after_help = "\
Examples:
  toolcrib trust
  toolcrib trust my-agent
  toolcrib trust --owner /mnt/work
  toolcrib trust --list

A trusted project may start the programs, send the requests and read the environment variables that \
it declares. A project named with `-p` and a file named with `--import` need no trust if they belong \
to you or to root. A project found in this folder or above it must be trusted once, and again \
before it can do more. See docs/project-file.md.")]
    Trust(TrustArgs),
    /// Store, list and remove the secrets of this user's vault
    Secret {
        #[command(subcommand)]
        command: SecretCommand,
    },
    /// Load the project and report its contents, or all its errors
    #[command(after_help = "\
Examples:
  toolcrib check -p examples/support-desk
  toolcrib check --json")]
    Check(OfflineArgs),
    /// Send a message to the agent and print each iteration
    #[command(after_help = "\
Examples:
  toolcrib run -p examples/support-desk \"I was charged twice for order 1042\"
  tail -n 50 error.log | toolcrib run
  tail -n 50 error.log | toolcrib run --attach - \"Why does it fail?\"
  toolcrib run --as intern --json \"Refund order 1042\"
  toolcrib run --model anthropic --record refund.toml \"Refund order 1042\"
  toolcrib run --events events.jsonl --timeout 30s \"Where is order 1042?\"
  toolcrib run -c \"And the order before?\"
  toolcrib run --schema refund.json \"What was refunded for order 1042?\" | jq .cents
  toolcrib run --session refunds @message.txt
  toolcrib run --with files \"What does this folder contain?\"

Without a project, the tools are those of --with. Every run is a session, which `-c` and `--session` continue and `toolcrib sessions` lists. A session \
belongs to the principal of `--as` and the tenant of `--tenant`. See docs/sessions.md.")]
    Run(RunArgs),
    /// Continue a run whose process was killed, where it stopped
    #[command(after_help = "\
Examples:
  toolcrib resume
  toolcrib resume refunds --as ann
  toolcrib resume 3f2a91c0d4e5 --json

A finished call keeps its result and is not made again. A call that was cut off is `outcome_unknown`, \
unless its tool is declared `idempotent` or `read_only`: then it is made once more, with the same \
idempotency key. A call that had not begun is made. Then the run goes on to its answer.

The identity, the claims and the model are those of this command; the skills are those of the run. \
`run -c MESSAGE` ends the interrupted turn instead, and begins another. See docs/sessions.md.")]
    Resume(ResumeArgs),
    /// Talk with the agent at the terminal
    #[command(after_help = "\
Examples:
  toolcrib chat -p examples/support-desk
  toolcrib chat -c
  toolcrib chat --session refunds --skill billing
  toolcrib chat --with web --with shop.db

Without a project, the tools are those of --with. Ctrl-C ends the turn, Ctrl-D the chat. A chat is a session, which `-c` and `--session` continue, also \
with `run`. /help lists the commands within the chat. See docs/cli.md#chat.")]
    Chat(ChatArgs),
    /// Call one tool, through the same pipe as a model's call
    #[command(after_help = "\
Examples:
  toolcrib call list_charges order_id=1042 -p examples/support-desk
  toolcrib call list_charges '{\"order_id\": 1042}' --json
  toolcrib call import_orders rows:='[1, 2]'
  toolcrib call import_orders @arguments.json
  generate-arguments | toolcrib call import_orders -")]
    Call(CallArgs),
    /// Serve the tools over MCP: on standard input and output, or over HTTP
    #[command(after_help = "\
Examples:
  toolcrib serve --import .mcp.json
  toolcrib serve -p my-agent --as intern --skill billing
  toolcrib serve -p my-agent --http --access-log access.jsonl

In the configuration of an MCP client:
  { \"mcpServers\":
    { \"toolcrib\": { \"command\": \"toolcrib\", \"args\": [\"serve\", \"-p\", \"DIR\"] } } }

It serves until Ctrl-C or SIGTERM stops it, on standard input and output also until its input is \
closed: exit code 0. A second signal ends it at once: exit code 3.")]
    Serve(ServeArgs),
    /// Serve the project as an agent to an editor, over the Agent Client Protocol
    #[command(after_help = "\
Examples:
  toolcrib acp -p my-agent
  toolcrib acp --as ann --model anthropic

In the settings of Zed:
  { \"agent_servers\":
    { \"toolcrib\": { \"type\": \"custom\", \"command\": \"toolcrib\", \"args\": [\"acp\", \"-p\", \"DIR\"] } } }

The editor starts it, and talks with it on standard input and output. Without -p, the project is the \
nearest one upward from the folder that is open in the editor. Each thread of the editor is a session. \
See docs/cli.md#editors.")]
    Acp(AcpArgs),
    /// Add the gateway to the configuration of an MCP client, or remove it
    #[command(after_help = "\
Examples:
  toolcrib install --client claude-code -p my-agent
  toolcrib install --client cursor --scope project --import servers.json
  toolcrib install --client vscode --dry-run
  toolcrib install --client cursor --url https://tools.example/mcp --token-variable TOOLCRIB_TOKEN
  toolcrib install --client vscode --uninstall

It shows the change first, and writes one entry: the absolute path of this program, and the arguments \
of `serve`; with --url, that of a gateway that runs already. Comments and layout of the file stay. No \
secret is written: variables of the environment come from the client. See docs/clients.md.")]
    Install(InstallArgs),
    #[command(flatten)]
    Work(WorkCommand),
    /// List the sessions of a project, or delete some
    #[command(after_help = "\
Examples:
  toolcrib sessions -p my-agent
  toolcrib sessions --as ann --limit 5 --json
  toolcrib sessions delete refunds 3f2a91c0d4e5
  toolcrib sessions restrictions --as ann --lift

It lists only the sessions of the principal of `--as` and the tenant of `--tenant`.")]
    Sessions {
        #[command(flatten)]
        list: ListArgs,
        #[command(subcommand)]
        command: Option<SessionsCommand>,
    },
    /// Show a session: its turns, messages and calls
    #[command(after_help = "\
Examples:
  toolcrib show refunds
  toolcrib show 3f2a91c0d4e5 -v
  toolcrib show refunds --as ann --json

Long texts are cut; -v shows them in full.")]
    Show(ShowArgs),
    /// Write a session as Markdown or JSON
    #[command(after_help = "\
Examples:
  toolcrib export refunds -o refunds.md
  toolcrib export refunds --format json > refunds.json")]
    Export(ExportArgs),
    /// List the runs of all sessions, the last one first
    #[command(after_help = "\
Examples:
  toolcrib runs -p my-agent
  toolcrib runs --as ann --limit 5 --json
  toolcrib runs --gateway --as ann

A run is one message and its answer: a turn of a session. It lists only the runs of the principal of \
`--as` and the tenant of `--tenant`.")]
    Runs(RunsArgs),
    /// Show what happened in a run, as text or as a page for a browser
    #[command(after_help = "\
Examples:
  toolcrib trace
  toolcrib trace 3f2a91c0d4e5/2 -v
  toolcrib trace refunds --html refunds.html
  toolcrib trace --json > trace.json

It shows each iteration with its menu and the reasons for withheld tools, each call with the size of \
its result after each stage, waits, tokens and money. Long texts are cut; -v shows them in full. See \
docs/trace.md.")]
    Trace(TraceArgs),
    /// Repeat a run from its journal, and name the first difference
    #[command(after_help = "\
Examples:
  toolcrib replay
  toolcrib replay 3f2a91c0d4e5/2 --model
  toolcrib replay refunds --tools --with anthropic:claude-sonnet-5-5

The journal answers the model's side with --model, the tools' side with --tools, and both without an
option. No tool runs that may change something: the journal answers its calls in any case. Nothing is
stored.

The exit code is 0 without a difference, and 1 with one. See docs/trace.md.")]
    Replay(ReplayArgs),
    /// Show tokens and money per day, session, principal, model or tool
    #[command(after_help = "\
Examples:
  toolcrib usage
  toolcrib usage --by principal --since 2026-11-01
  toolcrib usage --by tool --session refunds
  toolcrib usage --model openai:gpt-5 --since 7d --json
  toolcrib usage --html usage.html

It sums up the runs of all principals. A cost that is not known is `unknown cost`, in JSON null, and \
never 0. Prices are in the project: [price.\"VENDOR:MODEL\"]. See docs/trace.md#usage-and-money.")]
    Usage(UsageArgs),
    /// List the calls that wait for approval, and the grants
    #[command(after_help = "\
Examples:
  toolcrib approvals
  toolcrib approvals --all --json
  toolcrib approvals show 3f2a91c0d4e5
  toolcrib approvals revoke 3f2a91c0d4e5

It lists the calls of all principals. See docs/approvals.md.")]
    Approvals {
        #[command(flatten)]
        list: ApprovalsArgs,
        #[command(subcommand)]
        command: Option<ApprovalsCommand>,
    },
    /// Approve a call, once, or calls like it for a time
    #[command(after_help = "\
Examples:
  toolcrib approve 3f2a91c0d4e5
  toolcrib approve 3f2a91c0d4e5 --for 1h --where 'amount<=100'
  toolcrib approve 3f2a91c0d4e5 --for 30m --where /to^=ann@ --any-arguments

It shows the call as it would run, and asks at a terminal. A run goes on with `toolcrib resume`. The
decision is sealed with a key in your configuration folder. See docs/approvals.md.")]
    Approve(ApproveArgs),
    /// Deny a call
    #[command(after_help = "\
Examples:
  toolcrib deny 3f2a91c0d4e5 --reason \"refunds need a ticket number\"

The model reads the reason when the run goes on with `toolcrib resume`.")]
    Deny(DenyArgs),
    /// Show the tools that the model would see, and the withheld ones
    #[command(after_help = "\
Examples:
  toolcrib menu -p examples/support-desk --skill billing
  toolcrib menu --as intern --why")]
    Menu(MenuArgs),
    /// Explain why a tool is offered or withheld, and what would reverse it
    #[command(after_help = "\
Examples:
  toolcrib explain refund_duplicate_charge -p examples/support-desk --as intern
  toolcrib explain list_charges --skill shipping --json
  toolcrib explain mcp__files__resources --as intern

It lists each decision in order, and the smallest change that would reverse the outcome. \
TOOL may also be a prompt of an MCP server, or `mcp__SERVER__resources` for its resources.")]
    Explain(ExplainArgs),
    /// Search the tools as a model would, and explain why one is not found
    #[command(after_help = "\
Examples:
  toolcrib find \"return the money of a charge\" -p examples/support-desk
  toolcrib find \"refund a charge\" --expect refund_duplicate_charge --as intern

Searched are the deferred tools; if none is deferred, all offered ones. The exit code is 1 if the \
expected tool is not among those that a search of a model names.")]
    Find(FindArgs),
    /// List all tools of a project, declared and remote, also withheld ones
    #[command(after_help = "\
Examples:
  toolcrib tools -p examples/support-desk
  toolcrib tools --toolset billing --json
  toolcrib tools --tenant acme

Hubs are queried with the identity of `--as` and `--tenant`. The exit code is 1 when the tools of a \
required source cannot be listed.")]
    Tools(ToolsArgs),
    /// Find tools that a model may confuse or misread, or that cost too much
    #[command(after_help = "\
Examples:
  toolcrib lint -p examples/support-desk
  toolcrib lint --allow says-what-not-when --max-tokens 5000
  toolcrib lint --tenant acme
  toolcrib lint tools.json --json
  my-mcp-client tools/list | toolcrib lint -

It finds tools that a model may confuse or misread, that cost too many tokens, or that try to \
manipulate it.

FILE is JSON: a list of tools or an object with such a list as `tools`, each with its schema as \
`inputSchema` (MCP), `input_schema` (Anthropic) or `parameters` (OpenAI). The hubs of a project are \
queried with the identity of `--as` and `--tenant`.

The exit code is 0 without findings, 1 with findings, 2 when there are no tools to check. \
docs/lint.md lists all rules. Tokens are estimated: one for four characters.")]
    Lint(LintArgs),
    /// List the skills of a project, install or remove one
    #[command(after_help = "\
Examples:
  toolcrib skills -p my-agent
  toolcrib skills install refunds.zip -p my-agent
  toolcrib skills install refunds.tar.gz --force
  toolcrib skills remove refunds

An installed skill is trusted: a model that activates it follows its instructions. Read it first.")]
    Skills {
        #[command(flatten)]
        look: OfflineArgs,
        #[command(subcommand)]
        command: Option<SkillsCommand>,
    },
    /// List the configured models, test whether each can be reached, add or remove one
    #[command(after_help = "\
Examples:
  toolcrib models add
  toolcrib models
  toolcrib models -p my-agent --json

A run uses --model, else the project's model, else your default of `models add`, else the first model that \
the environment configures. See docs/models.md.")]
    Models {
        #[command(flatten)]
        look: OfflineArgs,
        #[command(subcommand)]
        command: Option<ModelsCommand>,
    },
    /// List, test, call, add and remove the MCP servers of a project
    Mcp {
        #[command(subcommand)]
        command: McpCommand,
    },
    /// Show and accept changed definitions of servers and hubs
    Lock {
        #[command(subcommand)]
        command: LockCommand,
    },
    /// List the MCP servers that editors on this machine have configured
    #[command(after_help = "\
Examples:
  toolcrib discover
  toolcrib discover --json

It prints names and kinds of servers, no commands, URLs or other values.")]
    Discover,
    /// Check an MCP server for its author: messages, definitions, results, cost
    #[command(after_help = "\
Examples:
  toolcrib check-server node build/index.js
  toolcrib check-server --strict --json uvx my-server
  toolcrib check-server --set 'Authorization=Bearer ${TOKEN}' https://docs.example/mcp
  toolcrib check-server --call 'list_orders={\"limit\": 10}' node build/index.js

It connects with the handshakes of both eras of the protocol and lists the tools; it calls only those of \
--call. It reports text on standard output and other messages that break the protocol, slow starts, \
definitions that clients cannot use, hints and schemas that contradict themselves, texts that hide \
something or try to manipulate a model, all rules of `lint`, and the tokens that the tools cost in each \
request. Options come before the program.

The exit code is 0 without errors, 1 with errors (with --strict also with warnings), 2 if the program \
is not found. Notes do not change it.")]
    CheckServer(CheckServerArgs),
    /// Show which sandboxes this machine enforces, and what the store's database promises
    #[command(after_help = "\
Examples:
  toolcrib doctor
  toolcrib doctor --json
  setpriv --reuid nobody toolcrib doctor

A child process enters each sandbox and tries what it must not do. It needs no project. With a project or \
--store in a PostgreSQL database, it inspects the server: durability, standbys, poolers, rights, clock. \
The exit code is 1 if a sandbox is not enforced or the database has a problem: its line says what to do. \
See docs/protection.md#sandboxes and docs/sessions.md#postgresql.")]
    Doctor,
    /// Print the completions of a shell
    #[command(after_help = "\
Examples:
  toolcrib completions bash > ~/.local/share/bash-completion/completions/toolcrib
  toolcrib completions zsh > ~/.zfunc/_toolcrib
  toolcrib completions fish > ~/.config/fish/completions/toolcrib.fish")]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page, or write those of all commands
    #[command(after_help = "\
Examples:
  toolcrib man | man -l -
  toolcrib man --dir ~/.local/share/man/man1")]
    Man {
        /// Write the pages of all commands into this folder, which is created
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
    /// Print the JSON Schema of toolcrib.toml, for editors
    #[command(after_help = "\
Examples:
  toolcrib schema > toolcrib.schema.json

Editors with a TOML language server complete and check the keys by it, if the first line of the file is
  #:schema ./toolcrib.schema.json")]
    Schema,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct CallArgs {
    /// The tool's name
    pub(crate) tool: String,
    /// key=value (typed by the tool's schema), key:=JSON, one JSON object, @FILE, or - for standard
    /// input. An argument that begins like JSON is passed on like a model's text, valid or not; any
    /// other word is a usage error
    #[arg(value_name = "ARGUMENT")]
    pub(crate) arguments: Vec<String>,
    /// Answer forms of the MCP server with their default values [default: ask at the terminal]
    #[arg(long)]
    pub(crate) accept_defaults: bool,
    /// Check the call without making it, and show whether it would be made or needs approval
    #[arg(long, conflicts_with = "fresh")]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) situation: Situation,
    #[command(flatten)]
    pub(crate) fresh: FreshArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SkillsCommand {
    /// List the skills with their tools, steps and files; the same as `skills` alone
    List(OfflineArgs),
    /// Install the skill of an archive into the project's skills folder. It is checked first, and
    /// installed as a whole or not at all
    Install {
        /// A .zip or .tar.gz file
        file: PathBuf,
        /// Replace an installed skill of the same name
        #[arg(long)]
        force: bool,
    },
    /// Delete a skill's folder from the project's skills folder
    Remove {
        /// The name of the skill
        skill: String,
    },
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::line().debug_assert();
    }

    #[test]
    fn the_help_lists_all_commands_in_their_order() {
        let command = super::Cli::command();
        let listed: Vec<_> =
            super::HELP.lines().filter_map(|line| line.strip_prefix("  ")).collect();
        let commands = command.get_subcommands();
        let commands =
            commands.map(|sub| format!("{:<8} {}", sub.get_name(), sub.get_about().unwrap()));
        let help = "help     Print this message or the help of the given subcommand(s)".to_owned();
        assert_eq!(listed, commands.chain([help]).collect::<Vec<_>>());
    }
}
