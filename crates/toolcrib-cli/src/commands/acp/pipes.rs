//! Standard input and output as lines of the protocol.

use std::io;

use agent_client_protocol::{Agent, ConnectTo, Lines};
use futures_util::{sink, stream};
use tokio::io::{AsyncWriteExt as _, Stdin};
use toolcrib_capabilities::__internal::{Line, LineDecoder};

/// The limit of a message, in bytes: the same as the gateway's.
const MAX_MESSAGE: usize = 4 * 1024 * 1024;

pub(super) fn stdio() -> impl ConnectTo<Agent> + 'static {
    let input = Input { stdin: tokio::io::stdin(), lines: LineDecoder::new(MAX_MESSAGE) };
    let incoming = stream::try_unfold(input, |mut input| async {
        Ok::<_, io::Error>(input.next().await?.map(|line| (line, input)))
    });
    let outgoing = sink::unfold(tokio::io::stdout(), |mut stdout, mut line: String| async move {
        line.push('\n');
        let written = async {
            stdout.write_all(line.as_bytes()).await?;
            stdout.flush().await
        };
        match written.await {
            // The editor reads no more: its input ends too.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(stdout),
            written => written.map(|()| stdout),
        }
    });
    Lines::new(outgoing, incoming)
}

struct Input {
    stdin: Stdin,
    lines: LineDecoder,
}

impl Input {
    /// The next line that is not empty; `None` at the end. A line that is too long ends the
    /// connection: its request cannot be answered.
    async fn next(&mut self) -> io::Result<Option<String>> {
        loop {
            match self.lines.decode() {
                Some(Line::Whole(line)) if line.trim_ascii().is_empty() => {}
                Some(Line::Whole(line)) => {
                    let line = String::from_utf8(line.into()).map_err(io::Error::other)?;
                    return Ok(Some(line));
                }
                Some(Line::TooLong { .. }) => {
                    let message = format!("a message is limited to {MAX_MESSAGE} bytes");
                    return Err(io::Error::other(message));
                }
                None if self.lines.fill(&mut self.stdin).await? == 0 => return Ok(None),
                None => {}
            }
        }
    }
}
