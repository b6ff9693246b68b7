//! The protocol's HTTP headers, which repeat parts of a message for intermediaries: they are
//! compared with it, so that an intermediary does not act on another one.

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use http::{
    HeaderMap, HeaderName,
    header::{ACCEPT, CONTENT_TYPE},
};
use rmcp::{
    ErrorData,
    model::{ErrorCode, ProtocolVersion},
};
use serde_json::{Map, Value};
use toolcrib_core::__internal::shortened;

use super::message::{INITIALIZE, Message, Request, complete, no_method, requested_version};

pub(crate) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const PROTOCOL: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

pub(crate) const JSON: &str = "application/json";
pub(crate) const EVENTS: &str = "text/event-stream";

/// Compares the headers of a request with its message.
///
/// # Errors
/// The protocol's error for a difference, and for a header that is missing.
pub(crate) fn check(headers: &HeaderMap, message: &Message) -> Result<(), ErrorData> {
    let version = version(headers)?;
    let is_stateless = version.is_some_and(is_stateless);
    match message {
        Message::Request(request) if request.method == INITIALIZE => {
            if is_stateless || request.declares_stateless() {
                return Err(no_method(INITIALIZE));
            }
            initialize(version, &request.params)
        }
        Message::Request(request) => {
            declared(version, request)?;
            if is_stateless { standard(headers, request) } else { Ok(()) }
        }
        _ if has_sessions(headers)? => Ok(()),
        Message::Notification(notification) => repeats(headers, &METHOD, &notification.method),
        Message::Response(_) => {
            Err(ErrorData::invalid_request("no response is expected: nothing was requested", None))
        }
    }
}

/// Whether a request that is not one of the protocol declares a version with sessions, or none.
///
/// # Errors
/// If the version is unknown.
pub(crate) fn has_sessions(headers: &HeaderMap) -> Result<bool, ErrorData> {
    match version(headers)? {
        Some(version) if is_unknown(version) => Err(unsupported(version)),
        version => Ok(!version.is_some_and(is_stateless)),
    }
}

/// `initialize` may be sent with the version that it requests.
fn initialize(version: Option<&str>, params: &Map<String, Value>) -> Result<(), ErrorData> {
    let Some(version) = version else { return Ok(()) };
    if requested_version(params).is_ok_and(|requested| requested.as_str() != version) {
        return Err(mismatch(&PROTOCOL, "does not match `protocolVersion` of `initialize`"));
    }
    Ok(())
}

/// The version in the header, if there is one, is that of the metadata, if there is one.
fn declared(version: Option<&str>, request: &Request) -> Result<(), ErrorData> {
    match (&request.version, version) {
        (Some(declared), Some(version)) if declared.as_str() == version => Ok(()),
        (Some(_), _) => Err(mismatch(&PROTOCOL, "must be the protocol version of `_meta`")),
        (None, Some(version)) if is_unknown(version) => Err(unsupported(version)),
        (None, Some(version)) if is_stateless(version) => complete(&request.meta),
        (None, _) if request.method == "server/discover" => complete(&request.meta),
        (None, _) => Ok(()),
    }
}

/// The method and the name of the target, which the stateless era requires.
fn standard(headers: &HeaderMap, request: &Request) -> Result<(), ErrorData> {
    repeats(headers, &METHOD, &request.method)?;
    let target = match request.method.as_str() {
        "tools/call" | "prompts/get" => "name",
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return Ok(()),
    };
    match request.params.get(target).and_then(Value::as_str) {
        Some(target) => repeats(headers, &NAME, target),
        None => Ok(()),
    }
}

fn repeats(headers: &HeaderMap, name: &HeaderName, value: &str) -> Result<(), ErrorData> {
    match single(headers, name)?.map(decoded) {
        None => Err(mismatch(name, "is missing")),
        Some(Some(sent)) if sent == value => Ok(()),
        Some(_) => Err(mismatch(name, "does not match the message")),
    }
}

fn version(headers: &HeaderMap) -> Result<Option<&str>, ErrorData> {
    single(headers, &PROTOCOL)
}

/// Whether a version, such as `2026-07-28`, is of the stateless era.
fn is_stateless(version: &str) -> bool {
    version >= ProtocolVersion::STANDARD_HEADERS.as_str()
}

fn is_unknown(version: &str) -> bool {
    !ProtocolVersion::KNOWN_VERSIONS.iter().any(|known| known.as_str() == version)
}

fn unsupported(version: &str) -> ErrorData {
    let requested = serde_json::from_value(shortened(version).into()).unwrap_or_default();
    ErrorData::unsupported_protocol_version(requested, ProtocolVersion::KNOWN_VERSIONS)
}

/// The value of a header, which may occur once.
///
/// # Errors
/// If it occurs more than once, or contains other characters than visible ASCII: intermediaries
/// may read such values in different ways.
pub(crate) fn single<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'a str>, ErrorData> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => {
            value.to_str().map(Some).map_err(|_| mismatch(name, "has invalid characters"))
        }
        _ => Err(mismatch(name, "occurs more than once")),
    }
}

/// The error for a header that does not fit its message.
pub(crate) fn mismatch(name: &HeaderName, problem: &str) -> ErrorData {
    ErrorData::new(ErrorCode::HEADER_MISMATCH, format!("the header `{name}` {problem}"), None)
}

/// The value that a header means: one that a header cannot contain is sent as Base64. `None` if it
/// is not valid Base64 of a text.
pub(crate) fn decoded(value: &str) -> Option<Cow<'_, str>> {
    let encoded = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    match encoded {
        None => Some(value.into()),
        Some(encoded) => {
            BASE64.decode(encoded).ok().and_then(|text| String::from_utf8(text).ok()).map(Cow::from)
        }
    }
}

/// Whether a request declares its body as JSON.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case(JSON))
}

/// Whether a request accepts all these media types, by name or by a pattern. A weight of zero
/// excludes what it is given to.
pub(crate) fn accepts(headers: &HeaderMap, kinds: &[&str]) -> bool {
    // The forms of the official SDKs, before the list is split.
    const USUAL: [&str; 2] =
        ["application/json, text/event-stream", "text/event-stream, application/json"];
    if headers.get(ACCEPT).is_some_and(|value| USUAL.iter().any(|usual| value == *usual)) {
        return true;
    }
    let lists = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let entries: Vec<_> = lists.flat_map(|list| unquoted(list, ',')).collect();
    kinds.iter().all(|kind| entries.iter().any(|entry| permits(entry, kind)))
}

/// Whether an entry of the list permits a media type.
fn permits(entry: &str, kind: &str) -> bool {
    let family = kind.split('/').next().unwrap_or_default();
    let mut parts = unquoted(entry, ';').map(str::trim);
    let name = parts.next().unwrap_or_default();
    let pattern = name.strip_suffix("/*");
    let is_named = name.eq_ignore_ascii_case(kind)
        || pattern.is_some_and(|of| of == "*" || of.eq_ignore_ascii_case(family));
    let weight = |part: &str| {
        let (name, weight) = part.split_once('=')?;
        name.trim().eq_ignore_ascii_case("q").then(|| weight.trim().parse::<f32>().ok())?
    };
    is_named && parts.filter_map(weight).all(|weight| weight > 0.0)
}

/// The parts between separators that are not in quotes.
fn unquoted(value: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    value.split(move |c| {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            _ => return c == separator && !is_quoted,
        }
        false
    })
}
