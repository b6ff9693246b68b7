//! Past calls and their results, in the form of both APIs.
//!
//! A call stays in the history, whatever its outcome. A part that the vendor would refuse would
//! make every later request invalid, so it is replaced by an accepted form.

use std::borrow::Cow;

use toolcrib_core::{Arguments, Digest, MAX_TOOL_NAME};

use super::super::arguments::ObjectArguments;

/// Shortens an id to a maximum length. Ids of other servers can be longer than OpenAI's limit.
pub(super) fn id_of_at_most(id: &str, bytes: usize) -> Cow<'_, str> {
    if id.len() <= bytes {
        return Cow::Borrowed(id);
    }
    let digest = Digest::of(id).to_string();
    Cow::Owned(format!("call_{}", digest.get(..32).unwrap_or(&digest)))
}

/// The called name. A name that a model made up, and that is in no menu, may contain any character.
pub(super) fn name(name: &str) -> Cow<'_, str> {
    let is_taken = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if (1..=MAX_TOOL_NAME).contains(&name.len()) && name.chars().all(is_taken) {
        return Cow::Borrowed(name);
    }
    let taken = name.chars().map(|c| if is_taken(c) { c } else { '_' }).take(MAX_TOOL_NAME);
    let taken: String = taken.collect();
    Cow::Owned(if taken.is_empty() { "_".to_owned() } else { taken })
}

/// Arguments as the text in which the vendor keeps them. OpenAI accepts any text; other servers
/// parse an object from it, and otherwise refuse the whole conversation.
pub(super) fn arguments(arguments: &Arguments) -> Cow<'_, str> {
    match ObjectArguments::from(arguments) {
        ObjectArguments::Text(raw) => Cow::Borrowed(raw.get()),
        data => serde_json::to_string(&data).map_or(Cow::Borrowed("{}"), Cow::Owned),
    }
}

/// The text of a failed call. The API has no field for failures.
pub(super) fn failed(text: &str) -> Cow<'_, str> {
    Cow::Owned(format!("Error: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_was_made_up_makes_no_request_invalid() {
        let names = [
            ("refund", "refund"),
            ("mcp__git__log-1", "mcp__git__log-1"),
            ("functions.refund", "functions_refund"),
            ("find order", "find_order"),
            ("größe", "gr__e"),
            ("a\u{0}\n", "a__"),
            ("", "_"),
        ];
        for (called, expected) in names {
            assert_eq!(name(called), expected, "{called:?}");
        }
        assert_eq!(name(&"x".repeat(500)).len(), MAX_TOOL_NAME);
        assert_eq!(name(&"ß".repeat(500)).len(), MAX_TOOL_NAME);
    }
}
