//! The arguments of `mcp`.

use clap::Subcommand;

use super::{CallArgs, IdentityArgs, McpAddArgs, OfflineArgs};

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// List the tools of every server, and its connection state. The exit code is 0 even if some
    /// servers cannot be reached
    #[command(after_help = "\
Examples:
  toolcrib mcp list -p my-agent
  toolcrib mcp list --import .mcp.json --json")]
    List(OfflineArgs),
    /// List the tools of one server, and say which are offered, which are withheld, and why. The
    /// exit code is 1 if it cannot be reached
    #[command(after_help = "\
Examples:
  toolcrib mcp test git -p my-agent
  toolcrib mcp test git --import .mcp.json
  toolcrib mcp test docs --as ana")]
    Test {
        /// The server's name
        server: String,
        #[command(flatten)]
        whom: IdentityArgs,
    },
    /// Add a server to the project's file
    #[command(after_help = "\
Examples:
  toolcrib mcp add git uvx mcp-server-git --repository .
  toolcrib mcp add --set 'Authorization=Bearer ${DOCS_TOKEN}' docs https://docs.example/mcp

Options come before the program. Comments of the file stay. A secret is written as `${VARIABLE}`, a \
variable of the environment.")]
    Add(McpAddArgs),
    /// Remove a server from the project's file
    Remove {
        /// The server's name
        server: String,
    },
    /// Show a server of the project's file, without values that may be secrets
    Get {
        /// The server's name
        server: String,
    },
    /// Show what a server has written to stderr, also while another command uses it
    #[command(after_help = "\
Examples:
  toolcrib mcp logs git -p my-agent
  toolcrib mcp logs git --follow

`run`, `chat`, `call` and `serve` write it to the state folder, redacted, each line with its time: at \
most two files of 1 MiB for each server.")]
    Logs {
        /// The server's name
        server: String,
        /// Wait for further lines, until Ctrl-C
        #[arg(short, long)]
        follow: bool,
        /// Show only this many of the last lines
        #[arg(short = 'n', long, value_name = "NUMBER", default_value_t = 100)]
        lines: usize,
    },
    /// Call a tool by its name on the server, through the same pipe as a model's call
    #[command(after_help = "\
Examples:
  toolcrib mcp call git git_log repo_path=. max_count=3 --import .mcp.json")]
    Call {
        /// The server's name
        server: String,
        #[command(flatten)]
        call: CallArgs,
    },
    /// Log in to a server that requires authorization: opens a browser and waits for the consent
    #[command(after_help = "\
Examples:
  toolcrib mcp login github -p my-agent
  toolcrib mcp login github --import .mcp.json --no-browser
  toolcrib mcp login github --as ana --scope repo

The browser must run on this machine: its answer arrives on the loopback address. Tokens are stored for \
this user, and refreshed. A gateway uses those of the caller's principal (`--as`).")]
    Login {
        /// The server's name
        server: String,
        /// Print the address, and open no browser
        #[arg(long)]
        no_browser: bool,
        /// Request this scope too; may be repeated
        #[arg(long = "scope", value_name = "SCOPE")]
        scopes: Vec<String>,
        #[command(flatten)]
        whom: IdentityArgs,
    },
    /// Log out of a server: remove its tokens here, and revoke them if its authorization server
    /// supports that
    #[command(after_help = "\
Examples:
  toolcrib mcp logout github -p my-agent
  toolcrib mcp logout github --as ana")]
    Logout {
        /// The server's name
        server: String,
        #[command(flatten)]
        whom: IdentityArgs,
    },
    /// Show the logins to servers: scopes, and for how long. Requests nothing
    #[command(after_help = "\
Examples:
  toolcrib mcp status -p my-agent
  toolcrib mcp status github --as ana --json")]
    Status {
        /// The server's name [default: all servers at a URL]
        server: Option<String>,
        #[command(flatten)]
        whom: IdentityArgs,
    },
}
