//! What both APIs take of a call that was made, and of its result.
//!
//! A call stays in the history, whatever became of it. What the vendor would refuse in it would make
//! every later request invalid, so it goes back as something that is taken.

use std::borrow::Cow;

use toolcrib_core::{Arguments, Digest, MAX_TOOL_NAME};

use super::super::arguments::ObjectArguments;

/// An id of at most so many bytes. Those that other servers give can be longer than OpenAI takes.
pub(super) fn id_of_at_most(id: &str, bytes: usize) -> Cow<'_, str> {
    if id.len() <= bytes {
        return Cow::Borrowed(id);
    }
    let digest = Digest::of(id).to_string();
    Cow::Owned(format!("call_{}", digest.get(..32).unwrap_or(&digest)))
}

/// The name that was called. One that a model made up, and that is in no menu, may hold anything.
pub(super) fn name(name: &str) -> Cow<'_, str> {
    let is_taken = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if (1..=MAX_TOOL_NAME).contains(&name.len()) && name.chars().all(is_taken) {
        return Cow::Borrowed(name);
    }
    let taken = name.chars().map(|c| if is_taken(c) { c } else { '_' }).take(MAX_TOOL_NAME);
    let taken: String = taken.collect();
    Cow::Owned(if taken.is_empty() { "_".to_owned() } else { taken })
}

/// Arguments as the text that the vendor keeps them in. OpenAI takes any text; other servers read an
/// object from it, and refuse the whole conversation where there is none.
pub(super) fn arguments(arguments: &Arguments) -> Cow<'_, str> {
    match ObjectArguments::from(arguments) {
        ObjectArguments::Text(raw) => Cow::Borrowed(raw.get()),
        data => serde_json::to_string(&data).map_or(Cow::Borrowed("{}"), Cow::Owned),
    }
}

/// What a call says that failed. There is no field for that.
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
