//! Programs that are run so that all they start ends with them.
//!
//! [`Processes::run`] starts a program, never a shell, feeds it and takes what it writes until it has
//! ended. [`Processes::start`] starts one to talk with, whose stdin and stdout stay open. Nothing of
//! the host reaches either but what its [`ProcessSpec`] says: not the environment, no open file but
//! the three standard ones, no ignored or blocked signal. It runs in a session of its own, away from
//! the host's terminal, with a umask that lets nobody else write what it makes, and leaves no core
//! dumps.
//!
//! # Rights and limits
//! On Linux a program has no capabilities, also as root, and gains none from set-user-ID programs or
//! file capabilities (`NO_NEW_PRIVS`). So `sudo` and a `ping` that needs `CAP_NET_RAW` do not work,
//! and root cannot use files of others that their permissions do not give it. [`ProcessLimits`] bound
//! processes, memory, CPU time and file sizes.
//!
//! Before it starts the first program, the host becomes unreadable for other processes of its user
//! (`PR_SET_DUMPABLE`): they cannot trace it nor read its memory and environment. It leaves no core
//! dumps from then on, and a debugger needs root to attach.
//!
//! # How it ends
//! On Linux it runs in a PID namespace of its own. Whatever it started, daemons included, is gone
//! when `run`, [`Process::wait`] or [`Process::close`] returns, and is killed
//! - when the program ends by itself;
//! - at cancellation of `run`, and when the time of `close` is up: the program's group gets SIGTERM,
//!   and what is left [`TERM_GRACE`] later is killed;
//! - at once, when the future of `run` or the [`Process`] is dropped, or when the host dies, by
//!   SIGKILL too.
//!
//! What the program has started elsewhere, by asking a service such as Docker or cron, is not its
//! descendant and stays.
//!
//! Root has PID namespaces by right. Anybody else gets one inside a user namespace: user and group
//! are the same there, but files of others seem to belong to nobody. Where the kernel allows it,
//! `/proc` shows only the namespace, and to root `/proc/sys` is read-only; in many containers it does
//! not. Mounts that a program makes are seen by nobody else.
//!
//! Where no namespace can be had, [`support`] says why, and nothing is started unless
//! [`allow_stray_children`](ProcessSpec::allow_stray_children) is set. Then the program's group is
//! killed instead: what left the group lives on, and so does everything if the host is killed. The
//! number of processes is not limited then.
//!
//! A program that finds the host's `/proc`, for one of these reasons, runs in a Landlock domain, where
//! the kernel has Landlock (Linux 5.19): it cannot read the environment or memory of any process but
//! its own children, nor trace it. Names and command lines it can read.
//!
//! Needs a tokio runtime with I/O and time enabled.

mod captured;
mod child;
mod ended;
mod error;
mod find;
mod life;
mod limits;
mod running;
mod spec;
mod stage;
mod start;
mod stderr;
mod support;
mod tail;
mod talking;
mod tree;

use std::{collections::HashSet, path::PathBuf, sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

pub use tokio::process::{ChildStdin, ChildStdout};

pub use self::{
    captured::{Captured, TAIL_BYTES},
    ended::Ended,
    error::ProcessError,
    find::{FindProgramError, find_program, inherited},
    limits::ProcessLimits,
    spec::{DEFAULT_MAX_OUTPUT_BYTES, ProcessSpec, RunSpec, TERM_GRACE},
    stderr::STDERR_TAIL_BYTES,
    support::{Unsupported, process_limit, support},
    talking::Process,
};
use self::{running::Running, start::Started};

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
        spec: impl Into<RunSpec>,
        cancellation: &CancellationToken,
        on_output: impl FnMut(Output, &[u8]) + Send,
    ) -> Result<Finished, ProcessError> {
        let RunSpec { process, stdin, max_output_bytes, whole_stdout } = spec.into();
        if cancellation.is_cancelled() {
            return Err(ProcessError::Cancelled { program: process.program });
        }
        let started = self.begin(process, stdin.is_some()).await?;
        let running = Running::new(started, stdin, max_output_bytes, whole_stdout);
        running.attend(cancellation, on_output).await
    }

    /// Starts a program to talk with: where [`run`](Self::run) feeds it and waits for its end, this
    /// returns as soon as it is executed, with its stdin and stdout open. It lives as long as the
    /// [`Process`] that is returned.
    ///
    /// # Errors
    /// [`ProcessError`] when it could not be started.
    pub async fn start(&self, spec: ProcessSpec) -> Result<Process, ProcessError> {
        self.begin(spec, true).await.map(Process::new)
    }

    /// Starts a program, with a pipe to its stdin if it is fed and with an empty one if not.
    async fn begin(&self, spec: ProcessSpec, is_fed: bool) -> Result<Started, ProcessError> {
        if self.may_run(&spec.program) {
            start::start(spec, is_fed).await
        } else {
            Err(ProcessError::NotAllowed { program: spec.program })
        }
    }
}
