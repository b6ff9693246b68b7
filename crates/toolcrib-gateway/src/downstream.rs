//! The client of a request, as MCP servers see it: their requests and log messages to it.

use std::sync::{Arc, atomic::AtomicU8, atomic::Ordering};

use bytes::Bytes;
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};
use toolcrib_core::{BoxFuture, ClientAbilities, ClientPort, ClientRefusal};
use toolcrib_engine::Redactor;
use toolcrib_mcp::__internal::harmless_json;

use super::{
    connection::Connection,
    exchange::{ClientSender, OpenRequest},
};

/// The levels of log messages, from the least severe.
const LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// Whether a level exists.
pub(super) fn is_level(level: &str) -> bool {
    LEVELS.contains(&level)
}

/// The least level of log messages that a client receives.
pub(super) struct LogLevel(AtomicU8);

impl LogLevel {
    /// All messages, until the client sets a level.
    pub(super) const ALL: u8 = 0;
    /// None.
    const NONE: u8 = u8::MAX;

    pub(super) fn new(least: u8) -> Self {
        Self(AtomicU8::new(least))
    }

    /// The level that the metadata of a request names; without one, the client receives none.
    pub(super) fn of_request(meta: &Map<String, Value>) -> Self {
        let level = meta.get("io.modelcontextprotocol/logLevel").and_then(Value::as_str);
        Self::new(level.and_then(position).unwrap_or(Self::NONE))
    }

    pub(super) fn set(&self, level: &str) {
        if let Some(least) = position(level) {
            self.0.store(least, Ordering::Relaxed);
        }
    }

    pub(super) fn name(&self) -> Option<&'static str> {
        LEVELS.get(usize::from(self.0.load(Ordering::Relaxed))).copied()
    }

    /// Whether a message is severe enough. One of an unknown level is.
    fn admits(&self, message: &Value) -> bool {
        let level = message.get("level").and_then(Value::as_str).and_then(position);
        let least = self.0.load(Ordering::Relaxed);
        least != Self::NONE && level.is_none_or(|level| level >= least)
    }
}

fn position(level: &str) -> Option<u8> {
    let position = LEVELS.iter().position(|known| *known == level)?;
    u8::try_from(position).ok()
}

/// A server's log message as a notification, if its client receives it. The logger names the server.
pub(super) fn log_message(
    least: &LogLevel,
    redactor: &Redactor,
    server: &str,
    message: Value,
) -> Option<Bytes> {
    if !least.admits(&message) {
        return None;
    }
    let mut message = harmless_json(redactor.json(message));
    let fields = message.as_object_mut()?;
    let logger = match fields.get("logger").and_then(Value::as_str) {
        Some(own) => format!("{server}/{own}"),
        None => server.to_owned(),
    };
    fields.insert("logger".to_owned(), logger.into());
    Some(notification("notifications/message", &message))
}

/// A log message of the gateway about a server, for a client that receives this level and more severe
/// ones. The text is clean already.
pub(super) fn own_message(
    least: Option<&str>,
    level: &str,
    logger: &str,
    text: &str,
) -> Option<Bytes> {
    if position(level) < Some(least.and_then(position)?) {
        return None;
    }
    let message = json!({ "level": level, "logger": logger, "data": text });
    Some(notification("notifications/message", &message))
}

pub(super) fn notification(method: &str, params: &Value) -> Bytes {
    json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string().into()
}

/// Whether metadata is the protocol's own, about one connection.
pub(super) fn is_of_protocol(key: &str) -> bool {
    key.starts_with("io.modelcontextprotocol/")
}

/// A field that is an object, which an absent or null one becomes.
fn object<'a>(
    fields: &'a mut Map<String, Value>,
    name: &str,
) -> Option<&'a mut Map<String, Value>> {
    let field = fields.entry(name).or_insert(Value::Null);
    if field.is_null() {
        *field = json!({});
    }
    field.as_object_mut()
}

/// Requests of a server that wait for the client's next round.
pub(super) struct InputRequests {
    pub(super) requests: Map<String, Value>,
    pub(super) reply: oneshot::Sender<Map<String, Value>>,
}

/// How servers reach the client.
pub(super) enum Route {
    /// Not at all: it only has abilities, for lists.
    None,
    /// By requests in its session.
    Session(Connection, ClientSender),
    /// By requests in its session, outside of requests of the client.
    Outside(Connection, ClientSender),
    /// By the next round of its request.
    Rounds(mpsc::Sender<InputRequests>),
}

/// The client of one request, or of a session's lists.
pub(super) struct Downstream {
    pub(super) key: usize,
    pub(super) abilities: ClientAbilities,
    pub(super) meta: Map<String, Value>,
    pub(super) redactor: Redactor,
    pub(super) log: Arc<LogLevel>,
    /// The receiver of log messages.
    pub(super) client: Option<OpenRequest>,
    pub(super) route: Route,
}

impl ClientPort for Downstream {
    fn abilities(&self, _: &str) -> ClientAbilities {
        self.abilities
    }

    fn key(&self) -> usize {
        self.key
    }

    fn meta(&self) -> Option<&Map<String, Value>> {
        Some(&self.meta)
    }

    fn log_level(&self) -> Option<&'static str> {
        self.log.name()
    }

    fn request(
        &self,
        server: Arc<str>,
        requests: Map<String, Value>,
    ) -> BoxFuture<'static, Result<Map<String, Value>, ClientRefusal>> {
        let requests = requests.into_iter().map(|(key, request)| {
            let mut request = harmless_json(self.redactor.json(request));
            // Clients show this server's name: the operator's name says who asks.
            let fields = request.as_object_mut();
            let params = fields.and_then(|fields| object(fields, "params"));
            if let Some(meta) = params.and_then(|params| object(params, "_meta")) {
                // These are about the server's connection.
                meta.retain(|key, _| key != "progressToken" && !is_of_protocol(key));
                meta.insert("toolcrib/server".to_owned(), (*server).into());
            }
            (key, request)
        });
        let requests: Map<_, _> = requests.collect();
        match &self.route {
            Route::None => Box::pin(async {
                Err(ClientRefusal::not_supported("no request of a client is in progress"))
            }),
            Route::Session(connection, client) | Route::Outside(connection, client) => {
                let is_outside = matches!(self.route, Route::Outside(..));
                let (connection, client) = (connection.clone(), client.clone());
                Box::pin(async move {
                    if is_outside {
                        connection.admit_outside().await?;
                    }
                    let mut answers = Map::new();
                    for (key, request) in requests {
                        answers.insert(key, connection.ask(&client, request).await?);
                    }
                    Ok(answers)
                })
            }
            Route::Rounds(asks) => {
                let asks = asks.clone();
                Box::pin(async move {
                    let gone = || ClientRefusal::failed("the client did not come back");
                    let (reply, answers) = oneshot::channel();
                    asks.send(InputRequests { requests, reply }).await.map_err(|_| gone())?;
                    answers.await.map_err(|_| gone())
                })
            }
        }
    }

    fn log(&self, server: &str, message: Value) {
        if let Some(client) = self.client.as_ref().and_then(OpenRequest::client)
            && let Some(message) = log_message(&self.log, &self.redactor, server, message)
        {
            client.offer(message);
        }
    }
}
