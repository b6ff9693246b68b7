//! Failures of assertions.

use std::fmt::Display;

use serde_json::Value;

/// Fails the calling test.
#[track_caller]
#[expect(clippy::panic, reason = "a test fails by panicking")]
pub(crate) fn fail(why: impl Display) -> ! {
    panic!("{why}")
}

/// The length at which texts are truncated in failures.
const LONGEST: usize = 200;

/// A text for failures: its first 200 characters, line breaks escaped.
pub(crate) fn shown(text: &str) -> String {
    let (head, more) = start(text);
    format!("{head:?}{more}")
}

/// Data for failures: the first 200 characters of its JSON, which has no line breaks.
pub(crate) fn shown_json(data: &Value) -> String {
    let (head, more) = start(&data.to_string());
    format!("{head}{more}")
}

fn start(text: &str) -> (String, &'static str) {
    let more = if text.chars().nth(LONGEST).is_some() { "…" } else { "" };
    (text.chars().take(LONGEST).collect(), more)
}
