use std::{future::Future, path::PathBuf};

use tokio::{process::Child, time::timeout};

use super::{Ended, ProcessError, TERM_GRACE, tree::Tree};

/// A program that was started, and all that it starts. Dropping it kills them at once.
#[derive(Debug)]
pub(super) struct Life {
    // Goes first, so that what the child leaves behind when it is dropped is dying already.
    tree: Tree,
    child: Child,
    program: PathBuf,
}

impl Life {
    pub(super) fn new(tree: Tree, child: Child, program: PathBuf) -> Self {
        Self { tree, child, program }
    }

    /// Waits until the program has ended, and all that it started. Can be dropped and asked again,
    /// after the end too.
    pub(super) async fn wait(&mut self) -> Result<Ended, ProcessError> {
        match self.child.wait().await {
            Ok(status) => {
                self.tree.ended();
                Ok(status.into())
            }
            Err(source) => {
                self.tree.kill();
                Err(ProcessError::Lost { program: self.program.clone(), source })
            }
        }
    }

    /// Waits as [`wait`](Self::wait) does, until it `is_over`: then the program is asked to end, and
    /// killed if it has not [`TERM_GRACE`] later. Also whether it was asked.
    pub(super) async fn wait_until(
        &mut self,
        is_over: impl Future<Output = ()>,
    ) -> Result<(Ended, bool), ProcessError> {
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
