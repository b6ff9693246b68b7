//! What went wrong, in classes.

use std::{
    error::Error as _,
    time::{Duration, SystemTime},
};

use serde_json::Value;
use toolcrib_core::{ModelError, ModelErrorClass, Secret};
use toolcrib_scope::http::{HeaderMap, HttpError, HttpErrorKind, StatusCode, header};

use super::{protocol::Refusal, vendor::Vendor};

/// How much of a vendor's own words is kept.
const MAX_WORDS: usize = 1000;
/// Nobody waits longer than that, whatever a server asks for.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// How vendors and servers say that a conversation is too long, where they have no code for it.
const CONTEXT_OVERFLOW: [&str; 8] = [
    "context length",
    "context window",
    "context size",
    "prompt is too long",
    "input is too long",
    "maximum number of tokens",
    "exceeds the maximum number of input tokens",
    "input token count",
];

/// A status that says no.
pub(super) fn of_status(
    vendor: Vendor,
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
) -> ModelError {
    let json: Value = serde_json::from_slice(body).unwrap_or_default();
    let Refusal { class, message, retry_after } = vendor.protocol().refusal(status, &json);
    let words = message.unwrap_or_else(|| String::from_utf8_lossy(body).into_owned());
    let class = class.unwrap_or_else(|| class_of(status, &words));
    let mut error =
        ModelError::new(class, said(&format!("status {}", status.as_u16()), class, &words));
    error.status = Some(status.as_u16());
    error.retry_after = retry_after_of(headers, SystemTime::now())
        .or(retry_after)
        .map(|wait| wait.min(MAX_RETRY_AFTER));
    error
}

/// An error that stands in the stream of an answer.
pub(super) fn in_stream(refusal: Refusal) -> ModelError {
    let class = refusal.class.unwrap_or(ModelErrorClass::Incomplete);
    let words = refusal.message.unwrap_or_default();
    let mut error = ModelError::new(class, said("an error in its answer", class, &words));
    error.retry_after = refusal.retry_after.map(|wait| wait.min(MAX_RETRY_AFTER));
    error
}

/// A frame that is not what the vendor documents.
pub(super) fn unreadable(error: serde_json::Error) -> ModelError {
    ModelError::new(
        ModelErrorClass::Protocol,
        format!("a message of its answer cannot be read: {error}"),
    )
    .caused_by(error)
}

/// What the class advises.
fn advice(class: ModelErrorClass) -> &'static str {
    match class {
        ModelErrorClass::Auth => "check the key, and what it is allowed to do",
        ModelErrorClass::Quota => "there is no credit left, or a limit of the account is reached",
        ModelErrorClass::RateLimit => "too many requests; wait, or ask for a higher limit",
        ModelErrorClass::Overloaded => "the vendor is overloaded; try again later",
        ModelErrorClass::Server => "the vendor failed; try again",
        ModelErrorClass::ContextOverflow => "the conversation is longer than the model takes",
        ModelErrorClass::ContentFilter => "the vendor refuses to answer this",
        ModelErrorClass::BadRequest => {
            "the vendor does not take the request; check the model's name and settings"
        }
        _ => "the answer is not whole",
    }
}

fn said(what: &str, class: ModelErrorClass, words: &str) -> String {
    let words: String = words
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .filter(|c| !c.is_control())
        .take(MAX_WORDS)
        .collect();
    let advice = advice(class);
    if words.is_empty() {
        format!("{what}: {advice}")
    } else {
        format!("{what}: {advice}; it says: {words}")
    }
}

pub(super) fn class_of(status: StatusCode, words: &str) -> ModelErrorClass {
    match status.as_u16() {
        401 | 403 => ModelErrorClass::Auth,
        402 => ModelErrorClass::Quota,
        429 => ModelErrorClass::RateLimit,
        502..=504 | 529 => ModelErrorClass::Overloaded,
        500..=599 => ModelErrorClass::Server,
        400..=499 if says_context_overflow(words) => ModelErrorClass::ContextOverflow,
        400..=499 => ModelErrorClass::BadRequest,
        _ => ModelErrorClass::Protocol,
    }
}

/// Whether a message is about the length of the conversation.
pub(super) fn says_context_overflow(words: &str) -> bool {
    let words = words.to_lowercase();
    CONTEXT_OVERFLOW.iter().any(|phrase| words.contains(phrase))
}

/// How long a server asks to wait: milliseconds in OpenAI's own header, else seconds or a date.
fn retry_after_of(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let in_millis = text("retry-after-ms").and_then(|ms| ms.parse::<f64>().ok());
    if let Some(ms) = in_millis {
        return Duration::try_from_secs_f64(ms / 1000.0).ok();
    }
    let text = text(header::RETRY_AFTER.as_str())?;
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

/// What the wire says. `begun` is whether the answer had.
pub(super) fn of_http(error: HttpError, begun: bool) -> ModelError {
    let class = match error.kind() {
        HttpErrorKind::TimedOut => ModelErrorClass::Timeout,
        HttpErrorKind::Redirect | HttpErrorKind::Refused => ModelErrorClass::BadRequest,
        HttpErrorKind::Unfit => ModelErrorClass::Protocol,
        _ if begun => ModelErrorClass::Incomplete,
        _ => ModelErrorClass::Network,
    };
    let message = match (&error, class) {
        (HttpError::TooManyRedirects { host, .. }, _) => format!(
            "`{host}` redirects, which is not followed, so that the key goes nowhere else; set the \
             base URL to where it leads"
        ),
        (other, ModelErrorClass::Incomplete) => format!("its answer broke off: {other}"),
        (other, _) => other.to_string(),
    };
    ModelError::new(class, message).caused_by(error)
}

/// Servers repeat the key that they refuse, some of them in part. Whoever reads the error need not
/// see it.
pub(super) fn without_key(mut error: ModelError, key: Option<&Secret>) -> ModelError {
    let Some(key) = key.map(Secret::expose) else { return error };
    if shows(&error.message, key) {
        let words = error.message.split(' ');
        let words: Vec<_> =
            words.map(|word| if shows(word, key) { "[redacted]" } else { word }).collect();
        error.message = words.join(" ");
    }
    let mut cause = error.source();
    while let Some(this) = cause {
        if shows(&this.to_string(), key) {
            error.source = None;
            break;
        }
        cause = this.source();
    }
    error
}

/// Whether a text shows a key, or so much of its beginning or end that it could be told from others.
fn shows(text: &str, key: &str) -> bool {
    const TELLING: usize = 6;
    let end = key.len().saturating_sub(TELLING);
    // A key is ASCII: it can be cut anywhere.
    [key.get(..TELLING), key.get(end..)].into_iter().flatten().any(|part| text.contains(part))
}
