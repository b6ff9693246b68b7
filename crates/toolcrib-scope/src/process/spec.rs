use std::{ffi::OsString, path::PathBuf, time::Duration};

use tokio::sync::mpsc::Sender;

use super::ProcessLimits;

/// How much of each output is kept unless a spec says otherwise: 1 MiB.
pub const DEFAULT_MAX_OUTPUT_BYTES: usize = 1024 * 1024;

/// How long a program that is asked to end has between SIGTERM and SIGKILL.
pub const TERM_GRACE: Duration = Duration::from_millis(100);

/// A program and what it is started with. Begin with [`new`](Self::new) and set fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessSpec {
    /// The program's file, absolute; [`find_program`](super::find_program) resolves names. Also what
    /// the program reads as its own name.
    pub program: PathBuf,
    /// Its arguments, each passed as it is.
    pub args: Vec<OsString>,
    /// Its whole environment; empty unless set. Of several values for one name, most programs take
    /// the first.
    pub env: Vec<(OsString, OsString)>,
    /// The folder that it runs in, absolute.
    pub working_dir: PathBuf,
    /// What the kernel does not let it exceed; [`ProcessLimits::default`] unless set.
    pub limits: ProcessLimits,
    /// Whether to run it even where what it starts could outlive it; see
    /// [`support`](super::support()).
    pub allow_stray_children: bool,
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
        }
    }
}

/// A program that is run to its end: what it is fed, and how much of what it writes is kept. A
/// [`ProcessSpec`] becomes one without input.
#[derive(Debug, Clone)]
pub struct RunSpec {
    /// The program.
    pub process: ProcessSpec,
    /// What it reads on stdin; without it, stdin is empty. One that does not read it all may.
    pub stdin: Option<Vec<u8>>,
    /// How much is kept of stdout, and of stderr; [`DEFAULT_MAX_OUTPUT_BYTES`] unless set. What is
    /// beyond is read and thrown away, so that the program goes on and its end can be told, but for
    /// the last [`TAIL_BYTES`](super::TAIL_BYTES).
    pub max_output_bytes: usize,
    /// Where all of stdout goes, piece by piece and from its beginning, once it is more than is kept.
    /// Whoever is slow to take it makes the program wait. Nowhere unless set.
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
