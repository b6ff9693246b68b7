//! Maps the names of tools to Gemini's form and back.

use std::borrow::Cow;

/// Gemini's limit for a name.
const MAX_NAME: usize = 128;

/// A tool's name in Gemini's form: it must begin with a letter or an underscore. Toolcrib's may
/// begin with a digit or a dash; such a name gets an underscore as prefix, and so does each that
/// would be mistaken for such a one (`_1` is sent as `__1`).
///
/// A name that is in no menu, because a model made it up, may contain any character; it is in the
/// history all the same, so characters that Gemini would refuse are replaced.
pub(super) fn sent(name: &str) -> Cow<'_, str> {
    let taken = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
    if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(taken) {
        let replaced = name.chars().map(|c| if taken(c) { c } else { '_' }).take(MAX_NAME - 1);
        return Cow::Owned(std::iter::once('_').chain(replaced).collect());
    }
    if is_shifted(name) { Cow::Owned(format!("_{name}")) } else { Cow::Borrowed(name) }
}

/// The original of a sent name.
pub(super) fn received(name: &str) -> &str {
    match name.strip_prefix('_') {
        Some(rest) if is_shifted(rest) => rest,
        _ => name,
    }
}

/// Whether a name, without leading underscores, begins with a character that Gemini does not accept
/// at the beginning.
fn is_shifted(name: &str) -> bool {
    name.trim_start_matches('_').starts_with(|c: char| !c.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_comes_back_and_no_two_are_one() {
        let names = [
            ("refund", "refund"),
            ("_refund", "_refund"),
            ("_", "_"),
            ("__", "__"),
            ("3d_view", "_3d_view"),
            ("_3d_view", "__3d_view"),
            ("__3d_view", "___3d_view"),
            ("-x", "_-x"),
            ("_-x", "__-x"),
            ("mcp__git__log-1", "mcp__git__log-1"),
        ];
        for (name, expected) in names {
            assert_eq!(sent(name), expected);
            assert_eq!(received(expected), name);
        }
        // A name without the prefix is accepted too.
        assert_eq!(received("3d_view"), "3d_view");
    }

    #[test]
    fn a_name_that_was_made_up_makes_no_request_invalid() {
        let names = [
            ("", "_"),
            ("find order", "_find_order"),
            ("größe", "_gr__e"),
            ("default_api:find", "default_api:find"),
        ];
        for (name, expected) in names {
            assert_eq!(sent(name), expected);
        }
        assert_eq!(sent(&"x".repeat(500)).len(), MAX_NAME);
        assert_eq!(sent(&"ß".repeat(500)).len(), MAX_NAME);
    }
}
