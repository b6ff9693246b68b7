//! Log messages of a server, limited in size and rate.

use serde_json::{Map, Value, json};

use super::{
    pace::Pace,
    text::{Redaction, bounded},
};

/// The maximum size of a log message, in bytes. Of a longer one, the beginning is passed on.
const MAX_BYTES: usize = 16 * 1024;

/// The number of log messages that are passed on at once.
const BURST: f64 = 256.0;
/// The rate per second beyond that. The excess is dropped: reading on matters more than a log.
const PER_SECOND: f64 = 100.0;

/// A rate limit for log messages.
pub(super) struct Logs {
    pace: Pace,
    dropped: usize,
}

impl Logs {
    pub(super) fn new() -> Self {
        Self { pace: Pace::new(BURST, PER_SECOND), dropped: 0 }
    }

    /// Counts a message. If it is passed on: how many before it were dropped.
    pub(super) fn admit(&mut self) -> Option<usize> {
        if !self.pace.admits() {
            self.dropped += 1;
            return None;
        }
        Some(std::mem::take(&mut self.dropped))
    }
}

/// The message about dropped ones.
pub(super) fn dropped(count: usize) -> Value {
    let data = format!("{count} log messages were dropped: the limit is {PER_SECOND} per second");
    json!({ "level": "warning", "data": data })
}

/// A message that is short enough. Secrets are redacted before a text is cut.
pub(super) fn limited(message: Value, bytes: usize, redactor: &Redaction) -> Value {
    if bytes <= MAX_BYTES {
        return message;
    }
    let text = |field: &str| match message.get(field)? {
        Value::String(text) => Some(bounded(text, redactor)),
        other => Some(bounded(&other.to_string(), redactor)),
    };
    let fields = ["level", "logger", "data"];
    let fields = fields.iter().filter_map(|field| Some(((*field).to_owned(), text(field)?.into())));
    Value::Object(fields.collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_excess_is_counted_and_reported_with_the_next_message() {
        let mut logs = Logs::new();
        // The loop takes time, in which further ones are passed on.
        let reported: Vec<usize> = (0..10_000).filter_map(|_| logs.admit()).collect();
        let admitted = reported.len();
        assert!((256..10_000).contains(&admitted), "{admitted}");
        logs.pace = Pace::new(BURST, PER_SECOND);
        let dropped = reported.iter().sum::<usize>() + logs.admit().unwrap();
        assert_eq!(dropped, 10_000 - admitted);
        assert_eq!(logs.admit(), Some(0));
    }
}
