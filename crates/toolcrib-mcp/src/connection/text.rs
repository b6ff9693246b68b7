//! Texts of servers, as they are read by people.

/// How many characters of a text of a server an error shows.
pub(super) const MAX_CHARS: usize = 2_000;

/// A text with at most [`MAX_CHARS`] characters.
pub(super) fn bounded(text: impl Into<String>) -> String {
    shortened(text.into(), MAX_CHARS)
}

/// The beginning of bytes that should have been a message.
pub(super) fn preview(bytes: &[u8]) -> String {
    // A character has at most four bytes.
    let begin = bytes.get(..800).unwrap_or(bytes);
    shortened(String::from_utf8_lossy(begin).trim().to_owned(), 200)
}

/// The end of what was written to stderr, on one text of at most [`MAX_CHARS`] characters.
pub(super) fn tail(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim();
    match text.char_indices().rev().nth(MAX_CHARS.saturating_sub(1)) {
        Some((begin, _)) if begin > 0 => format!("…{}", text.get(begin..).unwrap_or_default()),
        _ => text.to_owned(),
    }
}

fn shortened(mut text: String, max_chars: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(max_chars) {
        text.truncate(end);
        text.push('…');
    }
    text
}
