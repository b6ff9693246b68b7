use std::{fmt, path::PathBuf};

use toolcrib_core::InvalidTool;
use toolcrib_scope::process::FindProgramError;

use crate::{PartError, TemplateError, ToolErrors, making::declare_or_use};

/// All that is wrong with one command tool, part by part; never empty.
pub type CommandToolErrors = ToolErrors<CommandToolError>;

/// A part of what is declared of a command tool. Positions count from 0; texts count from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CommandToolPart {
    /// What every tool has: name, description, input schema.
    Declaration,
    /// A property of the input schema.
    Parameter(String),
    /// The program.
    Program,
    /// An item of the arguments.
    Arg {
        /// Where it stands.
        position: usize,
    },
    /// The parameter on which an item of the arguments depends.
    ArgWhen {
        /// Where the item stands.
        position: usize,
    },
    /// A variable of the environment.
    Env {
        /// Where it stands among those that are declared.
        position: usize,
        /// Its name, as declared.
        name: String,
    },
    /// A variable that is passed on.
    InheritEnv {
        /// Where it stands among those that are declared.
        position: usize,
        /// Its name, as declared.
        name: String,
    },
    /// The working folder.
    WorkingDir,
    /// The cap of the outputs.
    MaxOutputBytes,
    /// The limit of memory.
    MemoryMax,
    /// The limit on the number of processes.
    ProcessesMax,
    /// The limit on the size of a file.
    FileMax,
    /// The limit on CPU time.
    CpuMax,
    /// The exit codes that are no failure.
    OkExitCodes,
}

impl fmt::Display for CommandToolPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Declaration => f.write_str("the declaration"),
            Self::Parameter(name) => write!(f, "the parameter `{name}`"),
            Self::Program => f.write_str("the program"),
            Self::Arg { position } => write!(f, "item {} of `args`", position + 1),
            Self::ArgWhen { position } => write!(f, "`when` of item {} of `args`", position + 1),
            Self::Env { name, .. } => {
                write!(f, "the environment variable `{}`", name.escape_debug())
            }
            Self::InheritEnv { name, .. } => {
                write!(f, "the variable `{}` of `inherit_env`", name.escape_debug())
            }
            Self::WorkingDir => f.write_str("the working folder"),
            Self::MaxOutputBytes => f.write_str("`max_output_bytes`"),
            Self::MemoryMax => f.write_str("`memory_max`"),
            Self::ProcessesMax => f.write_str("`processes_max`"),
            Self::FileMax => f.write_str("`file_max`"),
            Self::CpuMax => f.write_str("`cpu_max`"),
            Self::OkExitCodes => f.write_str("`ok_exit_codes`"),
        }
    }
}

/// One thing that is wrong with a command tool, and where.
pub type CommandToolError = PartError<CommandToolPart, CommandToolProblem>;

impl From<InvalidTool> for CommandToolError {
    fn from(error: InvalidTool) -> Self {
        Self { part: CommandToolPart::Declaration, offset: None, problem: error.into() }
    }
}

/// What is wrong with a part of a command tool.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommandToolProblem {
    /// It can be offered to no model.
    #[error(transparent)]
    Definition(#[from] InvalidTool),
    /// There is no such program.
    #[error("{}", program_problem(.0))]
    Program(#[from] FindProgramError),
    /// A text with places that cannot be read.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// A place for what is no property of the input schema.
    #[error("there is no parameter `{parameter}`; {}", declare_or_use(declared))]
    UnknownParameter {
        /// The name in the place.
        parameter: String,
        /// The parameters that there are.
        declared: Vec<String>,
    },
    /// A property of the input schema that the program never sees.
    #[error(
        "nothing uses it; write `{{{parameter}}}` in an item of `args`, pass all as JSON on stdin, or \
         drop it"
    )]
    UnusedParameter {
        /// The property.
        parameter: String,
    },
    /// An argument where only secrets may stand.
    #[error(
        "the environment takes no arguments of a call; pass `{parameter}` in `args` or on stdin, and \
         write `{{{{` for the brace itself"
    )]
    PlaceInEnv {
        /// The name in the place.
        parameter: String,
    },
    /// No variable can be called so.
    #[error("a variable's name is not empty and holds neither `=` nor NUL bytes")]
    VariableName,
    /// A variable that is declared before.
    #[error("this variable is declared twice; a program would see one of the values")]
    VariableTwice,
    /// A NUL byte, where the system's texts end.
    #[error("it holds a NUL byte, which no program can be passed")]
    Nul,
    /// There is no such folder.
    #[error("there is no folder {path}")]
    NoFolder {
        /// The folder.
        path: PathBuf,
    },
    /// Nothing could be kept, or no program could start.
    #[error("it is 0; it must be at least 1")]
    Zero,
    /// Every call would fail.
    #[error("it names no exit code, so every call would fail; 0 is the usual one")]
    NoExitCode,
    /// A program cannot end with it.
    #[error("{code} is no exit code; they lie between 0 and 255")]
    ExitCode {
        /// The code.
        code: i32,
    },
}

/// Without the `PATH` itself, which is long and says little.
fn program_problem(error: &FindProgramError) -> String {
    match error {
        FindProgramError::NotOnPath { name, .. } if name.contains(char::is_whitespace) => format!(
            "there is no program `{name}` on the PATH; `program` is one name, and what is \
             passed to it stands in `args`"
        ),
        FindProgramError::NotOnPath { name, .. } => format!(
            "there is no program `{name}` on the PATH; install it, or name its file with a `/` in it"
        ),
        other => other.to_string(),
    }
}
