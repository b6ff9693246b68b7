//! A program that runs: fed, read, waited for, and ended.

use std::{
    future::pending,
    io,
    os::unix::process::ExitStatusExt as _,
    pin::pin,
    process::ExitStatus,
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    process::{Child, ChildStderr, ChildStdin, ChildStdout},
    time::sleep,
};
use tokio_util::sync::CancellationToken;

use super::{Captured, Ended, Finished, Output, TERM_GRACE, tree::Tree};

/// How much is read at once: what a pipe holds by default.
const PIECE: usize = 64 * 1024;

/// How long an output is read on that does not end though the program has. In a namespace nobody is
/// left to write; elsewhere, or if the pipe was passed to some service, somebody may be.
const DRAIN: Duration = Duration::from_millis(100);

/// How much is read on. A pipe holds no more, so what comes after it is not the program's.
const DRAIN_BYTES: usize = 1024 * 1024;

type Pipes = (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>);

pub(super) struct Running {
    tree: Tree,
    child: Child,
    stdin: Option<Writer>,
    stdout: Reader<ChildStdout>,
    stderr: Reader<ChildStderr>,
    began: Instant,
}

impl Running {
    pub(super) fn new(
        child: Child,
        (stdin, stdout, stderr): Pipes,
        tree: Tree,
        input: Option<Vec<u8>>,
        cap: usize,
        began: Instant,
    ) -> Self {
        Self {
            tree,
            child,
            stdin: stdin.map(|pipe| Writer { pipe, input: input.unwrap_or_default(), written: 0 }),
            stdout: Reader::new(stdout, cap),
            stderr: Reader::new(stderr, cap),
            began,
        }
    }

    pub(super) async fn attend(
        mut self,
        cancellation: &CancellationToken,
        mut on_output: impl FnMut(Output, &[u8]),
    ) -> io::Result<Finished> {
        let mut cut_off = false;
        let mut killed = false;
        let mut grace = pin!(sleep(TERM_GRACE));
        let status = loop {
            tokio::select! {
                // In this order, so that a flood of output keeps nothing else waiting.
                biased;
                () = cancellation.cancelled(), if !cut_off => {
                    cut_off = true;
                    self.tree.terminate();
                    grace.set(sleep(TERM_GRACE));
                }
                () = &mut grace, if cut_off && !killed => {
                    killed = true;
                    self.tree.kill();
                }
                ended = self.child.wait() => break ended?,
                () = feed(&mut self.stdin) => {}
                (output, _, kept) = read_either(&mut self.stdout, &mut self.stderr) => {
                    on_output(output, kept);
                }
            }
        };
        self.tree.ended();
        // The other end of a pipe that nobody reads any more may still be open in a stray.
        self.stdin = None;

        let mut drained = pin!(sleep(DRAIN));
        let mut left = DRAIN_BYTES;
        while left > 0 && (self.stdout.is_open() || self.stderr.is_open()) {
            tokio::select! {
                biased;
                (output, read, kept) = read_either(&mut self.stdout, &mut self.stderr) => {
                    left = left.saturating_sub(read);
                    on_output(output, kept);
                }
                () = &mut drained => break,
            }
        }
        Ok(Finished {
            ended: ended_as(status),
            cut_off,
            stdout: self.stdout.captured,
            stderr: self.stderr.captured,
            duration: self.began.elapsed(),
        })
    }
}

fn ended_as(status: ExitStatus) -> Ended {
    match status.code() {
        Some(code) => Ended::Code(code),
        None => Ended::Signal(status.signal().unwrap_or_default()),
    }
}

struct Writer {
    pipe: ChildStdin,
    input: Vec<u8>,
    written: usize,
}

/// Writes to the end of the input and closes the pipe; waits forever where it is closed. Can be
/// dropped and taken up again.
async fn feed(writer: &mut Option<Writer>) {
    let Some(Writer { pipe, input, written }) = writer else { return pending().await };
    while let Some(rest) = input.get(*written..).filter(|rest| !rest.is_empty()) {
        match pipe.write(rest).await {
            Ok(count) if count > 0 => *written += count,
            // A program need not read what it is given.
            _ => break,
        }
    }
    *writer = None;
}

struct Reader<P> {
    pipe: Option<P>,
    piece: Vec<u8>,
    captured: Captured,
}

impl<P: AsyncRead + Unpin> Reader<P> {
    fn new(pipe: Option<P>, cap: usize) -> Self {
        Self { pipe, piece: vec![0; PIECE], captured: Captured::new(cap) }
    }

    fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Reads a piece: how much it is, and the part of it that is kept. Waits forever once there is
    /// no more. Can be dropped and taken up again.
    async fn read(&mut self) -> (usize, &[u8]) {
        let Some(pipe) = &mut self.pipe else { return pending().await };
        // An error of a pipe is its end, too.
        let count = pipe.read(&mut self.piece).await.unwrap_or(0);
        if count == 0 {
            self.pipe = None;
        }
        (count, self.captured.push(self.piece.get(..count).unwrap_or_default()))
    }
}

async fn read_either<'a>(
    stdout: &'a mut Reader<ChildStdout>,
    stderr: &'a mut Reader<ChildStderr>,
) -> (Output, usize, &'a [u8]) {
    tokio::select! {
        (read, kept) = stdout.read() => (Output::Stdout, read, kept),
        (read, kept) = stderr.read() => (Output::Stderr, read, kept),
    }
}
