//! Log messages of servers and of the gateway for a client.

use std::sync::atomic::{AtomicU8, Ordering};

use bytes::Bytes;
use serde_json::{Map, Value, json};
use toolcrib_engine::Redactor;
use toolcrib_mcp::__internal::harmless_json;

use crate::wire::message::notification;

/// The levels of log messages, from the least severe.
const LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// Whether a level exists.
pub(crate) fn is_level(level: &str) -> bool {
    LEVELS.contains(&level)
}

/// The least level of log messages that a client receives.
pub(crate) struct LogLevel(AtomicU8);

impl LogLevel {
    /// All messages, until the client sets a level.
    pub(crate) const ALL: u8 = 0;
    /// The client receives no messages.
    const NONE: u8 = u8::MAX;

    pub(crate) fn new(least: u8) -> Self {
        Self(AtomicU8::new(least))
    }

    /// The level that the metadata of a request names; without one, the client receives none.
    pub(crate) fn of_request(meta: &Map<String, Value>) -> Self {
        let level = meta.get("io.modelcontextprotocol/logLevel").and_then(Value::as_str);
        Self::new(level.and_then(position).unwrap_or(Self::NONE))
    }

    pub(crate) fn set(&self, level: &str) {
        if let Some(least) = position(level) {
            self.0.store(least, Ordering::Relaxed);
        }
    }

    pub(crate) fn name(&self) -> Option<&'static str> {
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
pub(crate) fn log_message(
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
pub(crate) fn own_message(
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
