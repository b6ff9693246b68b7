//! Messages as lines, over a program's pipes or one in memory.

use std::{io, sync::Arc, task::Poll, time::Duration};

use bytes::BytesMut;
use futures_util::future::BoxFuture;
use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::Transport,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt as _},
    sync::Mutex,
    time::{Instant, sleep_until, timeout},
};
use toolcrib_capabilities::{
    __internal::{Line, LineDecoder},
    process::Process,
};

use super::{
    call::Call,
    carry::{Carrier, NotCarried, Outgoing},
    ending::{CLOSED_HERE, Ending},
    intake::{Intake, Taken},
};

/// The size limit of a line: 16 MiB. It is kept in memory whole.
pub(super) const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;

/// How long a server may leave a message unread. Its pipe buffers unread bytes, so a server whose
/// pipe has been full for this time has stopped reading.
const WRITE_STALL: Duration = Duration::from_secs(30);

/// How long to wait for the exit of a program that closed its output, to report its status.
const EXIT_GRACE: Duration = Duration::from_millis(500);

/// How long a program may take to end by itself after its stdin is closed.
const CLOSE_GRACE: Duration = Duration::from_secs(2);

pub(super) struct Lines<R, W> {
    reader: R,
    lines: LineDecoder,
    /// A message that is being read. A reader may stop waiting and resume.
    taking: Option<BoxFuture<'static, Taken>>,
    resume_at: Option<Instant>,
    is_at_end: bool,
    writer: Arc<Mutex<Option<W>>>,
    process: Option<Process>,
    intake: Arc<Intake>,
    ending: Arc<Ending>,
}

impl<R, W> Lines<R, W>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    pub(super) fn new(
        (reader, writer): (R, W),
        process: Option<Process>,
        intake: Arc<Intake>,
        ending: Arc<Ending>,
    ) -> Self {
        Self {
            reader,
            lines: LineDecoder::new(MAX_LINE_BYTES),
            taking: None,
            resume_at: None,
            is_at_end: false,
            writer: Arc::new(Mutex::new(Some(writer))),
            process,
            intake,
            ending,
        }
    }

    /// A writer of calls between the messages of the protocol library.
    pub(super) fn carrier(&self) -> Arc<dyn Carrier> {
        Arc::new(Writer { writer: Arc::clone(&self.writer), ending: Arc::clone(&self.ending) })
    }

    /// The next line. An error is the reason of the end, if known.
    async fn line(&mut self) -> Result<BytesMut, Option<String>> {
        loop {
            match self.lines.decode() {
                Some(Line::Whole(line)) => return Ok(line),
                Some(Line::TooLong { .. }) => {
                    return Err(Some(format!(
                        "it sent a line of more than {MAX_LINE_BYTES} bytes"
                    )));
                }
                None => {}
            }
            match self.lines.fill(&mut self.reader).await {
                Ok(0) => return Err(None),
                Ok(_) => {}
                Err(error) => return Err(Some(format!("its output cannot be read: {error}"))),
            }
        }
    }

    /// How the server ended, as far as known.
    async fn epitaph(&mut self) -> String {
        let Some(process) = &mut self.process else {
            return "it closed the connection".to_owned();
        };
        let how = match timeout(EXIT_GRACE, process.wait()).await {
            Ok(Ok(ended)) => format!("it ended with {ended}"),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it closed its output".to_owned(),
        };
        with_stderr(how, process, &self.intake)
    }

    async fn next(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            if let Some(at) = self.resume_at {
                sleep_until(at).await;
                self.resume_at = None;
            }
            if self.is_at_end {
                let reason = self.epitaph().await;
                self.ending.end(reason);
                return None;
            }
            let taking = match &mut self.taking {
                Some(taking) => taking,
                None => match self.line().await {
                    Ok(line) => self.taking.insert(Box::pin(take(Arc::clone(&self.intake), line))),
                    Err(None) => {
                        self.is_at_end = true;
                        continue;
                    }
                    Err(Some(reason)) => {
                        self.ending.end(reason);
                        return None;
                    }
                },
            };
            let taken = taking.await;
            self.taking = None;
            self.resume_at = taken.pause.and_then(|pause| Instant::now().checked_add(pause));
            if let Some(reason) = taken.hopeless {
                let reason = match &self.process {
                    Some(process) => with_stderr(reason, process, &self.intake),
                    None => reason,
                };
                self.ending.end(reason);
                return None;
            }
            if let Some(message) = taken.message {
                return Some(message);
            }
        }
    }
}

impl<R, W> Transport<RoleClient> for Lines<R, W>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        item: ClientJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.intake.expect(&item);
        let owed = self.intake.owed(&item);
        let (writer, ending) = (Arc::clone(&self.writer), Arc::clone(&self.ending));
        async move {
            let _owed = owed;
            let call = Call::of(&item);
            let json = || serde_json::to_vec(&item);
            tokio::select! {
                biased;
                () = ending.over() => Err(io::ErrorKind::BrokenPipe.into()),
                written = write(&writer, json, call.as_deref(), &ending) => written,
            }
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        let ending = Arc::clone(&self.ending);
        tokio::select! {
            biased;
            () = ending.over() => None,
            message = self.next() => message,
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // Ends a write in progress, which has the lock of the writer.
        self.ending.end(CLOSED_HERE);
        if let Some(mut writer) = self.writer.lock().await.take() {
            let _ = timeout(CLOSE_GRACE, writer.shutdown()).await;
        }
        match self.process.take() {
            Some(mut process) => {
                process.close(CLOSE_GRACE).await.map(|_| ()).map_err(io::Error::other)
            }
            None => Ok(()),
        }
    }
}

/// Writes calls.
struct Writer<W> {
    writer: Arc<Mutex<Option<W>>>,
    ending: Arc<Ending>,
}

impl<W: AsyncWrite + Unpin + Send + 'static> Carrier for Writer<W> {
    fn carry(&self, call: Outgoing) -> BoxFuture<'static, Result<(), NotCarried>> {
        let (writer, ending) = (Arc::clone(&self.writer), Arc::clone(&self.ending));
        let mut writing = Box::pin(async move {
            tokio::select! {
                biased;
                () = ending.over() => Err(io::ErrorKind::BrokenPipe.into()),
                written = write(&writer, || call.to_json(), Some(&call.call), &ending) => written,
            }
        });
        Box::pin(async move {
            let written = match futures_util::poll!(&mut writing) {
                Poll::Ready(written) => written,
                // A line in progress is finished, even without a waiter for its response.
                Poll::Pending => {
                    tokio::spawn(writing).await.unwrap_or_else(|error| Err(io::Error::other(error)))
                }
            };
            written.map_err(|error| NotCarried::broken(error.to_string()))
        })
    }
}

async fn write<W: AsyncWrite + Unpin>(
    writer: &Mutex<Option<W>>,
    json: impl FnOnce() -> serde_json::Result<Vec<u8>>,
    call: Option<&Call>,
    ending: &Ending,
) -> io::Result<()> {
    let mut writer = writer.lock().await;
    let Some(writer) = writer.as_mut() else { return Err(io::ErrorKind::BrokenPipe.into()) };
    // Only now, so that a waiting call is in memory only once.
    let mut line = json().map_err(io::Error::other)?;
    line.push(b'\n');
    if call.is_some_and(|call| !call.begin()) {
        return Ok(());
    }
    let mut left = line.as_slice();
    while !left.is_empty() {
        let written = match timeout(WRITE_STALL, writer.write(left)).await {
            Ok(Ok(0)) => Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => written,
            Err(_) => {
                let reason = format!("it has read nothing for {WRITE_STALL:?}");
                ending.end(reason.as_str());
                Err(io::Error::new(io::ErrorKind::TimedOut, reason))
            }
        };
        match written {
            Ok(count) => left = left.get(count..).unwrap_or_default(),
            Err(error) => {
                if left.len() == line.len()
                    && let Some(call) = call
                {
                    call.revert();
                }
                return Err(error);
            }
        }
    }
    writer.flush().await
}

async fn take(intake: Arc<Intake>, line: BytesMut) -> Taken {
    let (of_line, bytes) = (Arc::clone(&intake), line.len());
    let taken = intake.off_worker(bytes, move || of_line.take(&line)).await;
    taken.unwrap_or_else(|problem| Taken::broken(&problem))
}

fn with_stderr(reason: String, process: &Process, intake: &Intake) -> String {
    match intake.tail(&process.stderr_tail()) {
        stderr if stderr.is_empty() => reason,
        stderr => format!("{reason}; the last it wrote to stderr: {stderr}"),
    }
}
