//! The result of an HTTP response.

use std::fmt::Write;

use serde_json::Value;
use toolcrib_capabilities::http::{HttpResponse, StatusCode, header};
use toolcrib_core::{
    __internal::{MOST_VALUES, beginning, has_more_values},
    ToolContext, ToolOutput,
};

/// How much of the body of a failure is shown, in characters.
const SHOWN_BODY: usize = 500;
/// How many keys are named where one is missing, and how much of each, in characters.
const SHOWN_KEYS: usize = 20;
const SHOWN_KEY: usize = 60;
/// How much is shown of what a header says, in characters.
const SHOWN_HEADER: usize = 60;

/// The type of a response body, by its response header.
enum Kind {
    Json,
    Text,
    /// Nothing is said.
    Unsaid,
    /// All that a model could not read.
    Other(String),
}

/// The result of a call that went well; else what is wrong with the answer.
pub(super) fn read(
    response: &HttpResponse,
    pointer: Option<&str>,
    cx: &ToolContext,
) -> Result<ToolOutput, String> {
    let done = matches!(response.status, StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT);
    if done || (response.body.is_empty() && pointer.is_none()) {
        return Ok(ToolOutput::text(format!("done ({})", response.status.as_u16())));
    }
    let host = host(response);
    match (kind(response, cx), pointer) {
        (Kind::Json, pointer) => {
            let json = json(response).map_err(|error| {
                format!("`{host}` declared a JSON body, but it is not valid JSON: {error}")
            })?;
            part(json, pointer, host, cx)
        }
        (kind, Some(pointer)) => match json(response) {
            Ok(json) => part(json, Some(pointer), host, cx),
            Err(_) => Err(match kind {
                Kind::Other(named) => format!("`{host}` answered {named} where JSON was expected"),
                _ => format!("`{host}` answered text where JSON was expected"),
            }),
        },
        (Kind::Unsaid, None) => match (json(response), str::from_utf8(&response.body)) {
            (Ok(json), _) => part(json, None, host, cx),
            (Err(_), Ok(text)) => Ok(ToolOutput::text(text)),
            (Err(_), Err(_)) => Ok(not_shown("a body without a content type", response)),
        },
        (Kind::Text, None) => Ok(ToolOutput::text(String::from_utf8_lossy(&response.body))),
        (Kind::Other(named), None) => Ok(not_shown(&named, response)),
    }
}

/// The error for a response whose status is not a success.
pub(super) fn failure(response: &HttpResponse, cx: &ToolContext) -> String {
    let status = response.status;
    let mut text = format!("`{}` answered {}", host(response), status.as_u16());
    if let Some(reason) = status.canonical_reason() {
        let _ = write!(text, " {reason}");
    }
    if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        text.push_str(
            "; the tool's credential is missing, wrong or has too few rights, which only its \
             operator can change",
        );
    }
    if let Some(wait) = said(response, header::RETRY_AFTER, cx) {
        let seconds = !wait.is_empty() && wait.bytes().all(|byte| byte.is_ascii_digit());
        let wait = if seconds { format!("in {wait} s") } else { format!("after {wait}") };
        let _ = write!(text, "; try again {wait}");
    }
    if !matches!(kind(response, cx), Kind::Other(_)) {
        let body = String::from_utf8_lossy(&response.body);
        let body = body.trim();
        if !body.is_empty() {
            let _ = write!(text, ": {}", shortened(body, SHOWN_BODY, cx));
        }
    }
    text
}

/// The host that answered.
pub(super) fn host(response: &HttpResponse) -> &str {
    response.final_url.host_str().unwrap_or_default()
}

fn part(
    mut json: Value,
    pointer: Option<&str>,
    host: &str,
    cx: &ToolContext,
) -> Result<ToolOutput, String> {
    let pointer = pointer.unwrap_or_default();
    match json.pointer_mut(pointer).map(Value::take) {
        Some(Value::String(text)) => Ok(ToolOutput::text(text.clone()).structured(text)),
        Some(part) => Ok(ToolOutput::json(part)),
        None => Err(format!(
            "the answer of `{host}` has nothing at `{pointer}`; {}",
            there(&json, pointer, cx)
        )),
    }
}

/// The value at which a pointer ends too early.
fn there(json: &Value, pointer: &str, cx: &ToolContext) -> String {
    let mut at = pointer;
    let reached = loop {
        at = at.rsplit_once('/').map_or("", |(above, _)| above);
        match json.pointer(at) {
            Some(reached) => break reached,
            None if at.is_empty() => break json,
            None => {}
        }
    };
    let place = if at.is_empty() { "at its top".to_owned() } else { format!("at `{at}`") };
    match reached {
        Value::Object(members) if members.is_empty() => format!("{place} is an empty object"),
        Value::Object(members) => {
            let named: Vec<String> = members
                .keys()
                .take(SHOWN_KEYS)
                .map(|key| format!("`{}`", shortened(key, SHOWN_KEY, cx)))
                .collect();
            let more = if members.len() > SHOWN_KEYS { " and more" } else { "" };
            format!("{place} there are {}{more}", named.join(", "))
        }
        Value::Array(items) => format!("{place} is a list of {}", items.len()),
        Value::Null => format!("{place} is null"),
        Value::Bool(_) => format!("{place} is a boolean"),
        Value::Number(_) => format!("{place} is a number"),
        Value::String(_) => format!("{place} is a text"),
    }
}

/// A body as JSON, of a limited number of values.
pub(crate) fn json(response: &HttpResponse) -> Result<Value, String> {
    let body = response.body.as_ref();
    if has_more_values(MOST_VALUES, body) {
        return Err(format!("it contains more than {MOST_VALUES} values"));
    }
    let json = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    serde_json::from_slice(json).map_err(|error| error.to_string())
}

fn kind(response: &HttpResponse, cx: &ToolContext) -> Kind {
    let Some(said) = said(response, header::CONTENT_TYPE, cx) else {
        return Kind::Unsaid;
    };
    let named = said.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_text = || {
        named.starts_with("text/")
            || named.ends_with("+xml")
            || matches!(
                named.as_str(),
                "application/xml"
                    | "application/javascript"
                    | "application/x-ndjson"
                    | "application/yaml"
                    | "application/x-yaml"
                    | "application/x-www-form-urlencoded"
            )
    };
    if named.is_empty() {
        Kind::Unsaid
    } else if named == "text/json" || named == "application/json" || named.ends_with("+json") {
        Kind::Json
    } else if is_text() {
        Kind::Text
    } else {
        Kind::Other(named)
    }
}

fn not_shown(named: &str, response: &HttpResponse) -> ToolOutput {
    ToolOutput::text(format!("{named}, {} bytes, omitted", response.body.len()))
}

fn said(response: &HttpResponse, name: header::HeaderName, cx: &ToolContext) -> Option<String> {
    let value = response.headers.get(name)?;
    Some(shortened(String::from_utf8_lossy(value.as_bytes()).trim(), SHOWN_HEADER, cx))
}

/// The beginning of a text, of this number of characters. Redacted before it is cut: half a secret is none
/// that anybody would know again.
pub(super) fn shortened(text: &str, chars: usize, cx: &ToolContext) -> String {
    beginning(&cx.redacted(text), chars)
}

/// The beginning of a text, its white space made single spaces.
pub(crate) fn one_line(text: &str, chars: usize) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        // Stops early: a text can be large.
        if line.len() > chars * 4 {
            break;
        }
    }
    beginning(&line, chars)
}
