//! What a client wrote, where an error or the log repeats it: never at any length.

use rmcp::{ErrorData, model::ServerJsonRpcMessage};
use serde_json::Value;

/// The most of a name that is repeated, in characters.
pub(super) const LONGEST_NAME: usize = 64;

/// The most of an error's text, in characters.
pub(super) const LONGEST_ERROR: usize = 1_000;

/// The beginning of a text.
pub(super) fn cut(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// A name that may be anything, for a sentence.
pub(super) fn shortened(name: &str) -> String {
    cut(name, LONGEST_NAME).escape_debug().to_string()
}

/// An error that repeats no more of a request than fits. The protocol library quotes headers, versions
/// and values whole.
pub(super) fn bounded(mut error: ErrorData) -> ErrorData {
    // In bytes first: nearly all are short, and stay as they are.
    if error.message.len() > LONGEST_ERROR {
        error.message = cut(&error.message, LONGEST_ERROR).into();
    }
    if let Some(Value::Object(data)) = &mut error.data {
        for value in data.values_mut() {
            if let Value::String(text) = value
                && text.len() > LONGEST_ERROR
            {
                *text = cut(text, LONGEST_ERROR);
            }
        }
    }
    error
}

/// The body of a refusal, likewise. The id of a request stays whole, or its answer could not be told
/// from others.
pub(super) fn bounded_body(body: &[u8]) -> Option<Vec<u8>> {
    if body.len() <= LONGEST_ERROR {
        return None;
    }
    match serde_json::from_slice(body) {
        Ok(ServerJsonRpcMessage::Error(mut refused)) => {
            refused.error = bounded(refused.error);
            serde_json::to_vec(&ServerJsonRpcMessage::Error(refused)).ok()
        }
        _ => Some(cut(&String::from_utf8_lossy(body), LONGEST_ERROR).into_bytes()),
    }
}
