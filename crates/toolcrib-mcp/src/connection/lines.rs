//! Messages as lines, over a program's pipes or one in memory.

use std::{io, sync::Arc, task::Poll, time::Duration};

use futures_util::future::BoxFuture;
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt as _},
    sync::Mutex,
    time::timeout,
};
use toolcrib_capabilities::{
    __internal::{Line, LineDecoder},
    process::Process,
};

use super::{
    WireEvent,
    ending::Ending,
    exchange::Exchange,
    intake::{Carrier, Intake},
    text::over_limit,
    transport::{RawConnection, SendError, Transport, Wiring},
};

/// The size limit of a line: 16 MiB. It is kept in memory whole.
const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;

/// How long a server may leave a message unread. Its pipe buffers unread bytes, so a server whose
/// pipe has been full for this time has stopped reading.
const WRITE_STALL: Duration = Duration::from_secs(30);

/// How long to wait for the exit of a program that closed its output, to report its status.
const EXIT_GRACE: Duration = Duration::from_millis(500);

/// How long a failed write waits for the reason of the connection's end. A little more than the
/// reader needs for it.
const EPITAPH_WITHIN: Duration = Duration::from_millis(750);

/// How long a program may take to end by itself after its stdin is closed.
const CLOSE_GRACE: Duration = Duration::from_secs(2);

/// The same where that is judged: a slow machine is not a fault of the program.
const OBSERVED_CLOSE_GRACE: Duration = Duration::from_secs(5);

/// A transport over these streams. The process, if any, ends with it.
pub(super) fn dialed<R, W>(
    (reader, writer): (R, W),
    process: Option<Process>,
    wiring: Wiring,
) -> RawConnection
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let Wiring { intake, ending } = wiring;
    let writer = Arc::new(Writer { stream: Mutex::new(Some(writer)), ending: Arc::clone(&ending) });
    let transport = Arc::clone(&writer);
    let lines = LineDecoder::new(MAX_LINE_BYTES);
    let reader = Reader { stream: reader, lines, writer, process, intake, ending };
    RawConnection { transport, serving: Box::pin(reader.serve()) }
}

struct Reader<R, W> {
    stream: R,
    lines: LineDecoder,
    writer: Arc<Writer<W>>,
    process: Option<Process>,
    intake: Arc<Intake>,
    ending: Arc<Ending>,
}

impl<R, W> Reader<R, W>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    /// Reads until the connection ends, and closes it.
    async fn serve(mut self) {
        let ending = Arc::clone(&self.ending);
        tokio::select! {
            biased;
            () = ending.over() => {}
            // A write in progress, which has the lock of the writer, ends here too.
            reason = self.read() => ending.end(reason),
        }
        if let Some(mut writer) = self.writer.stream.lock().await.take() {
            let _ = timeout(CLOSE_GRACE, writer.shutdown()).await;
        }
        let Some(mut process) = self.process.take() else { return };
        if self.intake.is_observed() && timeout(OBSERVED_CLOSE_GRACE, process.wait()).await.is_err()
        {
            self.intake.observe(WireEvent::OutlivedInput);
            let _ = process.close(Duration::ZERO).await;
        } else {
            let _ = process.close(CLOSE_GRACE).await;
        }
    }

    /// Reads to the end, and returns its reason.
    async fn read(&mut self) -> String {
        loop {
            match self.lines.decode() {
                Some(Line::Whole(line)) => {
                    let taken = self.intake.take(line, Carrier::Connection, &self.writer).await;
                    if let Err(reason) = taken {
                        return self.with_stderr(reason);
                    }
                }
                Some(Line::TooLong { .. }) => {
                    return over_limit("a line", MAX_LINE_BYTES);
                }
                None => match self.lines.fill(&mut self.stream).await {
                    Ok(0) => return self.epitaph().await,
                    Ok(_) => {}
                    Err(error) => return format!("its output cannot be read: {error}"),
                },
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
        self.with_stderr(how)
    }

    fn with_stderr(&self, reason: String) -> String {
        let stderr = self.process.as_ref().map(Process::stderr_tail).unwrap_or_default();
        match self.intake.tail(&stderr) {
            stderr if stderr.is_empty() => reason,
            stderr => format!("{reason}; the last it wrote to stderr: {stderr}"),
        }
    }
}

struct Writer<W> {
    /// `None` once it is closed.
    stream: Mutex<Option<W>>,
    ending: Arc<Ending>,
}

impl<W: AsyncWrite + Unpin + Send + 'static> Transport for Writer<W> {
    fn send(self: Arc<Self>, exchange: Arc<Exchange>) -> BoxFuture<'static, Result<(), SendError>> {
        let mut writing = Box::pin(async move {
            self.write(|| exchange.to_json(), Some(&exchange)).await.map_err(broken)
        });
        Box::pin(async move {
            match futures_util::poll!(&mut writing) {
                Poll::Ready(written) => written,
                // A line in progress is finished, even without a waiter for its response.
                Poll::Pending => {
                    tokio::spawn(writing).await.unwrap_or_else(|error| Err(broken(error)))
                }
            }
        })
    }

    fn post(self: Arc<Self>, message: Vec<u8>) -> BoxFuture<'static, Result<(), SendError>> {
        Box::pin(async move { self.write(|| Ok(message), None).await.map_err(broken) })
    }
}

impl<W: AsyncWrite + Unpin> Writer<W> {
    /// Writes a line, as long as the connection lasts.
    async fn write(
        &self,
        json: impl FnOnce() -> serde_json::Result<Vec<u8>>,
        exchange: Option<&Exchange>,
    ) -> io::Result<()> {
        let written = tokio::select! {
            biased;
            () = self.ending.over() => Err(io::ErrorKind::BrokenPipe.into()),
            written = self.write_line(json, exchange) => written,
        };
        match written {
            // A program that has ended closes its input before its output: the reader learns why.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                let _ = timeout(EPITAPH_WITHIN, self.ending.over()).await;
                let reason = self.ending.reason();
                Err(reason
                    .map_or(error, |reason| io::Error::new(io::ErrorKind::BrokenPipe, &*reason)))
            }
            written => written,
        }
    }

    async fn write_line(
        &self,
        json: impl FnOnce() -> serde_json::Result<Vec<u8>>,
        exchange: Option<&Exchange>,
    ) -> io::Result<()> {
        let mut stream = self.stream.lock().await;
        let Some(stream) = stream.as_mut() else { return Err(io::ErrorKind::BrokenPipe.into()) };
        // Only now, so that a waiting request is in memory only once.
        let mut line = json().map_err(io::Error::other)?;
        line.push(b'\n');
        if exchange.is_some_and(|exchange| !exchange.begin()) {
            return Ok(());
        }
        let mut left = line.as_slice();
        while !left.is_empty() {
            let written = match timeout(WRITE_STALL, stream.write(left)).await {
                Ok(Ok(0)) => Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => written,
                Err(_) => {
                    let reason = format!("it has read nothing for {WRITE_STALL:?}");
                    self.ending.end(reason.as_str());
                    Err(io::Error::new(io::ErrorKind::TimedOut, reason))
                }
            };
            match written {
                Ok(count) => left = left.get(count..).unwrap_or_default(),
                Err(error) => {
                    if left.len() == line.len()
                        && let Some(exchange) = exchange
                    {
                        exchange.revert();
                    }
                    return Err(error);
                }
            }
        }
        stream.flush().await
    }
}

fn broken(error: impl Into<io::Error>) -> SendError {
    SendError::broken(error.into().to_string())
}
