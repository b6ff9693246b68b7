use std::{
    future::Future,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use tokio::{
    process::{Child, ChildStderr, ChildStdin, ChildStdout},
    task::{JoinHandle, JoinSet, spawn_blocking},
    time::timeout,
};

use super::{ProcessEnd, ProcessError, TERM_GRACE, guard::Guard, moved::MovedFile, tree::Tree};

/// A started program, and all its child processes. Dropping it kills them at once.
#[derive(Debug)]
pub(super) struct Life {
    // Dropped first, so that the child's remains are already being killed.
    tree: Tree,
    child: Child,
    program: PathBuf,
    /// Ends when this is dropped.
    _proxy: Option<Proxy>,
    /// The search for new protected files, after the end.
    guard: Option<Guard>,
    settling: Option<JoinHandle<Vec<MovedFile>>>,
    moved: Vec<MovedFile>,
}

/// The task that serves the network of a program. Dropping it ends it and its connections.
pub(super) type Proxy = JoinSet<()>;

impl Life {
    #[cfg(not(portable))]
    pub(super) fn new(
        tree: Tree,
        child: Child,
        program: PathBuf,
        proxy: Option<Proxy>,
        guard: Option<Guard>,
    ) -> Self {
        let moved = Vec::new();
        Self { tree, child, program, _proxy: proxy, guard, settling: None, moved }
    }

    /// The files that were moved away at the end.
    pub(super) fn moved(&self) -> &[MovedFile] {
        &self.moved
    }

    async fn settle(&mut self) {
        if let Some(guard) = self.guard.take() {
            self.settling = Some(spawn_blocking(move || guard.settle()));
        }
        if let Some(settling) = &mut self.settling {
            self.moved = settling.await.unwrap_or_default();
            self.settling = None;
        }
    }

    /// Waits until the program and all its child processes have ended. Can be dropped and called
    /// again, after the end too.
    pub(super) async fn wait(&mut self) -> Result<ProcessEnd, ProcessError> {
        let ended = match self.child.wait().await {
            Ok(status) => Ok(match self.tree.ended() {
                Some(limit) => ProcessEnd::Exceeded(limit),
                None => status.into(),
            }),
            Err(source) => {
                self.tree.kill();
                Err(ProcessError::Lost { program: self.program.clone(), source })
            }
        };
        self.settle().await;
        ended
    }

    /// Waits as [`wait`](Self::wait) does, until it `is_over`: then the program gets SIGTERM, and
    /// is killed [`TERM_GRACE`] later. Also returns whether SIGTERM was sent.
    pub(super) async fn wait_until(
        &mut self,
        is_over: impl Future<Output = ()>,
    ) -> Result<(ProcessEnd, bool), ProcessError> {
        tokio::select! {
            biased;
            () = is_over => {}
            ended = self.wait() => return Ok((ended?, false)),
        }
        self.tree.terminate();
        let ended = match timeout(TERM_GRACE, self.wait()).await {
            Ok(ended) => ended?,
            Err(_) => {
                self.tree.kill();
                self.wait().await?
            }
        };
        Ok((ended, true))
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        let (Some(guard), Some(pid)) = (self.guard.take(), self.child.id()) else { return };
        self.tree.kill();
        // No caller waits for the report. The thread of the last program of a process may end with it.
        let _ = thread::Builder::new().name("toolcrib-guard".to_owned()).spawn(move || {
            wait_for_end(pid);
            guard.settle();
        });
    }
}

/// Waits for a process that was killed; the runtime reaps it.
fn wait_for_end(pid: u32) {
    const LOOKS: u32 = 500;
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    for _ in 0..LOOKS {
        if pid.is_none_or(|pid| rustix::process::test_kill_process(pid).is_err()) {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// A running program, and the pipes to it. Dropping it kills the program.
pub(super) struct StartedProcess {
    pub(super) life: Life,
    pub(super) stdin: Option<ChildStdin>,
    pub(super) stdout: Option<ChildStdout>,
    pub(super) stderr: Option<ChildStderr>,
    pub(super) began: Instant,
}
