//! Classifies the errors of the vendor, and of servers with the same protocol.

use std::time::Duration;

use serde_json::Value;
use toolcrib_capabilities::http::StatusCode;
use toolcrib_core::{ModelError, ModelErrorClass};

use super::super::{failure, protocol::Refusal};

/// The prefix of the time to wait in OpenAI's and Groq's messages.
const TRY_AGAIN: &str = "try again in ";

/// Classifies the body of an error response. Classes by the status alone are not assigned here.
pub(super) fn of(status: StatusCode, body: &Value) -> Refusal {
    // The status may be a success, and the body contain the actual status.
    if status.is_success() { in_stream(body) } else { of_body(body) }
}

fn of_body(body: &Value) -> Refusal {
    let error = error(body);
    let message = words(error);
    Refusal {
        class: class(error, message.as_deref().unwrap_or_default()),
        retry_after: retry_after(error, message.as_deref().unwrap_or_default()),
        message,
    }
}

/// Classifies an error in a stream. Its number is the status that it would have had.
pub(super) fn in_stream(body: &Value) -> Refusal {
    let mut refusal = of_body(body);
    let words = refusal.message.as_deref().unwrap_or_default();
    let code = error(body).get("code");
    let code = code.and_then(|code| code.as_u64().or_else(|| code.as_str()?.parse().ok()));
    let status = code.and_then(|code| StatusCode::from_u16(u16::try_from(code).ok()?).ok());
    let by_status = || {
        let status =
            status.filter(|status| status.is_client_error() || status.is_server_error())?;
        Some(failure::class_of(status, words))
    };
    let by_words =
        || failure::says_context_overflow(words).then_some(ModelErrorClass::ContextOverflow);
    let by_kind = || is_fault_of_request(error(body)).then_some(ModelErrorClass::BadRequest);
    refusal.class = refusal.class.or_else(by_status).or_else(by_words).or_else(by_kind);
    refusal
}

/// A refusal by the model or its vendor.
pub(super) fn declined(words: &str) -> ModelError {
    failure::in_stream(Refusal {
        class: Some(ModelErrorClass::ContentFilter),
        message: Some(words.to_owned()),
        retry_after: None,
    })
}

/// The error itself. Gemini's compatible endpoint wraps it in a list.
fn error(body: &Value) -> &Value {
    let body = body.get(0).unwrap_or(body);
    body.get("error").filter(|error| !error.is_null()).unwrap_or(body)
}

/// Its message. FastAPI, and with it many small servers, use `detail`; OpenRouter puts the message of
/// the upstream server into `metadata`.
fn words(error: &Value) -> Option<String> {
    let said = |of: &Value| match of {
        Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
        Value::Array(_) | Value::Object(_) => Some(of.to_string()),
        _ => None,
    };
    if error.is_string() {
        return said(error);
    }
    let message = ["message", "detail"].iter().find_map(|key| said(error.get(key)?))?;
    Some(match error.pointer("/metadata/raw").and_then(said) {
        Some(raw) => format!("{message}: {raw}"),
        None => message,
    })
}

fn class(error: &Value, words: &str) -> Option<ModelErrorClass> {
    let by_name = ["code", "type", "status"].iter().find_map(|key| {
        Some(match error.get(key)?.as_str()? {
            code if failure::is_no_credit(code) => ModelErrorClass::Quota,
            "context_length_exceeded" | "exceed_context_size_error" => {
                ModelErrorClass::ContextOverflow
            }
            "content_filter"
            | "content_policy_violation"
            | "image_content_policy_violation"
            | "misalignment_policy_violation"
            | "moderation_blocked"
            | "bio_policy"
            | "cyber_policy"
            // OpenAI has a separate code for each malformed request; this one is for flagged
            // content.
            | "invalid_prompt" => ModelErrorClass::ContentFilter,
            "invalid_api_key" | "authentication_error" | "permission_error" => {
                ModelErrorClass::Auth
            }
            "rate_limit_exceeded" | "rate_limit_error" | "RESOURCE_EXHAUSTED" => {
                ModelErrorClass::RateLimit
            }
            "overloaded_error"
            | "server_is_overloaded"
            | "service_unavailable_error"
            | "slow_down"
            | "UNAVAILABLE" => ModelErrorClass::Overloaded,
            "server_error" => ModelErrorClass::Server,
            _ => return None,
        })
    });
    let flagged = || {
        let flagged = error.get("misalignment").is_some_and(|flagged| !flagged.is_null());
        flagged.then_some(ModelErrorClass::ContentFilter)
    };
    // Gemini reports an unknown key as a bad request.
    let unknown_key =
        || words.to_lowercase().contains("valid api key").then_some(ModelErrorClass::Auth);
    by_name.or_else(flagged).or_else(unknown_key)
}

/// Whether an error without a status is about the request, such as an image in it that cannot be
/// read.
fn is_fault_of_request(error: &Value) -> bool {
    let is = |key: &str, fits: fn(&str) -> bool| {
        error.get(key).and_then(Value::as_str).is_some_and(fits)
    };
    is("type", |kind| kind == "invalid_request_error") || is("code", |code| code.contains("image"))
}

/// The time to wait, if the message or Gemini's details contain it.
fn retry_after(error: &Value, words: &str) -> Option<Duration> {
    let in_words = || {
        let words = words.to_lowercase();
        duration(words.split_once(TRY_AGAIN)?.1)
    };
    let in_details = || {
        let mut details = error.get("details")?.as_array()?.iter();
        duration(details.find_map(|detail| detail.get("retryDelay")?.as_str())?)
    };
    in_words().or_else(in_details)
}

/// A duration at the beginning of a text: `6m0s`, `1.5s`, `438ms`.
fn duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut seconds = None;
    loop {
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
        let (count, behind) = rest.split_at(end);
        let end = behind.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(end);
        let unit = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 0.001,
            _ => break,
        };
        let Ok(count) = count.parse::<f64>() else { break };
        seconds = Some(seconds.unwrap_or(0.0) + count * unit);
        rest = behind;
    }
    Duration::try_from_secs_f64(seconds?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_far_as_they_go() {
        let table = [
            ("20s.", Some(20_000)),
            ("438ms. Visit", Some(438)),
            ("6m0s", Some(360_000)),
            ("1h2m3.5s", Some(3_723_500)),
            ("1.898s. Limit: 3", Some(1_898)),
            ("2s.5", Some(2_000)),
            ("a while", None),
            ("20", None),
            ("", None),
            ("1.2.3s", None),
            ("s", None),
            ("99999999999999999999999h", None),
        ];
        for (text, millis) in table {
            assert_eq!(duration(text), millis.map(Duration::from_millis), "{text}");
        }
    }
}
