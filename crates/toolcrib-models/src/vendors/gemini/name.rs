//! Names of tools, there and back.

use std::borrow::Cow;

/// The longest name that Gemini takes.
const MAX_NAME: usize = 128;

/// A tool's name as Gemini takes it: it must begin with a letter or an underscore. Ours may begin
/// with a digit or a dash; such a name gets an underscore before it, and so does each that would be
/// mistaken for such a one (`_1` is sent as `__1`).
///
/// A name that is in no menu, because a model made it up, may hold anything; it stands in the
/// history all the same, so what Gemini would refuse in it is replaced.
pub(super) fn sent(name: &str) -> Cow<'_, str> {
    let taken = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
    if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(taken) {
        let replaced = name.chars().map(|c| if taken(c) { c } else { '_' }).take(MAX_NAME - 1);
        return Cow::Owned(std::iter::once('_').chain(replaced).collect());
    }
    if is_shifted(name) { Cow::Owned(format!("_{name}")) } else { Cow::Borrowed(name) }
}

/// The name that was sent so.
pub(super) fn received(name: &str) -> &str {
    match name.strip_prefix('_') {
        Some(rest) if is_shifted(rest) => rest,
        _ => name,
    }
}

/// Whether a name, underscores before it aside, begins with what Gemini takes at no beginning.
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
        // What a model leaves out of a name is not held against it.
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
