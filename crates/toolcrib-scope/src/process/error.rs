use std::{io, path::PathBuf};

use super::support::Unsupported;

/// Why a program was not run, or could not be attended to its end.
///
/// A program that ran and failed is none of these; see [`Ended`](super::Ended).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProcessError {
    /// The handle does not reach to this program.
    #[error("{program} is not among the programs that this handle may run")]
    NotAllowed {
        /// The program.
        program: PathBuf,
    },
    /// It is not said where the program or the folder stands.
    #[error("{path} is no absolute path; resolve it first")]
    NotAbsolute {
        /// The path.
        path: PathBuf,
    },
    /// A NUL byte, where the system's texts end.
    #[error("{place} holds a NUL byte, which no program can be passed")]
    Nul {
        /// Where, such as `argument 2`.
        place: String,
    },
    /// A name of the environment that is none.
    #[error("`{name}` cannot be a name in the environment: it is empty or holds a `=`")]
    Variable {
        /// The name.
        name: String,
    },
    /// There is no such program.
    #[error("there is no program {program}")]
    NotFound {
        /// The program.
        program: PathBuf,
    },
    /// It is a script, and what its first line names is missing.
    #[error("{program} is there, and the interpreter that it names is not")]
    NoInterpreter {
        /// The program.
        program: PathBuf,
    },
    /// A folder is no program.
    #[error("{program} is a folder and no program")]
    IsFolder {
        /// The path.
        program: PathBuf,
    },
    /// It may not be executed, or is nothing that the system can execute.
    #[error("{program} cannot be executed: {source}")]
    NotExecutable {
        /// The program.
        program: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Arguments and environment are more than the system passes on.
    #[error(
        "{program} was passed {bytes} bytes of arguments and environment, which is more than this \
         system passes on; pass large values on stdin"
    )]
    TooLong {
        /// The program.
        program: PathBuf,
        /// How many, the terminating ones not counted.
        bytes: usize,
    },
    /// The folder to run in is missing, is none, or may not be entered.
    #[error("the working folder {path} cannot be entered: {source}")]
    WorkingDir {
        /// The folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// What the program starts could outlive it.
    #[error("what {program} starts could outlive it here, so it was not run: {source}")]
    Unsupported {
        /// The program.
        program: PathBuf,
        /// Why.
        source: Unsupported,
    },
    /// The system would not start it.
    #[error("{program} could not be started; the system did not {action}: {source}")]
    Start {
        /// The program.
        program: PathBuf,
        /// What was tried, as a verb.
        action: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// Cancelled before it was started.
    #[error("cancelled before {program} was started")]
    Cancelled {
        /// The program.
        program: PathBuf,
    },
    /// It ran, and the host could not wait for it. It was killed.
    #[error("{program} was started and could not be waited for: {source}")]
    Lost {
        /// The program.
        program: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}
