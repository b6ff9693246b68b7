//! Texts of a client in errors and the log, limited in length.

use rmcp::ErrorData;
use serde_json::Value;
use toolcrib_core::__internal::beginning;

/// The limit of a quoted name, in characters.
pub(crate) const LONGEST_NAME: usize = 64;

/// The limit of an error's text, in characters.
pub(crate) const LONGEST_ERROR: usize = 1_000;

/// An error with limited quotes of a request. The protocol library quotes headers, versions and
/// values whole.
pub(crate) fn bounded(mut error: ErrorData) -> ErrorData {
    // Bytes first: nearly all are short, and unchanged.
    if error.message.len() > LONGEST_ERROR {
        error.message = beginning(&error.message, LONGEST_ERROR).into();
    }
    if let Some(Value::Object(data)) = &mut error.data {
        for value in data.values_mut() {
            if let Value::String(text) = value
                && text.len() > LONGEST_ERROR
            {
                *text = beginning(text, LONGEST_ERROR);
            }
        }
    }
    error
}
