use std::{future::Future, path::PathBuf, time::Instant};

use tokio::{
    process::{Child, ChildStderr, ChildStdin, ChildStdout},
    task::JoinSet,
    time::timeout,
};

use super::{ProcessEnd, ProcessError, TERM_GRACE, tree::Tree};

/// A started program, and all its child processes. Dropping it kills them at once.
#[derive(Debug)]
pub(super) struct Life {
    // Dropped first, so that the child's remains are already being killed.
    tree: Tree,
    child: Child,
    program: PathBuf,
    /// Ends when this is dropped.
    _proxy: Option<Proxy>,
}

/// The task that serves the network of a program. Dropping it ends it and its connections.
pub(super) type Proxy = JoinSet<()>;

impl Life {
    #[cfg(not(portable))]
    pub(super) fn new(tree: Tree, child: Child, program: PathBuf, proxy: Option<Proxy>) -> Self {
        Self { tree, child, program, _proxy: proxy }
    }

    /// Waits until the program and all its child processes have ended. Can be dropped and called
    /// again, after the end too.
    pub(super) async fn wait(&mut self) -> Result<ProcessEnd, ProcessError> {
        match self.child.wait().await {
            Ok(status) => Ok(match self.tree.ended() {
                Some(limit) => ProcessEnd::Exceeded(limit),
                None => status.into(),
            }),
            Err(source) => {
                self.tree.kill();
                Err(ProcessError::Lost { program: self.program.clone(), source })
            }
        }
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

/// A running program, and the pipes to it. Dropping it kills the program.
pub(super) struct StartedProcess {
    pub(super) life: Life,
    pub(super) stdin: Option<ChildStdin>,
    pub(super) stdout: Option<ChildStdout>,
    pub(super) stderr: Option<ChildStderr>,
    pub(super) began: Instant,
}
