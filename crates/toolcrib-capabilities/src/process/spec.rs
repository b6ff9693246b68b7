use std::{ffi::OsString, path::PathBuf, time::Duration};

use tokio::sync::mpsc::Sender;

use super::{ProcessLimits, Sandbox};

/// The default of the kept bytes of each output: 1 MiB.
pub const DEFAULT_MAX_OUTPUT_BYTES: usize = 1024 * 1024;

/// The time between SIGTERM and SIGKILL.
pub const TERM_GRACE: Duration = Duration::from_millis(100);

/// A program and its start parameters. Begin with [`new`](Self::new) and set fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessSpec {
    /// The program's file, absolute; [`find_program`](super::find_program) resolves names. Also its
    /// `argv[0]`.
    pub program: PathBuf,
    /// Its arguments, passed unchanged.
    pub args: Vec<OsString>,
    /// Its whole environment; empty unless set. Of several values for one name, most programs take
    /// the first.
    pub env: Vec<(OsString, OsString)>,
    /// Its working folder, absolute.
    pub working_dir: PathBuf,
    /// Limits enforced by the kernel; [`ProcessLimits::default`] unless set.
    pub limits: ProcessLimits,
    /// Whether to run it even if its child processes could outlive it; see
    /// [`support`](super::support()).
    pub allow_stray_children: bool,
    /// Its sandbox; the tier [`Tree`](super::SandboxTier::Tree) unless set. The tiers above it need
    /// a namespace, whether or not stray children are allowed.
    pub sandbox: Sandbox,
}

impl ProcessSpec {
    /// A program without arguments and environment; see the fields for the other defaults.
    pub fn new(program: impl Into<PathBuf>, working_dir: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            working_dir: working_dir.into(),
            limits: ProcessLimits::default(),
            allow_stray_children: false,
            sandbox: Sandbox::default(),
        }
    }
}

/// A program that is run to its end, with its input and output limits. A [`ProcessSpec`] converts
/// to one without input.
#[derive(Debug, Clone)]
pub struct RunSpec {
    /// The program.
    pub process: ProcessSpec,
    /// Its stdin; empty by default. The program need not read all of it.
    pub stdin: Option<Vec<u8>>,
    /// The number of bytes kept of stdout, and of stderr; [`DEFAULT_MAX_OUTPUT_BYTES`] unless set.
    /// The rest is read and discarded, so that the program continues, except for the last
    /// [`TAIL_BYTES`](super::TAIL_BYTES).
    pub max_output_bytes: usize,
    /// The receiver of the whole stdout, in chunks from its beginning, once it exceeds the kept
    /// size. A slow receiver makes the program wait. None unless set.
    pub whole_stdout: Option<Sender<Vec<u8>>>,
}

impl From<ProcessSpec> for RunSpec {
    fn from(process: ProcessSpec) -> Self {
        Self {
            process,
            stdin: None,
            max_output_bytes: DEFAULT_MAX_OUTPUT_BYTES,
            whole_stdout: None,
        }
    }
}
