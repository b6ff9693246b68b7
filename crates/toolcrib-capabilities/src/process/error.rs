use std::{io, path::PathBuf};

use super::{sandbox::SandboxTier, support::UnsupportedError};

/// Why a program was not run, or could not be awaited.
///
/// A program that ran and failed is not an error; see [`ProcessEnd`](super::ProcessEnd).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProcessError {
    /// The handle does not permit this program.
    #[error("{program} is not among the programs that this handle may run")]
    NotAllowed {
        /// The program.
        program: PathBuf,
    },
    /// The path of the program or the folder is not absolute.
    #[error("{path} is not an absolute path; resolve it first")]
    NotAbsolute {
        /// The path.
        path: PathBuf,
    },
    /// A NUL byte, which terminates the system's strings.
    #[error("{place} contains a NUL byte, which cannot be passed to a program")]
    Nul {
        /// The place, such as `argument 2`.
        place: String,
    },
    /// An invalid name of an environment variable.
    #[error("`{name}` is not a valid name in the environment: it is empty or contains a `=`")]
    Variable {
        /// The name.
        name: String,
    },
    /// The program does not exist.
    #[error("the program {program} does not exist")]
    NotFound {
        /// The program.
        program: PathBuf,
    },
    /// It is a script, and the interpreter of its first line is missing.
    #[error("the interpreter that {program} names does not exist")]
    NoInterpreter {
        /// The program.
        program: PathBuf,
    },
    /// The path is a folder.
    #[error("{program} is a folder, not a program")]
    IsFolder {
        /// The path.
        program: PathBuf,
    },
    /// It is not executable, or not in a format that the system can execute.
    #[error("{program} cannot be executed: {source}")]
    NotExecutable {
        /// The program.
        program: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Arguments and environment exceed the system's limit.
    #[error(
        "{program} was passed {bytes} bytes of arguments and environment, which exceeds the limit \
         of this system; pass large values on stdin"
    )]
    TooLong {
        /// The program.
        program: PathBuf,
        /// The size, without the terminating bytes.
        bytes: usize,
    },
    /// The working folder is missing, not a folder, or not accessible.
    #[error("the working folder {path} cannot be entered: {source}")]
    WorkingDir {
        /// The folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Its child processes could outlive it.
    #[error(
        "child processes of {program} could outlive it on this machine, so it was not run: \
        {source}"
    )]
    Unsupported {
        /// The program.
        program: PathBuf,
        /// The reason.
        source: UnsupportedError,
    },
    /// This machine does not enforce the program's sandbox.
    #[error("{program} was not run, because its sandbox `{tier}` is not enforced: {source}")]
    Sandbox {
        /// The program.
        program: PathBuf,
        /// The tier.
        tier: SandboxTier,
        /// The missing feature, and how to get it.
        source: UnsupportedError,
    },
    /// A folder of the program's sandbox is missing or cannot be granted.
    #[error("the sandbox cannot give access to {path}: {source}")]
    SandboxFolder {
        /// The folder or file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The system could not start it.
    #[error("{program} could not be started; the system did not {action}: {source}")]
    Start {
        /// The program.
        program: PathBuf,
        /// The failed action, as a verb.
        action: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// Cancelled before it was started.
    #[error("cancelled before {program} was started")]
    Cancelled {
        /// The program.
        program: PathBuf,
    },
    /// It ran, but the host could not wait for it. It was killed.
    #[error("{program} was started and could not be waited for: {source}")]
    Lost {
        /// The program.
        program: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}
