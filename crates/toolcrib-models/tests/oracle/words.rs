//! The SDKs' results, in our terms.

use serde_json::{Value, json};

use super::api::Api;

/// The result of a request. `status` is that of the response.
pub(crate) fn in_our_words(api: Api, outcome: &Value, status: u16) -> Value {
    if let Some(error) = outcome.get("error") {
        let wait = error["retry_after"].as_str().map(|wait| wait.parse::<u64>().unwrap());
        return failed(class(api, error, status), (status != 200).then_some(status), wait);
    }
    let declined = outcome.get("refusal").is_some_and(|words| !words.is_null());
    let blocked = outcome.get("blocked").is_some_and(|reason| !reason.is_null());
    match stop(api, outcome["stop"].as_str()) {
        Stop::Reason(stop) if !declined && !blocked => json!({
            "text": outcome["text"],
            "reasoning": outcome["reasoning"],
            "calls": outcome["calls"],
            "stop": stop,
            "usage": outcome["usage"],
        }),
        Stop::Failed(class) if !declined && !blocked => failed(class, None, None),
        _ => failed("content_filter", None, None),
    }
}

/// Fields of Gemini that its SDK writes as its protocol buffers name them. In their JSON form the
/// vendor reads both names as one.
const GEMINI_FIELDS: [(&str, &str); 6] = [
    ("include_thoughts", "includeThoughts"),
    ("inline_data", "inlineData"),
    ("mime_type", "mimeType"),
    ("parameters_json_schema", "parametersJsonSchema"),
    ("thinking_budget", "thinkingBudget"),
    ("thinking_level", "thinkingLevel"),
];

/// A request as its vendor reads it.
pub(crate) fn as_read(api: Api, request: &Value) -> Value {
    match request {
        Value::Object(fields) if api == Api::Gemini => {
            let field = |(name, value): (&String, &Value)| {
                let known = GEMINI_FIELDS.iter().find(|(snake, _)| snake == name);
                let name = known.map_or(name.as_str(), |(_, camel)| camel);
                (name.to_owned(), as_read(api, value))
            };
            Value::Object(fields.iter().map(field).collect())
        }
        Value::Array(items) => items.iter().map(|item| as_read(api, item)).collect(),
        other => other.clone(),
    }
}

fn failed(class: &str, status: Option<u16>, retry_after: Option<u64>) -> Value {
    json!({ "error": { "class": class, "status": status, "retry_after": retry_after } })
}

enum Stop {
    Reason(&'static str),
    Failed(&'static str),
}

fn stop(api: Api, word: Option<&str>) -> Stop {
    let word = word.unwrap_or("(none)");
    let reason = match (api, word) {
        (Api::OpenAi, "stop" | "tool_calls")
        | (Api::Anthropic, "end_turn" | "tool_use")
        | (Api::Responses, "completed")
        | (Api::Gemini, "STOP")
        | (Api::Ollama, "stop") => "finished",
        (Api::OpenAi | Api::Ollama, "length")
        | (Api::Anthropic, "max_tokens" | "model_context_window_exceeded")
        | (Api::Responses, "max_output_tokens")
        | (Api::Gemini, "MAX_TOKENS") => "max_tokens",
        (Api::Anthropic, "stop_sequence") => "stop_sequence",
        (Api::Anthropic, "pause_turn") | (Api::Ollama, "load" | "(none)") => "other",
        (Api::OpenAi | Api::Responses, "content_filter")
        | (Api::Anthropic, "refusal")
        | (Api::Gemini, "SAFETY" | "RECITATION" | "(none)") => {
            return Stop::Failed("content_filter");
        }
        (Api::Gemini, "MALFORMED_FUNCTION_CALL") => return Stop::Failed("incomplete"),
        _ => panic!("{api} stops with `{word}`; say what that is"),
    };
    Stop::Reason(reason)
}

/// The class of an exception, by the vendor's code where it has one, else by the status.
fn class(api: Api, error: &Value, status: u16) -> &'static str {
    match (api, error["code"].as_str().unwrap_or_default()) {
        (Api::OpenAi | Api::Responses, "insufficient_quota") => "quota",
        (Api::OpenAi | Api::Responses, "context_length_exceeded") => "context_overflow",
        (Api::OpenAi | Api::Responses, "server_error") => "server",
        (Api::Responses, "rate_limit_exceeded") => "rate_limit",
        (Api::Responses, "image_parse_error") => "bad_request",
        (Api::Gemini, "API_KEY_INVALID") => "auth",
        (Api::Anthropic, "overloaded_error") | (Api::Gemini, "UNAVAILABLE") => "overloaded",
        (Api::Anthropic, "api_error") => "server",
        (Api::Anthropic, "request_too_large") => "context_overflow",
        _ => match status {
            401 | 403 => "auth",
            429 => "rate_limit",
            502..=504 => "overloaded",
            500..=599 => "server",
            400..=499 => "bad_request",
            _ => "incomplete",
        },
    }
}
