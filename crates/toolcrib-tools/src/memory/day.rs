//! Days of the calendar.

use std::time::{Duration, UNIX_EPOCH};

/// The day of a time in milliseconds since 1970, in UTC: `2026-11-26`.
pub(super) fn day(ms: u64) -> String {
    // Later years cannot be written.
    let since = Duration::from_millis(ms.min(253_402_300_799_999));
    let time = UNIX_EPOCH.checked_add(since).unwrap_or(UNIX_EPOCH);
    humantime::format_rfc3339_seconds(time).to_string().chars().take(10).collect()
}

#[cfg(test)]
mod tests {
    use super::day;

    #[test]
    fn any_time_has_a_day() {
        assert_eq!(day(951_782_400_000), "2000-02-29");
        assert_eq!(day(u64::MAX), "9999-12-31");
    }
}
