//! A toolset with a shell: a model runs command lines in a sandbox, to their end or as jobs in the
//! background.
//!
//! A command line is one argument of the shell, which runs like the program of a
//! [`command`](crate::command) tool: with the declared environment, limits and sandbox. Stdout and
//! stderr are one output, in the order in which they were written.
//!
//! # Results
//! An output that is longer than the result's room is shown with its beginning, its end, and of the part
//! between them the lines that report failures. Where an engine keeps artifacts, the whole output is
//! one, and the result names it.
//!
//! # Jobs
//! A job belongs to the conversation that started it, and ends with it: with the turn of a conversation
//! without a name, and with the engine. Other conversations cannot see it.

mod jobs;
pub(crate) mod run;
mod scan;
mod shown;
pub(crate) mod table;

use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_core::{Annotations, Tool};

use self::run::Body;
pub(crate) use self::table::{DeclaredShell, KIND};
pub use self::{jobs::Jobs, table::DEFAULT_SHELLS};
use crate::{
    Declaration, ToolErrors,
    command::{CheckedCommand, CommandToolSpec, prepare},
    declaration::{Parameters, closed, prefixed},
};

/// The names of parameters.
const COMMAND: &str = "command";
const FOLDER: &str = "folder";
const TIMEOUT: &str = "timeout_seconds";
const JOB: &str = "job";
const AFTER: &str = "after";
const UNTIL: &str = "until";

/// The label of the toolset, unless a project gives it another one.
pub const TOOLSET: &str = "terminal";

/// The time of one command or of one wait, unless the call sets it, in seconds.
const DEFAULT_SECONDS: u64 = 120;

/// The default of the most time of one call.
const MOST_TIME: Duration = Duration::from_secs(600);

/// The time that a call has after its command was stopped.
const STOP_TIME: Duration = Duration::from_secs(10);

/// A tool of the toolset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminalTool {
    /// Runs a command line to its end.
    Run,
    /// Starts a job.
    Start,
    /// Lists the jobs.
    List,
    /// Reads a job's output.
    Read,
    /// Waits for a job's end, or for a text in its output.
    Wait,
    /// Ends a job.
    Stop,
}

impl TerminalTool {
    /// Every tool of the set.
    pub const ALL: [Self; 6] =
        [Self::Run, Self::Start, Self::List, Self::Read, Self::Wait, Self::Stop];

    /// Its name, after the prefix of the toolset, if it has one.
    pub fn name(self, prefix: Option<&str>) -> String {
        let name = match self {
            Self::Run => "terminal",
            Self::Start => "start_job",
            Self::List => "list_jobs",
            Self::Read => "read_job",
            Self::Wait => "wait_for_job",
            Self::Stop => "stop_job",
        };
        prefixed(prefix, name)
    }

    /// Whether it only shows jobs.
    pub fn is_read_only(self) -> bool {
        matches!(self, Self::List | Self::Read | Self::Wait)
    }

    fn runs_commands(self) -> bool {
        matches!(self, Self::Run | Self::Start)
    }

    /// Its declaration: its name, description and parameters, and all else as in `base`. The
    /// description of `base` says what the shell is for; it may be empty.
    pub fn declaration(self, base: &Declaration, prefix: Option<&str>) -> Declaration {
        let most = base.timeout.unwrap_or(MOST_TIME);
        let does = self.does(prefix);
        let description = if self.runs_commands() { base.described(&does) } else { does };
        Declaration {
            name: self.name(prefix),
            description,
            annotations: Annotations {
                read_only: self.is_read_only(),
                destructive: self.runs_commands(),
                idempotent: !self.runs_commands(),
            },
            input_schema: closed(self.parameters(most)),
            timeout: Some(most + STOP_TIME),
            ..base.in_toolset(TOOLSET)
        }
    }

    fn does(self, prefix: Option<&str>) -> String {
        match self {
            Self::Run => format!(
                "Runs a command line in a shell and returns its output and exit code. It has no input, \
                 and all that it starts in the background ends with it. For a server, or work that takes \
                 minutes, use {}.",
                Self::Start.name(prefix)
            ),
            Self::Start => format!(
                "Starts a command line in the background and returns the job's name. Use it for a server, \
                 or work that takes minutes; {} shows its output.",
                Self::Read.name(prefix)
            ),
            Self::List => format!(
                "Lists the background jobs, each with its name, command and state. Use it when you do not \
                 know the name of a job that {} began.",
                Self::Start.name(prefix)
            ),
            Self::Read => format!(
                "Shows what a background job has printed, and whether it still runs. Use {} instead if \
                 you need its end.",
                Self::Wait.name(prefix)
            ),
            Self::Wait => {
                "Waits until a background job ends, or until its output contains a text. Use \
                           it before you rely on the work of the job."
                    .to_owned()
            }
            Self::Stop => {
                "Kills a background job with all its processes. Use it once the job is no \
                           longer needed."
                    .to_owned()
            }
        }
    }

    /// The required parameters, and all of them.
    fn parameters(self, most: Duration) -> Parameters {
        let command = || {
            let about = "The command line, such as `ls -l src | head`.";
            (COMMAND, json!({ "type": "string", "minLength": 1, "description": about }))
        };
        let folder = || {
            let about = "The folder to run it in, from the working folder; that one by default.";
            (FOLDER, json!({ "type": "string", "description": about }))
        };
        let most = most.as_secs().max(1);
        let timeout = |about: &str| {
            let default = DEFAULT_SECONDS.min(most);
            let about = json!({
                "type": "integer", "minimum": 1, "maximum": most, "default": default,
                "description": about,
            });
            (TIMEOUT, about)
        };
        let job = || (JOB, json!({ "type": "string", "description": "The name of the job." }));
        match self {
            Self::Run => {
                let timeout = timeout("The time after which the command is stopped.");
                (vec![COMMAND], vec![command(), folder(), timeout])
            }
            Self::Start => (vec![COMMAND], vec![command(), folder()]),
            Self::List => (vec![], vec![]),
            Self::Read => {
                let about =
                    "The position that an earlier result named: only later output is shown.";
                let after = json!({ "type": "integer", "minimum": 0, "description": about });
                (vec![JOB], vec![job(), (AFTER, after)])
            }
            Self::Wait => {
                let about = "The text to wait for, such as `listening on`; its end by default.";
                let until = json!({ "type": "string", "minLength": 1, "description": about });
                let timeout = timeout("The time to wait; the job continues after it.");
                (vec![JOB], vec![job(), (UNTIL, until), timeout])
            }
            Self::Stop => (vec![JOB], vec![job()]),
        }
    }

    /// Makes the tool, of a spec with the shell as its program and with this tool's
    /// [`declaration`](Self::declaration). The tools of one toolset share their `jobs`.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn build(self, spec: CommandToolSpec, jobs: &Jobs) -> Result<Tool, ToolErrors> {
        let CheckedCommand { declaration, body, capabilities, found } = prepare(spec, false);
        let name = declaration.name.clone();
        let most = declaration.timeout.map(|timeout| timeout.saturating_sub(STOP_TIME));
        let shell = body.program.to_string_lossy().into_owned();
        let body = Body {
            tool: self,
            program: body.into(),
            jobs: jobs.clone(),
            most: most.unwrap_or(MOST_TIME),
        };
        let capabilities = capabilities.process([shell]);
        let builder = declaration.into_builder().project_text();
        let mut builder = builder.capabilities(capabilities).own_handles();
        if self.runs_commands() {
            builder = builder.open_world();
        }
        found.or_tool(name, builder.handler(move |args: Value, cx| body.clone().call(args, cx)))
    }
}
