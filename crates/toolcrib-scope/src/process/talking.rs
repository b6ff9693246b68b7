//! A program that is talked with.

use std::time::Duration;

use tokio::{
    process::{ChildStdin, ChildStdout},
    time::sleep,
};

use super::{Ended, ProcessError, life::Life, start::Started, stderr::Stderr};

/// A program that runs and is talked with, and all that it starts; see
/// [`Processes::start`](super::Processes::start). Dropping it kills them at once.
///
/// Its outputs are to be read: one that writes to a stdout that nobody reads waits once the pipe is
/// full, which on Linux holds 64 KiB. Its stderr is read in the background, and so never waits.
#[derive(Debug)]
pub struct Process {
    life: Life,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Stderr,
}

impl Process {
    pub(super) fn new(started: Started) -> Self {
        let Started { life, stdin, stdout, stderr, .. } = started;
        Self { life, stdin, stdout, stderr: Stderr::new(stderr) }
    }

    /// What the program reads as its stdin; `None` once it was taken or closed. Nothing is buffered
    /// here. Dropping it is the end of the program's input; shutting it down is not.
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.stdin.take()
    }

    /// What the program writes to its stdout; `None` once it was taken. It ends when the program and
    /// all that it started have ended, or have closed it, and can be read after that too.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.stdout.take()
    }

    /// The last [`STDERR_TAIL_BYTES`](super::STDERR_TAIL_BYTES) bytes, or fewer, of what it has
    /// written to stderr; all of it, up to that, once [`wait`](Self::wait) or [`close`](Self::close)
    /// has returned. They may begin in the midst of a line or a character.
    pub fn stderr_tail(&self) -> Vec<u8> {
        self.stderr.tail()
    }

    /// Waits until the program has ended by itself and nothing is left of it, and says how it ended.
    /// Its stdin stays open, if it was not taken. Dropping the future changes nothing; after the end
    /// it says the same again.
    ///
    /// # Errors
    /// [`ProcessError::Lost`] when it cannot be waited for.
    pub async fn wait(&mut self) -> Result<Ended, ProcessError> {
        let ended = self.life.wait().await?;
        self.stderr.end().await;
        Ok(ended)
    }

    /// Ends the program and says how it ended: closes its stdin, and gives it `grace` to end by
    /// itself. Then its group gets SIGTERM, and [`TERM_GRACE`](super::TERM_GRACE) later what is left
    /// is killed. Nothing is left of it when this returns.
    ///
    /// A stdin that was taken is whoever took it's to close: drop it before, or the program cannot
    /// know that it is to end until it gets SIGTERM. Dropping the future leaves it as it is by then,
    /// and closing can be begun again.
    ///
    /// # Errors
    /// [`ProcessError::Lost`] when it cannot be waited for.
    pub async fn close(&mut self, grace: Duration) -> Result<Ended, ProcessError> {
        self.stdin = None;
        let (ended, _) = self.life.wait_until(sleep(grace)).await?;
        self.stderr.end().await;
        Ok(ended)
    }
}
