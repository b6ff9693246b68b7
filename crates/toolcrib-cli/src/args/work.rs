//! The arguments of the commands around workers.

use std::{num::NonZeroUsize, time::Duration};

use clap::{Args, Subcommand};

use super::{IdentityArgs, ModelArgs, sessions::session_word};

#[derive(Debug, Subcommand)]
pub(crate) enum WorkCommand {
    /// Submit a message to a session, for a worker to run
    #[command(after_help = "\
Examples:
  toolcrib submit \"I was charged twice for order 1042\"
  toolcrib submit --session refunds --as ann @message.txt
  toolcrib follow $(toolcrib submit -q \"Where is order 1042?\")

It prints the id of the session, and does not wait for the run. Known secrets in the message are \
replaced before it is stored. A session may have 100 messages that wait, each of which is a turn. See \
docs/sessions.md#workers.")]
    Submit(SubmitArgs),
    /// Run submitted messages, and continue the runs of processes that died
    #[command(after_help = "\
Examples:
  toolcrib worker -p my-agent --concurrency 8
  toolcrib worker --store \"$DATABASE_URL\" --as ann
  toolcrib worker --json > runs.jsonl

It takes the sessions of its store that have a submitted message, a call that was approved or denied, or \
an open turn whose process has died, up to --concurrency at the same time, and prints a line for each run. \
With --json a line is the JSON object of `run`. Claims are not stored: roles come from the principal and the tenant.

Ctrl-C or SIGTERM ends it: it takes no more sessions, and waits for those that it has, at most for the \
time of --grace. Then it leaves them to other workers, which continue them as after a crash: exit code 0. \
A second signal ends it at once: exit code 3. See docs/sessions.md#workers.")]
    Worker(WorkerArgs),
    /// Print the messages of a session as they are stored, until its run ends
    #[command(after_help = "\
Examples:
  toolcrib follow refunds
  toolcrib follow 3f2a91c0d4e5 --as ann --json

It begins with the last turn, or with the next one if a submitted message waits and no turn is open, \
and ends when no turn runs and no message waits. It goes on while calls wait for approval. With --json each line is one object, \
of the type `turn`, `message` or `end`. The exit code is that of `run`, except that an empty answer is 1; \
it waits for approvals instead of ending with 4.")]
    Follow(FollowArgs),
    /// Cancel the run of a session, and its submitted messages, on whatever machine
    #[command(after_help = "\
Examples:
  toolcrib cancel refunds
  toolcrib cancel 3f2a91c0d4e5 --as ann --json

The process that runs it learns it from the store within seconds. A call that has begun may still have its \
effect. Calls of the session that wait for approval are withdrawn.")]
    Cancel(CancelArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SubmitArgs {
    /// The message, as of `run`: words, @FILE, or `-` for standard input
    #[arg(value_name = "MESSAGE")]
    pub(crate) words: Vec<String>,
    /// The session, by id or name, which is created if there is none of this name [default: a new one]
    #[arg(long, value_name = "SESSION", value_parser = session_word)]
    pub(crate) session: Option<String>,
    /// The personality of a new session [default: the one named default]
    #[arg(long, value_name = "PERSONALITY")]
    pub(crate) personality: Option<String>,
    #[command(flatten)]
    pub(crate) whom: IdentityArgs,
}

#[derive(Debug, Args)]
pub(crate) struct WorkerArgs {
    /// Run at most this number of sessions at the same time
    #[arg(long, value_name = "NUMBER", default_value = "4")]
    pub(crate) concurrency: NonZeroUsize,
    /// Wait for running sessions for at most this time after a signal
    #[arg(long, value_name = "DURATION", default_value = "20s", value_parser = humantime::parse_duration)]
    pub(crate) grace: Duration,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// Run only sessions of this principal and tenant [default: those of all]
    #[command(flatten)]
    pub(crate) whom: IdentityArgs,
}

#[derive(Debug, Args)]
pub(crate) struct FollowArgs {
    /// The id or name
    #[arg(value_name = "SESSION", value_parser = session_word)]
    pub(crate) session: String,
    #[command(flatten)]
    pub(crate) whom: IdentityArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    /// The id or name
    #[arg(value_name = "SESSION", value_parser = session_word)]
    pub(crate) session: String,
    #[command(flatten)]
    pub(crate) whom: IdentityArgs,
}
