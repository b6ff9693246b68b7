//! Runs a program to its end, with its input and outputs.

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

use super::{
    CapturedOutput, Output, ProcessError, ProcessOutput,
    life::{Life, StartedProcess},
};

/// The size of one read: the default capacity of a pipe.
pub(super) const PIECE: usize = 64 * 1024;

/// How long an output is still read after the program has ended. In a namespace no writer is left;
/// otherwise, or if the pipe was passed to a service, there may be one.
pub(super) const DRAIN: Duration = Duration::from_millis(100);

/// The limit of bytes read then. A pipe has no larger capacity, so later bytes are not the
/// program's.
const DRAIN_BYTES: usize = 1024 * 1024;

pub(super) struct RunningProcess {
    life: Life,
    stdin: Option<Writer>,
    stdout: Reader<ChildStdout>,
    stderr: Reader<ChildStderr>,
    began: Instant,
}

impl RunningProcess {
    /// Takes over a started process: writes `input`, keeps at most `cap` bytes of each output, and sends all of a longer
    /// stdout to `whole_stdout`.
    pub(super) fn new(
        started: StartedProcess,
        input: Option<Vec<u8>>,
        cap: usize,
        whole_stdout: Option<Sender<Vec<u8>>>,
    ) -> Self {
        let StartedProcess { life, stdin, stdout, stderr, began } = started;
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
    ) -> Result<ProcessOutput, ProcessError> {
        let Self { mut life, mut stdin, mut stdout, mut stderr, began } = self;
        let (ended, cut_off) = {
            let mut end = pin!(life.wait_until(cancellation.cancelled()));
            loop {
                tokio::select! {
                    // In this order, so that a flood of output delays nothing else.
                    biased;
                    ended = &mut end => break ended?,
                    () = feed(&mut stdin) => {}
                    (output, piece) = read_either(&mut stdout, &mut stderr) => {
                        on_output(output, piece);
                    }
                }
            }
        };
        // A stray process may still have the other end of the pipe open.
        drop(stdin);

        let mut drained = pin!(sleep(DRAIN));
        let mut left = DRAIN_BYTES;
        while left > 0 && (stdout.is_open() || stderr.is_open()) {
            // Slow storage of the output is not awaited here.
            stdout.place().await;
            tokio::select! {
                biased;
                (output, piece) = read_either(&mut stdout, &mut stderr) => {
                    left = left.saturating_sub(piece.len());
                    on_output(output, piece);
                }
                () = &mut drained => break,
            }
        }
        Ok(ProcessOutput {
            ended,
            cut_off,
            stdout: stdout.captured,
            stderr: stderr.captured,
            duration: began.elapsed(),
            moved: life.moved().to_vec(),
        })
    }
}

struct Writer {
    pipe: ChildStdin,
    input: Vec<u8>,
    written: usize,
}

/// Writes the input to its end and closes the pipe; pending forever after that. Cancel safe.
async fn feed(writer: &mut Option<Writer>) {
    let Some(Writer { pipe, input, written }) = writer else { return pending().await };
    while let Some(rest) = input.get(*written..).filter(|rest| !rest.is_empty()) {
        match pipe.write(rest).await {
            Ok(count) if count > 0 => *written += count,
            // A program need not read its input.
            _ => break,
        }
    }
    *writer = None;
}

struct Reader<P> {
    pipe: Option<P>,
    piece: Vec<u8>,
    captured: CapturedOutput,
    whole: Option<Sender<Vec<u8>>>,
    /// The slot for the next chunk.
    place: Option<OwnedPermit<Vec<u8>>>,
}

impl<P: AsyncRead + Unpin> Reader<P> {
    fn new(pipe: Option<P>, cap: usize, whole: Option<Sender<Vec<u8>>>) -> Self {
        Self { pipe, piece: vec![0; PIECE], captured: CapturedOutput::new(cap), whole, place: None }
    }

    fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Waits for a slot for the next chunk, if chunks are sent anywhere.
    async fn place(&mut self) {
        if let (Some(whole), None) = (&self.whole, &self.place) {
            // The receiver may be gone.
            self.place = whole.clone().reserve_owned().await.ok();
            if self.place.is_none() {
                self.whole = None;
            }
        }
    }

    /// Reads a chunk. Pending forever at the end. Cancel safe.
    async fn read(&mut self) -> &[u8] {
        self.place().await;
        let Some(pipe) = &mut self.pipe else { return pending().await };
        // A read error counts as the end.
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
        piece
    }
}

async fn read_either<'a>(
    stdout: &'a mut Reader<ChildStdout>,
    stderr: &'a mut Reader<ChildStderr>,
) -> (Output, &'a [u8]) {
    tokio::select! {
        piece = stdout.read() => (Output::Stdout, piece),
        piece = stderr.read() => (Output::Stderr, piece),
    }
}
