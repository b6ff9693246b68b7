//! How the kit fails a test.

use std::{
    fmt::Display,
    sync::{Mutex, MutexGuard, PoisonError},
};

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

/// A text as it stands in failures: its first 200 characters, line breaks escaped.
pub(crate) fn shown(text: &str) -> String {
    const LONGEST: usize = 200;
    let head: String = text.chars().take(LONGEST).collect();
    let more = if text.chars().nth(LONGEST).is_some() { "…" } else { "" };
    format!("{head:?}{more}")
}
