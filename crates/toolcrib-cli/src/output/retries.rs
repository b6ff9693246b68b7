//! Waits before retries.

use std::time::Duration;

use super::text::duration;

/// A wait before a retry, with its reason.
pub(super) fn retry_wait(wait_ms: u64, error_class: &str) -> String {
    let reason = match error_class {
        "rate_limit" => "the vendor limits requests",
        "overloaded" => "the vendor is overloaded",
        "server" => "the vendor failed",
        "network" => "the server cannot be reached",
        "empty_answer" => "the answer was empty",
        other => other,
    };
    let wait = Duration::from_millis(wait_ms);
    let wait = match (wait.as_secs(), wait.subsec_millis()) {
        (seconds @ 1.., 0) => format!("{seconds} s"),
        _ => duration(wait),
    };
    format!("waiting {wait}: {reason}")
}
