//! The `Retry-After` header.

use std::time::{Duration, SystemTime};

use hyper::{HeaderMap, header};

/// The delay that a response requests before the next request, by its `Retry-After`: seconds, which
/// some servers write with a fraction, or a date, compared to `now`. `None` if it is absent or
/// invalid.
pub fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_dates_are_read_and_nothing_else() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let asked = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::RETRY_AFTER, text.parse().unwrap());
            retry_after(&headers, now)
        };
        let millis = |ms| Some(Duration::from_millis(ms));
        assert_eq!((asked("7"), asked(" 1.5 ")), (millis(7_000), millis(1_500)));
        assert_eq!(asked("Sun, 06 Nov 1994 08:50:07 GMT"), millis(30_000));
        assert_eq!(asked("Sun, 06 Nov 1994 08:49:07 GMT"), millis(0), "it is over");
        for text in ["", "soon", "-1", "NaN", "inf", "1e300"] {
            assert_eq!(asked(text), None, "{text}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }
}
