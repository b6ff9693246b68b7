//! Texts of servers for operators: redacted first, then cut, because half of a secret cannot be detected.

use std::sync::Arc;

use toolcrib_core::{
    __internal::{beginning, is_invisible},
    Redact,
};

/// How many characters of a text of a server an error shows.
const MAX_CHARS: usize = 2_000;

/// How many bytes of a message are looked at for its beginning.
const LOOKED_AT: usize = 4 * 1024;

/// The redaction of a server's texts; none by default.
#[derive(Clone, Default)]
pub(crate) struct Redaction(Option<Arc<dyn Redact>>);

impl Redaction {
    pub(crate) fn of(redact: impl Redact) -> Self {
        Self(Some(Arc::new(redact)))
    }

    pub(crate) fn shared(&self) -> Option<Arc<dyn Redact>> {
        self.0.clone()
    }

    pub(crate) fn text(&self, text: &str) -> String {
        self.0.as_ref().map_or_else(|| text.to_owned(), |redact| redact.redact(text))
    }

    /// The start of a text whose rest is cut: its end may be the beginning of a secret.
    fn start(&self, start: &str) -> String {
        self.0.as_ref().map_or_else(|| start.to_owned(), |redact| redact.redact_start(start))
    }
}

toolcrib_core::__internal::debug_fields!(Redaction, redaction, redaction.0.is_some());

/// A text with at most [`MAX_CHARS`] characters.
pub(crate) fn bounded(text: &str, redactor: &Redaction) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => begun(text.get(..end).unwrap_or_default(), redactor),
        None => redactor.text(text),
    }
}

/// The beginning of bytes that should have been a message, on one line.
pub(super) fn preview(bytes: &[u8], redactor: &Redaction) -> String {
    let shown = match bytes.get(..LOOKED_AT) {
        Some(begin) => begun(&String::from_utf8_lossy(begin), redactor),
        None => redactor.text(&String::from_utf8_lossy(bytes)),
    };
    // Each becomes a space: without them, the parts of a secret would be one.
    let is_odd = |c: char| c.is_control() || is_invisible(c);
    beginning(shown.replace(is_odd, " ").trim(), 200)
}

/// The end of what was written to stderr, on one text of at most [`MAX_CHARS`] characters.
pub(super) fn tail(bytes: &[u8], redactor: &Redaction) -> String {
    let text = String::from_utf8_lossy(bytes);
    let text = redactor.text(&text);
    let text = text.trim();
    match text.char_indices().rev().nth(MAX_CHARS.saturating_sub(1)) {
        Some((begin, _)) if begin > 0 => format!("…{}", text.get(begin..).unwrap_or_default()),
        _ => text.to_owned(),
    }
}

/// A text whose rest is cut off: its end may be the beginning of a secret.
fn begun(text: &str, redactor: &Redaction) -> String {
    format!("{}…", redactor.start(text))
}

/// The problem with a message that is too large.
pub(super) fn over_limit(what: &str, max_bytes: usize) -> String {
    format!(
        "it sent {what} of more than {max_bytes} bytes, the limit of a message; request less at a \
         time, or have the server return less"
    )
}
