//! Programs that are run so that all they start ends with them.
//!
//! [`Processes::run`] starts a program, never a shell, feeds it and takes what it writes until it has
//! ended. Nothing of the host reaches it but what its [`ProcessSpec`] says: not the environment, no
//! open file but the three standard ones, no ignored or blocked signal. It runs in a session of its
//! own, away from the host's terminal, with a umask that lets nobody else write what it makes, and
//! leaves no core dumps.
//!
//! # How it ends
//! On Linux it runs in a PID namespace of its own. Whatever it started, daemons included, is gone
//! when `run` returns, and is killed
//! - when the program ends by itself;
//! - at cancellation: the program's group gets SIGTERM, and what is left [`TERM_GRACE`] later is
//!   killed;
//! - at once, when the future of `run` is dropped, or when the host dies, by SIGKILL too.
//!
//! What the program has started elsewhere, by asking a service such as Docker or cron, is not its
//! descendant and stays. So may that of a program that has the rights to leave its namespace, as
//! root's do.
//!
//! Root has PID namespaces by right. Anybody else gets one inside a user namespace: user and group
//! are the same there, but files of others seem to belong to nobody, and set-user-ID programs do
//! not change the user. Where the kernel allows it, `/proc` shows only the namespace, so that the
//! program cannot read the environment of the host; in many containers it does not. Mounts that a
//! program makes are seen by nobody else.
//!
//! Where no namespace can be had, [`support`] says why, and `run` refuses unless
//! [`allow_stray_children`](ProcessSpec::allow_stray_children) is set. Then the program's group is
//! killed instead: what left the group lives on, and so does everything if the host is killed.
//!
//! Needs a tokio runtime with I/O and time enabled.

mod captured;
mod child;
mod error;
mod find;
mod running;
mod stage;
mod start;
mod support;
mod tree;

use std::{collections::HashSet, ffi::OsString, fmt, path::PathBuf, sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

pub use self::{
    captured::{Captured, TAIL_BYTES},
    error::ProcessError,
    find::{FindProgramError, find_program, inherited},
    support::{Unsupported, support},
};

/// How much of each output is kept unless a spec says otherwise: 1 MiB.
pub const DEFAULT_MAX_OUTPUT_BYTES: usize = 1024 * 1024;

/// How much memory a process of a program may have unless a spec says otherwise: 1 GiB.
pub const DEFAULT_MEMORY_MAX: u64 = 1024 * 1024 * 1024;

/// How long a cancelled program has between SIGTERM and SIGKILL.
pub const TERM_GRACE: Duration = Duration::from_millis(100);

/// One run of a program. Start from [`new`](Self::new) and set fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessSpec {
    /// The program's file, absolute; [`find_program`] resolves names. Also what the program reads as
    /// its own name.
    pub program: PathBuf,
    /// Its arguments, each passed as it is.
    pub args: Vec<OsString>,
    /// Its whole environment; empty unless set. Of several values for one name, most programs take
    /// the first.
    pub env: Vec<(OsString, OsString)>,
    /// The folder that it runs in, absolute.
    pub working_dir: PathBuf,
    /// What it reads on stdin; without it, stdin is empty. One that does not read it all may.
    pub stdin: Option<Vec<u8>>,
    /// How much is kept of stdout, and of stderr; [`DEFAULT_MAX_OUTPUT_BYTES`] unless set. What is
    /// beyond is read and thrown away, so that the program goes on and its end can be told, but for
    /// the last [`TAIL_BYTES`].
    pub max_output_bytes: usize,
    /// How many bytes of address space each of its processes may have; [`DEFAULT_MEMORY_MAX`] unless
    /// set, the host's own limit when `None`. Address space is more than memory: some runtimes (Node,
    /// the JVM) reserve far more than they use, and need more or `None`. The limit is one process's;
    /// several have it each.
    pub memory_max: Option<u64>,
    /// Whether to run it even where what it starts could outlive it; see [`support`].
    pub allow_stray_children: bool,
}

impl ProcessSpec {
    /// A program without arguments, environment and input; see the fields for the other defaults.
    pub fn new(program: impl Into<PathBuf>, working_dir: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            working_dir: working_dir.into(),
            stdin: None,
            max_output_bytes: DEFAULT_MAX_OUTPUT_BYTES,
            memory_max: Some(DEFAULT_MEMORY_MAX),
            allow_stray_children: false,
        }
    }
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ended {
    /// By itself, with an exit code from 0 to 255.
    Code(i32),
    /// By a signal, of this number.
    Signal(i32),
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(number) => match signal_name(*number) {
                Some(name) => f.write_str(name),
                None => write!(f, "signal {number}"),
            },
        }
    }
}

/// What came of a program that ran.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finished {
    /// How it ended.
    pub ended: Ended,
    /// Whether it was asked to end, by cancellation, before it did. It may still have ended as it
    /// would have.
    pub cut_off: bool,
    /// What it wrote to stdout.
    pub stdout: Captured,
    /// What it wrote to stderr.
    pub stderr: Captured,
    /// From its start to the end of all that it started.
    pub duration: Duration,
}

/// An output of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Output {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// The right to run programs: all, or some. Cheap to clone; it cannot be widened.
#[derive(Debug, Clone)]
pub struct Processes {
    programs: Option<Arc<HashSet<PathBuf>>>,
}

impl Processes {
    /// Any program.
    pub fn any() -> Self {
        Self { programs: None }
    }

    /// These programs, by absolute path as [`ProcessSpec::program`] has it, of those that it may
    /// run.
    #[must_use]
    pub fn only(&self, programs: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        let asked = programs.into_iter().map(Into::into);
        let granted = |program: &PathBuf| self.may_run(program);
        Self { programs: Some(Arc::new(asked.filter(granted).collect())) }
    }

    fn may_run(&self, program: &PathBuf) -> bool {
        self.programs.as_ref().is_none_or(|programs| programs.contains(program))
    }

    /// Runs a program to its end; see the [module](self) for what that means. `on_output` is shown
    /// what is kept of the outputs, as it comes, in pieces of any size; let it be short.
    ///
    /// # Errors
    /// [`ProcessError`] when it could not be started. A program that fails is no error here:
    /// [`Finished::ended`] says how.
    pub async fn run(
        &self,
        spec: ProcessSpec,
        cancellation: &CancellationToken,
        on_output: impl FnMut(Output, &[u8]) + Send,
    ) -> Result<Finished, ProcessError> {
        let program = spec.program.clone();
        if !self.may_run(&program) {
            return Err(ProcessError::NotAllowed { program });
        }
        if cancellation.is_cancelled() {
            return Err(ProcessError::Cancelled { program });
        }
        // Forking a large host takes its time, and so does the kernel with namespaces.
        let started = match tokio::task::spawn_blocking(move || start::start(spec)).await {
            Ok(started) => started?,
            Err(error) => {
                let (action, source) = ("find a thread for it", error.into());
                return Err(ProcessError::Start { program, action, source });
            }
        };
        started
            .attend(cancellation, on_output)
            .await
            .map_err(|source| ProcessError::Lost { program, source })
    }
}

fn signal_name(number: i32) -> Option<&'static str> {
    Some(match number {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGUSR1 => "SIGUSR1",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGUSR2 => "SIGUSR2",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGSYS => "SIGSYS",
        _ => return None,
    })
}
