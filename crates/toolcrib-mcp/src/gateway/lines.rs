//! Messages as lines, from a client on a pair of pipes. Each request gets an answer, though it
//! cannot be read: the protocol library drops such lines without a word.

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
use toolcrib_core::{CancellationToken, PlainJson};

use super::{
    Shared,
    access::Caller,
    access_log::AccessEntry,
    connection::Connection,
    find_id::FindId,
    handler::{INITIALIZE, is_stateless, not_its_parameters},
    unreadable::{Unreadable, is_unanswered},
};
use crate::line_buffer::LineBuffer;

/// The longest line that is taken, in bytes, as long as the largest body over HTTP.
const MAX_LINE: usize = super::routes::MAX_BODY;

/// How long a client may leave a refusal unread. It is not listened to meanwhile, so one that only
/// writes would never be found out.
const TOLD_WITHIN: Duration = Duration::from_secs(5);

/// What some programs begin their output with.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

pub(super) struct Lines<R, W: AsyncWrite> {
    reader: R,
    lines: LineBuffer,
    /// A line that is too long, and is passed over.
    too_long: Option<FindId>,
    output: AsyncRwTransport<RoleServer, Empty, W>,
    /// A refusal on its way; whether the client took it.
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
            lines: LineBuffer::default(),
            too_long: None,
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
        if self.too_long.is_some() || line.len() > MAX_LINE {
            let mut find = self.too_long.take().unwrap_or_default();
            find.look_at(line);
            self.refuse(&Unreadable::too_long(find.found()));
            return None;
        }
        let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        // Read once: what the protocol library makes of the value, it cannot read in another way.
        let message = serde_json::from_slice(line)
            .and_then(|PlainJson(message)| serde_json::from_value(message));
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

    /// The message, if it is in order.
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
        // Dropped with the request, when its answer is there.
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

    /// Dropped before it is done, it has lost nothing: what was begun is kept.
    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if let Some(told) = &mut self.refusing {
                let is_told = told.await;
                self.refusing = None;
                if !is_told {
                    return None;
                }
            }
            if let Some(line) = self.lines.line() {
                if let Some(message) = self.take(&line) {
                    return Some(message);
                }
                continue;
            }
            if self.lines.len() > MAX_LINE {
                self.too_long.get_or_insert_default().look_at(&self.lines.part());
            }
            if !matches!(self.lines.fill(&mut self.reader).await, Ok(1..)) {
                return None;
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.output.close().await
    }
}
