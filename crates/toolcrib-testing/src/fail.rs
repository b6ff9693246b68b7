//! How the kit fails a test.

use std::{
    fmt::Display,
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde_json::Value;

/// Fails the test that calls.
#[track_caller]
#[expect(clippy::panic, reason = "a test fails by panicking")]
pub(crate) fn fail(why: impl Display) -> ! {
    panic!("{why}")
}

/// A lock that stays usable when a test failed while holding it.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The length from which on something is cut in failures.
const LONGEST: usize = 200;

/// A text as it stands in failures: its first 200 characters, line breaks escaped.
pub(crate) fn shown(text: &str) -> String {
    let (head, more) = start(text);
    format!("{head:?}{more}")
}

/// Data as it stands in failures: the first 200 characters of its JSON, which has no line breaks.
pub(crate) fn shown_json(data: &Value) -> String {
    let (head, more) = start(&data.to_string());
    format!("{head}{more}")
}

fn start(text: &str) -> (String, &'static str) {
    let more = if text.chars().nth(LONGEST).is_some() { "…" } else { "" };
    (text.chars().take(LONGEST).collect(), more)
}
