//! A program that is run to its end, fed and read.

use std::{
    future::pending,
    pin::pin,
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    process::{ChildStderr, ChildStdin, ChildStdout},
    sync::mpsc::{OwnedPermit, Sender},
    time::sleep,
};
use tokio_util::sync::CancellationToken;

use super::{Captured, Finished, Output, ProcessError, life::Life, start::Started};

/// How much is read at once: what a pipe holds by default.
pub(super) const PIECE: usize = 64 * 1024;

/// How long an output is read on that does not end though the program has. In a namespace nobody is
/// left to write; elsewhere, or if the pipe was passed to some service, somebody may be.
pub(super) const DRAIN: Duration = Duration::from_millis(100);

/// How much is read on. A pipe holds no more, so what comes after it is not the program's.
const DRAIN_BYTES: usize = 1024 * 1024;

pub(super) struct Running {
    life: Life,
    stdin: Option<Writer>,
    stdout: Reader<ChildStdout>,
    stderr: Reader<ChildStderr>,
    began: Instant,
}

impl Running {
    /// Of a program that is fed this, and of each of whose outputs so many bytes are kept; where there
    /// is more of stdout, all of it goes there.
    pub(super) fn new(
        started: Started,
        input: Option<Vec<u8>>,
        cap: usize,
        whole_stdout: Option<Sender<Vec<u8>>>,
    ) -> Self {
        let Started { life, stdin, stdout, stderr, began } = started;
        Self {
            life,
            stdin: stdin.map(|pipe| Writer { pipe, input: input.unwrap_or_default(), written: 0 }),
            stdout: Reader::new(stdout, cap, whole_stdout),
            stderr: Reader::new(stderr, cap, None),
            began,
        }
    }

    pub(super) async fn attend(
        self,
        cancellation: &CancellationToken,
        mut on_output: impl FnMut(Output, &[u8]),
    ) -> Result<Finished, ProcessError> {
        let Self { mut life, mut stdin, mut stdout, mut stderr, began } = self;
        let mut end = pin!(life.wait_until(cancellation.cancelled()));
        let (ended, cut_off) = loop {
            tokio::select! {
                // In this order, so that a flood of output keeps nothing else waiting.
                biased;
                ended = &mut end => break ended?,
                () = feed(&mut stdin) => {}
                (output, _, kept) = read_either(&mut stdout, &mut stderr) => {
                    on_output(output, kept);
                }
            }
        };
        // The other end of a pipe that nobody reads any more may still be open in a stray.
        drop(stdin);

        let mut drained = pin!(sleep(DRAIN));
        let mut left = DRAIN_BYTES;
        while left > 0 && (stdout.is_open() || stderr.is_open()) {
            // What takes long to be put away is not what is waited for here.
            stdout.place().await;
            tokio::select! {
                biased;
                (output, read, kept) = read_either(&mut stdout, &mut stderr) => {
                    left = left.saturating_sub(read);
                    on_output(output, kept);
                }
                () = &mut drained => break,
            }
        }
        Ok(Finished {
            ended,
            cut_off,
            stdout: stdout.captured,
            stderr: stderr.captured,
            duration: began.elapsed(),
        })
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
    whole: Option<Sender<Vec<u8>>>,
    /// Where the next piece goes.
    place: Option<OwnedPermit<Vec<u8>>>,
}

impl<P: AsyncRead + Unpin> Reader<P> {
    fn new(pipe: Option<P>, cap: usize, whole: Option<Sender<Vec<u8>>>) -> Self {
        Self { pipe, piece: vec![0; PIECE], captured: Captured::new(cap), whole, place: None }
    }

    fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Waits until what is read next has a place to go, if it is to go anywhere.
    async fn place(&mut self) {
        if let (Some(whole), None) = (&self.whole, &self.place) {
            // Nobody may want it any more.
            self.place = whole.clone().reserve_owned().await.ok();
            if self.place.is_none() {
                self.whole = None;
            }
        }
    }

    /// Reads a piece: how much it is, and the part of it that is kept. Waits forever once there is
    /// no more. Can be dropped and taken up again.
    async fn read(&mut self) -> (usize, &[u8]) {
        self.place().await;
        let Some(pipe) = &mut self.pipe else { return pending().await };
        // An error of a pipe is its end, too.
        let count = pipe.read(&mut self.piece).await.unwrap_or(0);
        if count == 0 {
            self.pipe = None;
        }
        let piece = self.piece.get(..count).unwrap_or_default();
        let went_there = self.captured.is_truncated();
        let kept = self.captured.push(piece);
        if self.captured.is_truncated()
            && let Some(place) = self.place.take()
        {
            let beyond = piece.get(kept.len()..).unwrap_or_default();
            let piece =
                if went_there { beyond.to_vec() } else { [self.captured.head(), beyond].concat() };
            place.send(piece);
        }
        (count, kept)
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
