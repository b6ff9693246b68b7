//! Messages that `serde_json` would expand.

use toolcrib_core::__internal::{is_reserved_key, scan_json};

/// Whether parsing a message would replace an object in it. The replacement text is parsed without
/// regard to the surrounding levels, so a message of 2 KB could nest deep enough to exhaust the
/// stack.
pub(crate) fn is_expanded(message: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(message) else { return false };
    // Most messages contain neither the words nor an escaped ASCII character that could be part of
    // them.
    (text.contains("serde_json::private") || text.contains("\\u00"))
        && scan_json(text, usize::MAX, is_reserved_key).is_err_and(|error| error.is_data())
}

#[cfg(test)]
mod tests {
    use super::is_expanded;

    #[test]
    fn a_reserved_key_is_found_and_a_text_that_speaks_of_one_is_not() {
        let expanded = |text: &str| is_expanded(text.as_bytes());
        assert!(expanded(r#"{"a": [{"b": 1, "$serde_json::private::RawValue": "1"}]}"#));
        assert!(expanded(r#"{"\u0024serde_json::private::Number": "1"}"#));
        assert!(!expanded(r#"{"text": "{\"$serde_json::private::RawValue\": 1}"}"#));
        assert!(!expanded(r#"{"a": 1, "a": "\u0000", "b": [null, true, -1, 1.5]}"#));
        assert!(!expanded("$serde_json::private::"));
    }
}
