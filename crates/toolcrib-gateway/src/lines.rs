//! Messages as lines, from a client on a pair of pipes. Each request gets a response, even an
//! unreadable one: the protocol library silently drops such lines.

use std::{io, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use rmcp::{
    RoleServer,
    model::{ClientJsonRpcMessage, ClientRequest, GetExtensions as _, ServerJsonRpcMessage},
    transport::{Transport, async_rw::AsyncRwTransport},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, Empty},
    time::timeout,
};
use toolcrib_capabilities::__internal::{Line, LineDecoder};
use toolcrib_core::{__internal::PlainJson, CancellationToken};

use super::{
    Shared,
    access::Caller,
    access_log::AccessEntry,
    connection::Connection,
    find_id::FindId,
    handler::{INITIALIZE, is_stateless, not_its_parameters},
    unreadable::{Unreadable, is_unanswered},
};

/// The length limit of a line, in bytes, equal to the limit of a body over HTTP.
const MAX_LINE: usize = super::routes::MAX_BODY;

/// How long a client may leave a refusal unread. Reading stops meanwhile, so this also detects a
/// client that only writes.
const TOLD_WITHIN: Duration = Duration::from_secs(5);

pub(super) struct Lines<R, W: AsyncWrite> {
    reader: R,
    lines: LineDecoder,
    /// The id in a line that is too long, and is skipped.
    too_long: FindId,
    output: AsyncRwTransport<RoleServer, Empty, W>,
    /// A refusal being written; whether the client accepted it.
    refusing: Option<BoxFuture<'static, bool>>,
    gateway: Arc<Shared>,
    connection: Connection,
    caller: Caller,
}

impl<R, W> Lines<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub(super) fn new(
        (reader, writer): (R, W),
        gateway: Arc<Shared>,
        connection: Connection,
        caller: Caller,
    ) -> Self {
        Self {
            reader,
            lines: LineDecoder::new(MAX_LINE),
            too_long: FindId::default(),
            // It only writes.
            output: AsyncRwTransport::new_server(tokio::io::empty(), writer),
            refusing: None,
            gateway,
            connection,
            caller,
        }
    }

    /// A message, unless the line is empty or was refused.
    fn take(&mut self, line: &[u8]) -> Option<ClientJsonRpcMessage> {
        // Read once: what the protocol library makes of the value, it cannot read in another way.
        let message = PlainJson::read(line).and_then(serde_json::from_value);
        match message {
            Ok(message) => self.admit(message),
            Err(_) => {
                if !line.trim_ascii().is_empty() && !is_unanswered(line) {
                    self.refuse(&Unreadable::of(line));
                }
                None
            }
        }
    }

    /// The message, if it is valid.
    fn admit(&mut self, mut message: ClientJsonRpcMessage) -> Option<ClientJsonRpcMessage> {
        let ClientJsonRpcMessage::Request(request) = &mut message else { return Some(message) };
        if request.request.method() == INITIALIZE && is_stateless(&request.request) {
            self.refuse(&Unreadable::no_handshake(request.id.clone()));
            return None;
        }
        if let ClientRequest::CustomRequest(custom) = &request.request
            && let Some(error) = not_its_parameters(custom)
        {
            self.refuse(&Unreadable { id: Some(request.id.clone()), error });
            return None;
        }
        let Some(posted) = self.connection.post(&request.id, CancellationToken::new()) else {
            self.refuse(&Unreadable::asked_already(request.id.clone()));
            return None;
        };
        // Dropped with the request, after its response.
        request.request.extensions_mut().insert(Arc::new(posted));
        Some(message)
    }

    fn refuse(&mut self, refused: &Unreadable) {
        self.gateway.log(|| {
            let mut entry = AccessEntry::new("stdio", Some(&self.caller));
            if let Some(session) = self.connection.session() {
                entry.session = Some(Arc::clone(&session.id));
                entry.protocol = Some(session.protocol.to_string());
            }
            entry.error = Some(refused.error.message.as_ref().into());
            entry
        });
        let told = timeout(TOLD_WITHIN, self.output.send(refused.answer()));
        self.refusing = Some(Box::pin(async move { matches!(told.await, Ok(Ok(()))) }));
    }
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.output.send(message)
    }

    /// Cancel safe: a write in progress is kept.
    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if let Some(told) = &mut self.refusing {
                let is_told = told.await;
                self.refusing = None;
                if !is_told {
                    return None;
                }
            }
            match self.lines.decode() {
                Some(Line::Whole(line)) => {
                    if let Some(message) = self.take(&line) {
                        return Some(message);
                    }
                }
                Some(Line::TooLong { bytes, is_end }) => {
                    self.too_long.look_at(&bytes);
                    if is_end {
                        let id = std::mem::take(&mut self.too_long).found();
                        self.refuse(&Unreadable::too_long(id));
                    }
                }
                None => {
                    if !matches!(self.lines.fill(&mut self.reader).await, Ok(1..)) {
                        return None;
                    }
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.output.close().await
    }
}
