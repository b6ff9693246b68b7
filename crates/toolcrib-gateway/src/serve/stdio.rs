//! One client on a pair of pipes, such as standard input and output: a message per line.

use std::{io, panic, sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt as _},
    sync::mpsc,
    time::timeout,
};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};
use toolcrib_capabilities::__internal::{Line, LineDecoder};
use toolcrib_core::{__internal::shortened, CancellationToken};
use uuid::Uuid;

use super::handshake;
use crate::{
    access::{Access, Caller, access_log::AccessEntry},
    client::{
        connection::{Connection, MAX_REQUESTS},
        context::ServeContext,
        request::{ClientRequest, Era},
        sender::{ClientSender, OpenRequest},
    },
    error::GatewayError,
    gateway::Gateway,
    methods,
    wire::{
        find_id::FindId,
        message::{INITIALIZE, InvalidMessage, MAX_MESSAGE, Message, Request, json},
    },
};

/// How long calls continue after the input has ended: enough to answer piped input, and less than
/// clients wait before they send signals.
const GRACE: Duration = Duration::from_secs(1);

/// How long a client may take to read the rest, from the end of its input or the token.
const READ_WITHIN: Duration = Duration::from_secs(5);

/// The limit of unsent messages: each request reserves one for its response, and notifications
/// share the rest.
const MAX_UNSENT: usize = 2 * MAX_REQUESTS as usize;

/// How long a client may send requests without reading responses, once [`MAX_UNSENT`] is reached.
const MAKES_ROOM_WITHIN: Duration = Duration::from_secs(5);

/// The bytes of messages that are collected before they are written.
const MAX_WRITE: usize = 64 * 1024;

impl Gateway {
    /// Serves the one client at the other end of these pipes, as this access, until its input ends
    /// or the token fires. Running calls are then cancelled, a second after the end of the input,
    /// and nothing runs any more when this returns. A client that does not read its output has five
    /// seconds for it then; unread output is lost.
    ///
    /// A line of more than 4 MiB, and one that is not a message of the protocol, is refused with an
    /// error, which has the id of the request if one can be found.
    ///
    /// # Errors
    /// [`GatewayError`] if the access presets a skill that is unknown or that it may not activate,
    /// or the client's first message is not of the protocol.
    pub async fn serve_stdio(
        &self,
        stdin: impl AsyncRead + Send + Unpin + 'static,
        stdout: impl AsyncWrite + Send + Unpin + 'static,
        access: Access,
        cancellation: CancellationToken,
    ) -> Result<(), GatewayError> {
        self.0.shared().check(&access).map_err(GatewayError::Access)?;
        let serving = self.serving(&cancellation);
        let id: Arc<str> = Uuid::now_v7().simple().to_string().into();
        let gone = serving.cancellation.child_token();
        let changes = serving.current.changes();
        let connection = Connection::new(id, changes, gone.clone(), GRACE, None);
        let (output, messages) = mpsc::channel(MAX_UNSENT);
        let client = Client {
            serving: serving.clone(),
            caller: Caller {
                access: Arc::new(access),
                peer: None,
                expires: None,
                endpoint: None,
                is_declared: true,
            },
            connection,
            output,
            requests: TaskTracker::new(),
            has_begun: false,
        };
        let lines = Lines { input: stdin, lines: LineDecoder::new(MAX_MESSAGE), too_long: None };
        // Separate tasks: the caller's future may be polled outside of the runtime's workers, and
        // would then be woken on another thread several times per call.
        let writing = AbortOnDropHandle::new(tokio::spawn(write(messages, stdout, gone)));
        let served = AbortOnDropHandle::new(tokio::spawn(client.serve(lines))).await;
        let _ = writing.await;
        serving.end().await;
        match served {
            Ok(outcome) => outcome,
            Err(error) if error.is_panic() => panic::resume_unwind(error.into_panic()),
            // The runtime ends.
            Err(_) => Ok(()),
        }
    }
}

/// The client at the other end.
struct Client {
    serving: ServeContext,
    caller: Caller,
    connection: Connection,
    output: mpsc::Sender<Bytes>,
    /// The tasks of the requests in progress.
    requests: TaskTracker,
    /// Whether a request was accepted.
    has_begun: bool,
}

impl Client {
    /// Serves the client, and waits for its requests in progress.
    async fn serve(mut self, mut lines: Lines<impl AsyncRead + Unpin>) -> Result<(), GatewayError> {
        let outcome = loop {
            let line = tokio::select! {
                line = lines.next() => line,
                () = self.connection.gone() => None,
                () = self.output.closed() => None,
            };
            let Some(line) = line else { break Ok(()) };
            // A response that the client does not read has no place; it only writes then.
            let place = timeout(MAKES_ROOM_WITHIN, self.output.clone().reserve_owned()).await;
            let Ok(Ok(place)) = place else { break Ok(()) };
            match line.and_then(|line| Message::read(&line)) {
                Ok(Message::Request(request)) => self.begin(request, place).await,
                Ok(other) if !self.has_begun => break Err(no_handshake(&other)),
                Ok(Message::Notification(notification)) => {
                    self.connection.notice(notification);
                }
                Ok(Message::Response(response)) => self.connection.answered(response),
                Err(invalid) if !invalid.needs_response => {}
                Err(invalid) => self.refuse(invalid, place),
            }
        };
        self.connection.end();
        self.requests.close();
        self.requests.wait().await;
        outcome
    }

    /// Answers a request: in a separate task, but for the handshake.
    async fn begin(&mut self, request: Request, place: mpsc::OwnedPermit<Bytes>) {
        let client = ClientSender::Lines(self.output.clone());
        if request.method == INITIALIZE {
            let (serving, caller) = (&self.serving.fresh(), &self.caller);
            let connection = &self.connection;
            let answer = handshake::initialize(serving, caller, request, connection, client).await;
            self.has_begun |= answer.outcome.is_ok();
            answer.send(|json| place.send(json));
            return;
        }
        let id = request.id.clone();
        let era = match Era::of(&request, self.connection.session()) {
            Ok(era) => era,
            Err(error) => {
                return self.refuse(InvalidMessage::new(Some(id), error), place);
            }
        };
        let unwanted = CancellationToken::new();
        let Some(registered) = self.connection.register(&id, unwanted.clone()) else {
            return self.refuse(InvalidMessage::id_in_use(id), place);
        };
        self.has_begun |= request.method != "ping";
        let client_request = ClientRequest {
            serving: self.serving.fresh(),
            limit: None,
            caller: self.caller.clone(),
            id,
            era,
            connection: Some(self.connection.clone()),
            open: OpenRequest::new(client.clone(), request.meta.get_progress_token()),
            client,
            asks: None,
            headers: None,
            unwanted: unwanted.clone(),
        };
        self.requests.spawn(async move {
            let answer = methods::answer(client_request, request).await;
            // The client may use the id again as soon as it reads the response.
            drop(registered);
            // A cancelled request is not answered.
            if !unwanted.is_cancelled() {
                answer.send(|json| place.send(json));
            }
        });
    }

    fn refuse(&self, invalid: InvalidMessage, place: mpsc::OwnedPermit<Bytes>) {
        let mut entry = AccessEntry::new("stdio", Some(&self.caller));
        if let Some(session) = self.connection.session() {
            entry.session = Some(Arc::clone(&session.id));
            entry.protocol = Some(session.protocol.to_string());
        }
        entry.error = Some(invalid.error.message.as_ref().into());
        self.serving.gateway.log(entry);
        place.send(json(&invalid.response()));
    }
}

/// The error for a client that begins with something other than a request.
fn no_handshake(message: &Message) -> GatewayError {
    let first = match message {
        Message::Notification(notification) => format!("`{}`", shortened(&notification.method)),
        Message::Request(_) | Message::Response(_) => "a response".to_owned(),
    };
    GatewayError::Handshake(format!("its first message is {first}, instead of `{INITIALIZE}`"))
}

/// The lines of the input.
struct Lines<R> {
    input: R,
    lines: LineDecoder,
    /// The id in a line that is too long, and is skipped.
    too_long: Option<FindId>,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// The next line that is not empty; `None` at the end. Cancel safe.
    async fn next(&mut self) -> Option<Result<BytesMut, InvalidMessage>> {
        loop {
            match self.lines.decode() {
                Some(Line::Whole(line)) if line.trim_ascii().is_empty() => {}
                Some(Line::Whole(line)) => return Some(Ok(line)),
                Some(Line::TooLong { bytes, is_end }) => {
                    let find = self.too_long.get_or_insert_default();
                    find.look_at(&bytes);
                    if is_end {
                        let id = self.too_long.take().and_then(FindId::found);
                        return Some(Err(InvalidMessage::too_long(id)));
                    }
                }
                None => {
                    if !matches!(self.lines.fill(&mut self.input).await, Ok(1..)) {
                        return None;
                    }
                }
            }
        }
    }
}

/// Writes messages until all senders are gone, or the client reads no more: after the end of its
/// input, it has a limited time for the rest.
async fn write(
    mut messages: mpsc::Receiver<Bytes>,
    mut output: impl AsyncWrite + Unpin,
    gone: CancellationToken,
) {
    let writing = async {
        // One write for all waiting messages: each write to stdout is a separate task on the pool
        // for blocking work.
        let mut lines = Vec::new();
        while let Some(message) = messages.recv().await {
            lines.extend_from_slice(&message);
            lines.push(b'\n');
            if messages.is_empty() || lines.len() >= MAX_WRITE {
                output.write_all(&lines).await?;
                output.flush().await?;
                lines.clear();
                lines.shrink_to(MAX_WRITE);
            }
        }
        output.shutdown().await
    };
    let given_up = async {
        gone.cancelled().await;
        tokio::time::sleep(READ_WITHIN).await;
    };
    // However it ends, nothing more can be sent, which the senders notice.
    let _: io::Result<()> = tokio::select! {
        written = writing => written,
        () = given_up => Ok(()),
    };
}
