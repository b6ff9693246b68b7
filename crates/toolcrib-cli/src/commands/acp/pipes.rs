//! Standard input and output as lines of the protocol.

use std::{io, sync::Arc};

use agent_client_protocol::{Agent, ConnectTo, Lines};
use futures_util::{sink, stream};
use serde_json::Value;
use tokio::{
    io::{AsyncWriteExt as _, Stdin},
    sync::watch,
};
use toolcrib_capabilities::__internal::{Line, LineDecoder};

/// The limit of a message, in bytes: the same as the gateway's.
const MAX_MESSAGE: usize = 4 * 1024 * 1024;

pub(super) fn stdio() -> impl ConnectTo<Agent> + 'static {
    let (answered, initializing) = watch::channel(None);
    let answered = Arc::new(answered);
    let input = Input {
        stdin: tokio::io::stdin(),
        lines: LineDecoder::new(MAX_MESSAGE),
        begun: Arc::clone(&answered),
        initializing,
    };
    let incoming = stream::try_unfold(input, |mut input| async {
        Ok::<_, io::Error>(input.next().await?.map(|line| (line, input)))
    });
    let outgoing = sink::unfold(tokio::io::stdout(), move |mut stdout, mut line: String| {
        let answered = Arc::clone(&answered);
        async move {
            line.push('\n');
            let written = async {
                stdout.write_all(line.as_bytes()).await?;
                stdout.flush().await
            };
            let written = written.await;
            if answered.borrow().is_some() {
                let id = field(&line, "id").filter(|_| field(&line, "method").is_none());
                answered.send_if_modified(|waiting| {
                    let is_it = waiting.is_some() && *waiting == id;
                    if is_it {
                        *waiting = None;
                    }
                    is_it
                });
            }
            match written {
                // The editor reads no more: its input ends too.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(stdout),
                written => written.map(|()| stdout),
            }
        }
    });
    Lines::new(outgoing, incoming)
}

/// A field of a message; `None` if it has none.
fn field(line: &str, name: &str) -> Option<Value> {
    let message: Value = serde_json::from_str(line).ok()?;
    message.get(name).cloned()
}

struct Input {
    stdin: Stdin,
    lines: LineDecoder,
    /// The id of the `initialize` that has not been answered.
    begun: Arc<watch::Sender<Option<Value>>>,
    initializing: watch::Receiver<Option<Value>>,
}

impl Input {
    /// The next line that is not empty; `None` at the end. A line that is too long ends the
    /// connection: its request cannot be answered.
    ///
    /// A request after an `initialize` that is not answered yet is refused by the protocol's
    /// implementation. An editor may send both at once, so the second one waits for the answer.
    async fn next(&mut self) -> io::Result<Option<String>> {
        // It fails when nothing is answered any more.
        let _ = self.initializing.wait_for(Option::is_none).await;
        loop {
            match self.lines.decode() {
                Some(Line::Whole(line)) if line.trim_ascii().is_empty() => {}
                Some(Line::Whole(line)) => {
                    let line = String::from_utf8(line.into()).map_err(io::Error::other)?;
                    if field(&line, "method").is_some_and(|method| method == "initialize") {
                        self.begun.send_replace(field(&line, "id"));
                    }
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
