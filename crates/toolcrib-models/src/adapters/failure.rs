//! Classifies errors.

use std::{
    error::Error as _,
    time::{Duration, SystemTime},
};

use serde_json::Value;
use toolcrib_capabilities::http::{HeaderMap, HttpError, HttpErrorKind, StatusCode, retry_after};
use toolcrib_core::{ModelError, ModelErrorClass, Secret};

use super::protocol::{Protocol, Refusal};

/// Maximum length of a vendor's message that is kept.
const MAX_WORDS: usize = 1000;
/// Maximum length of a parser's message that is kept: it repeats unexpected input of any length.
const MAX_PROBLEM: usize = 200;
/// Maximum time to wait, whatever a server requests.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// Messages of vendors and servers without a code for a conversation that is too long.
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

/// Messages of vendors and servers, and codes of many, for an account without credit. Statuses do not
/// tell it: it is 400, 402, 403 or 429. A limit per minute that mentions billing is not among them.
const NO_CREDIT: [&str; 15] = [
    "insufficient quota",
    "insufficient balance",
    "insufficient credit",
    "insufficient funds",
    "credit balance",
    "out of credit",
    "no credit",
    "not enough credit",
    "more credit",
    "credits are depleted",
    "credits have been depleted",
    "spend limit",
    "spending limit",
    "spending cap",
    "budget has been exceeded",
];

/// Parts of codes for the same.
const NO_CREDIT_CODES: [&str; 8] = [
    "insufficient_",
    "billing",
    "credit",
    "spend_limit",
    "usage_limit",
    "budget_exceeded",
    "exceeded_current_quota",
    "payment_required",
];

/// An error status.
pub(super) fn of_status(
    protocol: &dyn Protocol,
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
) -> ModelError {
    let json: Value = serde_json::from_slice(body).unwrap_or_default();
    let Refusal { class, message, retry_after: of_body } = protocol.refusal(status, &json);
    let words = message.unwrap_or_else(|| String::from_utf8_lossy(body).into_owned());
    let class = exact(class, &words).unwrap_or_else(|| class_of(status, &words));
    let mut error =
        ModelError::new(class, said(&format!("status {}", status.as_u16()), class, &words));
    error.status = Some(status.as_u16());
    error.retry_after = retry_after_of(headers, SystemTime::now())
        .or(of_body)
        .map(|wait| wait.min(MAX_RETRY_AFTER));
    error
}

/// An error inside the stream of a response.
pub(super) fn in_stream(refusal: Refusal) -> ModelError {
    let words = refusal.message.unwrap_or_default();
    let class = exact(refusal.class, &words).unwrap_or(ModelErrorClass::Incomplete);
    let mut error = ModelError::new(class, said("an error in its response", class, &words));
    error.retry_after = refusal.retry_after.map(|wait| wait.min(MAX_RETRY_AFTER));
    error
}

/// As [`in_stream`], of a text that need not be JSON.
pub(super) fn in_stream_text(text: &str, refusal: fn(&Value) -> Refusal) -> ModelError {
    in_stream(match serde_json::from_str(text) {
        Ok(json) => refusal(&json),
        Err(_) => Refusal { message: Some(text.to_owned()), ..Refusal::default() },
    })
}

/// A success status without the requested list of models.
pub(super) fn of_no_list(refusal: Refusal) -> ModelError {
    let class = refusal.class.unwrap_or(ModelErrorClass::Protocol);
    let words = refusal.message.unwrap_or_default();
    ModelError::new(class, said("the response is not a list of models", class, &words))
}

/// A frame that does not follow the vendor's documentation.
#[expect(clippy::needless_pass_by_value, reason = "as `map_err` passes it")]
pub(super) fn unreadable(error: serde_json::Error) -> ModelError {
    let problem: String = error.to_string().chars().take(MAX_PROBLEM).collect();
    ModelError::new(
        ModelErrorClass::Protocol,
        format!("a message of its response cannot be read: {problem}"),
    )
}

/// The advice for a class of errors.
fn advice(class: ModelErrorClass) -> &'static str {
    match class {
        ModelErrorClass::Auth => "check the key and its permissions",
        ModelErrorClass::Quota => "there is no credit left, or a limit of the account is reached",
        ModelErrorClass::RateLimit => "too many requests; wait, or request a higher limit",
        ModelErrorClass::Overloaded => "the vendor is overloaded; try again later",
        ModelErrorClass::Server => "the vendor failed; try again",
        ModelErrorClass::ContextOverflow => "the conversation is longer than the model accepts",
        ModelErrorClass::ContentFilter => "the vendor refuses to answer this",
        ModelErrorClass::BadRequest => {
            "the vendor does not accept the request; check the model's name and settings"
        }
        ModelErrorClass::Protocol => "not a response of its API; check the base URL",
        _ => "the response is incomplete",
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
        402 => ModelErrorClass::Quota,
        400 | 403 | 429 if says_no_credit(words) => ModelErrorClass::Quota,
        429 => ModelErrorClass::RateLimit,
        401 | 403 => ModelErrorClass::Auth,
        408 | 409 | 502..=504 | 529 => ModelErrorClass::Overloaded,
        413 => ModelErrorClass::ContextOverflow,
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

/// The class, except that an exhausted quota is not a limit that passes in a while.
fn exact(class: Option<ModelErrorClass>, words: &str) -> Option<ModelErrorClass> {
    match class {
        Some(ModelErrorClass::RateLimit) if says_no_credit(words) => Some(ModelErrorClass::Quota),
        other => other,
    }
}

/// Whether a message is about an account without credit.
pub(super) fn says_no_credit(words: &str) -> bool {
    let words = words.to_lowercase().replace('_', " ");
    NO_CREDIT.iter().any(|phrase| words.contains(phrase))
}

/// Whether an error's code is about an account without credit.
pub(super) fn is_no_credit(code: &str) -> bool {
    let code = code.to_ascii_lowercase();
    NO_CREDIT_CODES.iter().any(|part| code.contains(part))
}

/// The wait requested by a server, in a header about this response. Headers about the limits of an
/// account, such as `x-ratelimit-reset`, are not read: they do not say which of the limits was
/// reached. Milliseconds in OpenAI's own header, otherwise seconds or a date.
fn retry_after_of(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let millis = headers.get("retry-after-ms").and_then(|ms| ms.to_str().ok()?.trim().parse().ok());
    let in_millis = millis.and_then(|ms: f64| Duration::try_from_secs_f64(ms / 1000.0).ok());
    in_millis.or_else(|| retry_after(headers, now))
}

/// Classifies an HTTP error. `begun` is whether a part of the answer has arrived.
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
            "`{host}` redirects; redirects are not followed, to keep the key private; set the \
             base URL to the target"
        ),
        (other, ModelErrorClass::Incomplete) => format!("its response broke off: {other}"),
        (other, _) => other.to_string(),
    };
    ModelError::new(class, message).caused_by(error)
}

/// Servers repeat the key that they refuse, some of them in part. This removes it from the error.
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

/// Whether a server's text contains the key that it was sent.
pub(super) fn shows_key(text: &str, key: Option<&Secret>) -> bool {
    key.is_some_and(|key| shows(text, key.expose()))
}

/// Whether a text contains a key, in any case, or enough of it to identify it: its beginning, its
/// end, or a longer part. A short key is a placeholder, such as `test`, and counts only as a
/// separate word.
fn shows(text: &str, key: &str) -> bool {
    const TELLING: usize = 6;
    const PART: usize = 8;
    let (text, key) = (text.to_ascii_lowercase(), key.to_ascii_lowercase());
    if key.len() < 2 * TELLING {
        let goes_on = |c: char| c.is_alphanumeric() || "-_".contains(c);
        return text.match_indices(&*key).any(|(at, found)| {
            let before = text.get(..at).and_then(|text| text.chars().next_back());
            let behind = text.get(at + found.len()..).and_then(|text| text.chars().next());
            !before.is_some_and(goes_on) && !behind.is_some_and(goes_on)
        });
    }
    // A key is ASCII: every byte index is a character boundary.
    let ends = [key.get(..TELLING), key.get(key.len().saturating_sub(TELLING)..)];
    let parts = (0..key.len()).map(|at| key.get(at..at + PART));
    ends.into_iter().chain(parts).flatten().any(|part| text.contains(part))
}
