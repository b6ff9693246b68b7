//! A program for a dialog.

use std::time::Duration;

use tokio::{
    process::{ChildStdin, ChildStdout},
    time::sleep,
};

use super::{
    MovedFile, ProcessEnd, ProcessError,
    life::{Life, StartedProcess},
    stderr::Stderr,
};

/// A running program for a dialog, and all its child processes; see
/// [`Processes::start`](super::Processes::start). Dropping it kills them at once.
///
/// Its stdout must be read: without a reader the program waits once the pipe is full, which on
/// Linux has 64 KiB. Its stderr is read in the background, and so never waits.
#[derive(Debug)]
pub struct Process {
    life: Life,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Stderr,
}

impl Process {
    pub(super) fn new(started: StartedProcess) -> Self {
        let StartedProcess { life, stdin, stdout, stderr, .. } = started;
        Self { life, stdin, stdout, stderr: Stderr::new(stderr) }
    }

    /// The writer of the program's stdin; `None` after it was taken or closed. It is not buffered.
    /// Dropping it ends the program's input; shutting it down does not.
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.stdin.take()
    }

    /// The reader of the program's stdout; `None` after it was taken. It ends when the program and
    /// all its child processes have ended, or have closed it, and can be read after that too.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.stdout.take()
    }

    /// The last [`STDERR_TAIL_BYTES`](super::STDERR_TAIL_BYTES) bytes, or fewer, of its stderr so
    /// far; complete, up to that limit, once [`wait`](Self::wait) or [`close`](Self::close) has
    /// returned. They may begin within a line or a character.
    pub fn stderr_tail(&self) -> Vec<u8> {
        self.stderr.tail()
    }

    /// Calls a function with all further bytes of its stderr, as they are written, and first with the
    /// [tail](Self::stderr_tail) so far. It replaces an earlier function, and should return quickly.
    pub fn on_stderr(&self, listener: impl FnMut(&[u8]) + Send + 'static) {
        self.stderr.listen(Box::new(listener));
    }

    /// Waits until the program has ended by itself and all its child processes are gone, and
    /// returns how it ended. Its stdin stays open, if it was not taken. Cancel safe; after the end
    /// it returns the same again.
    ///
    /// # Errors
    /// [`ProcessError::Lost`] if it cannot be awaited.
    pub async fn wait(&mut self) -> Result<ProcessEnd, ProcessError> {
        let ended = self.life.wait().await?;
        self.end().await;
        Ok(ended)
    }

    /// The files that its sandbox moved away, once it has ended. They are also lines of its stderr.
    pub fn moved(&self) -> &[MovedFile] {
        self.life.moved()
    }

    async fn end(&mut self) {
        if self.stderr.end().await {
            for moved in self.life.moved() {
                self.stderr.push(format!("{moved}\n").as_bytes());
            }
        }
    }

    /// Ends the program and returns how it ended: closes its stdin, and gives it `grace` to end by
    /// itself. Then its group gets SIGTERM, and [`TERM_GRACE`](super::TERM_GRACE) later the rest is
    /// killed. No process of it is left when this returns.
    ///
    /// A taken stdin must be dropped by its owner before, otherwise the program does not know that
    /// it should end until it gets SIGTERM. Dropping the future leaves the program in its present
    /// state, and closing can be started again.
    ///
    /// # Errors
    /// [`ProcessError::Lost`] if it cannot be awaited.
    pub async fn close(&mut self, grace: Duration) -> Result<ProcessEnd, ProcessError> {
        self.stdin = None;
        let (ended, _) = self.life.wait_until(sleep(grace)).await?;
        self.end().await;
        Ok(ended)
    }
}
