//! Runs programs so that all their child processes end with them.
//!
//! [`Processes::run`] starts a program, never a shell, writes its input and collects its outputs
//! until it has ended. [`Processes::start`] starts one for a dialog, whose stdin and stdout stay
//! open. Both receive from the host only the content of the [`ProcessSpec`]: no environment, no
//! open file but the three standard ones, no ignored or blocked signal. The program runs in a
//! separate session, away from the host's terminal, with a umask that denies other users to write
//! its files, and leaves no core dumps.
//!
//! # Rights and limits
//! On Linux a program has no capabilities, also as root, and gains none from set-user-ID programs
//! or file capabilities (`NO_NEW_PRIVS`). So `sudo` and a `ping` that needs `CAP_NET_RAW` do not
//! work, and root cannot use files of others that their permissions do not give it.
//! [`ProcessLimits`] limit processes, memory, CPU time and file sizes.
//!
//! Before it starts the first program, the host becomes unreadable for other processes of its user
//! (`PR_SET_DUMPABLE`): they cannot trace it nor read its memory and environment. It leaves no core
//! dumps from then on, and a debugger needs root to attach.
//!
//! # Sandboxes
//! [`ProcessSpec::sandbox`] limits the files, the network and the system calls of a program, in
//! [tiers](SandboxTier); the description here is of the tier `tree`. Before the first program of a
//! higher tier, a child process proves it by forbidden acts ([`self_test`]). A tier that this machine
//! does not enforce is an error; a weaker one is never used instead.
//!
//! # How it ends
//! On Linux it runs in a separate PID namespace. All its child processes, daemons included, are
//! gone when `run`, [`Process::wait`] or [`Process::close`] returns, and are killed
//! - when the program ends by itself;
//! - at cancellation of `run`, and when the grace period of `close` is over: the program's group
//!   gets SIGTERM, and remaining processes are killed [`TERM_GRACE`] later;
//! - at once, when the future of `run` or the [`Process`] is dropped, or when the host dies, even
//!   by SIGKILL.
//!
//! Processes that the program starts through a service, such as Docker or cron, are not its
//! descendants and stay.
//!
//! Root can create PID namespaces. Any other user gets one inside a user namespace: user and group
//! are the same there, but files of others seem to have no owner. If the kernel
//! allows it, `/proc` shows only the namespace, and to root `/proc/sys` is read-only; in many
//! containers it does not. Mounts of a program are invisible outside.
//!
//! If no namespace is possible, [`support`] says why, and nothing is started unless
//! [`allow_stray_children`](ProcessSpec::allow_stray_children) is set. Then the program's group is
//! killed instead: processes that left the group survive, and so do all if the host is killed. The
//! number of processes is not limited then.
//!
//! A program that sees the host's `/proc`, for one of these reasons, runs in a Landlock domain, if
//! the kernel has Landlock (Linux 5.19): it cannot read the environment or memory of any process
//! but its own children, nor trace it. It can read names and command lines.
//!
//! A build with `--cfg portable` has none of these system calls and starts no programs: each start is
//! an error, whatever the spec permits.
//!
//! Needs a tokio runtime with I/O and time enabled.

mod captured;
#[cfg(not(portable))]
mod child;
mod end;
mod error;
mod find;
#[cfg(all(target_os = "linux", not(portable)))]
mod guard;
#[cfg(not(all(target_os = "linux", not(portable))))]
#[path = "no_guard.rs"]
mod guard;
mod life;
mod limits;
#[cfg(not(portable))]
mod memory;
mod moved;
#[cfg(not(portable))]
mod namespaces;
mod passed;
#[cfg(portable)]
mod portable;
mod running;
mod sandbox;
#[cfg(not(portable))]
mod signals;
mod spec;
#[cfg(not(portable))]
mod stage;
#[cfg(not(portable))]
mod start;
mod stderr;
mod support;
mod tail;
mod talking;
#[cfg(not(portable))]
mod tree;

use std::{collections::HashSet, path::PathBuf, sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

pub use tokio::process::{ChildStdin, ChildStdout};

pub use self::{
    captured::{CapturedOutput, TAIL_BYTES},
    end::ProcessEnd,
    error::ProcessError,
    find::{FindProgramError, find_program, inherited, program_digest},
    limits::{ExceededLimit, ProcessLimits},
    moved::MovedFile,
    passed::PassedFiles,
    sandbox::{
        Attempt, Sandbox, SandboxTier, SelfTest, UnknownTierError, sandbox_support, self_test,
    },
    spec::{DEFAULT_MAX_OUTPUT_BYTES, ProcessSpec, RunSpec, TERM_GRACE},
    stderr::STDERR_TAIL_BYTES,
    support::{UnsupportedError, process_limit, support},
    talking::Process,
};
use self::{life::StartedProcess, running::RunningProcess};
#[cfg(portable)]
use self::{portable as namespaces, portable as signals, portable as start, portable as tree};

/// The result of a program that ran.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessOutput {
    /// How it ended.
    pub ended: ProcessEnd,
    /// Whether it was sent SIGTERM, by cancellation, before it ended. It may still have ended by
    /// itself.
    pub cut_off: bool,
    /// Its stdout.
    pub stdout: CapturedOutput,
    /// Its stderr.
    pub stderr: CapturedOutput,
    /// From its start to the end of all its child processes.
    pub duration: Duration,
    /// The files that a sandbox moved away; see [`Sandbox::trash`].
    pub moved: Vec<MovedFile>,
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
    /// Permits every program of the system.
    pub fn any() -> Self {
        Self { programs: None }
    }

    /// Only these programs, by absolute path as in [`ProcessSpec::program`], of those that it may
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

    /// Runs a program to its end; see the [module](self) for the details. `on_output` receives the
    /// outputs, as they arrive, in chunks of any size; it should return quickly.
    ///
    /// # Errors
    /// [`ProcessError`] if it could not be started. A failed program is not an error here: see
    /// [`ProcessOutput::ended`].
    pub async fn run(
        &self,
        spec: impl Into<RunSpec>,
        cancellation: &CancellationToken,
        on_output: impl FnMut(Output, &[u8]) + Send,
    ) -> Result<ProcessOutput, ProcessError> {
        let RunSpec { process, stdin, max_output_bytes, whole_stdout } = spec.into();
        if cancellation.is_cancelled() {
            return Err(ProcessError::Cancelled { program: process.program });
        }
        let started = self.begin(process, stdin.is_some()).await?;
        let running = RunningProcess::new(started, stdin, max_output_bytes, whole_stdout);
        running.attend(cancellation, on_output).await
    }

    /// Starts a program for a dialog: unlike [`run`](Self::run), this returns as soon as it is
    /// executed, with its stdin and stdout open. It lives as long as the returned [`Process`].
    ///
    /// # Errors
    /// [`ProcessError`] if it could not be started.
    pub async fn start(&self, spec: ProcessSpec) -> Result<Process, ProcessError> {
        self.begin(spec, true).await.map(Process::new)
    }

    /// Starts a program, with a pipe to its stdin, or with an empty stdin.
    async fn begin(&self, spec: ProcessSpec, is_fed: bool) -> Result<StartedProcess, ProcessError> {
        if self.may_run(&spec.program) {
            start::start(spec, is_fed).await
        } else {
            Err(ProcessError::NotAllowed { program: spec.program })
        }
    }
}
