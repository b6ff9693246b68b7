//! Which vendor a request is for, and what it asks of it.

use axum::http::{HeaderMap, Method, Uri};

use crate::{
    Protocol,
    refusal::{Refusal, RefusalKind},
};

const RESPONSES: &str = "/v1/responses";

/// What a path asks for.
#[derive(Debug, Default)]
pub(crate) struct Target {
    /// Gemini: the model.
    pub(crate) model: String,
    /// Gemini: whether the answer is wanted as a stream.
    pub(crate) stream: bool,
    /// Gemini: whether that stream is one of events.
    pub(crate) as_events: bool,
}

#[derive(Debug)]
pub(crate) enum Wants {
    Models,
    Answer(Target),
}

/// The vendor that a request means. A path that two of them have is told apart by its headers, and
/// so is one that none has.
pub(crate) fn protocol(uri: &Uri, headers: &HeaderMap) -> Protocol {
    let path = uri.path();
    let is_gemini = || {
        gemini(path, "").is_some()
            || headers.contains_key("x-goog-api-key")
            || uri.query().is_some_and(|query| query.starts_with("key="))
    };
    if path.starts_with("/v1beta") || is_gemini() {
        Protocol::Gemini
    } else if path.starts_with("/api") {
        Protocol::Ollama
    } else if path == RESPONSES {
        Protocol::OpenAiResponses
    } else if path == "/v1/messages" || headers.contains_key("anthropic-version") {
        Protocol::Anthropic
    } else {
        Protocol::OpenAi
    }
}

/// What a request wants of its vendor.
pub(crate) fn wants(method: &Method, uri: &Uri) -> Result<Wants, Refusal> {
    let (wanted, wants) = match uri.path() {
        "/v1/chat/completions" | RESPONSES | "/v1/messages" | "/api/chat" => {
            (Method::POST, Wants::Answer(Target::default()))
        }
        "/v1/models" | "/v1beta/models" | "/api/tags" => (Method::GET, Wants::Models),
        path => match gemini(path, uri.query().unwrap_or_default()) {
            Some(target) => (Method::POST, Wants::Answer(target)),
            None => {
                let sentence = format!("there is no path {path}");
                return Err(Refusal::new(RefusalKind::NotFound, sentence));
            }
        },
    };
    if *method == wanted {
        return Ok(wants);
    }
    let sentence = format!("{} takes {wanted}, not {method}", uri.path());
    Err(Refusal::new(RefusalKind::Method, sentence))
}

/// `/v1/models/MODEL:METHOD`, or the same below `/v1beta`.
fn gemini(path: &str, query: &str) -> Option<Target> {
    let path = path.replace("%3A", ":");
    let below = ["/v1/models/", "/v1beta/models/"];
    let below = below.iter().find_map(|prefix| path.strip_prefix(prefix))?;
    let (model, method) = below.split_once(':')?;
    let stream = match method {
        "generateContent" => false,
        "streamGenerateContent" => true,
        _ => return None,
    };
    let as_events = query.split('&').any(|pair| pair == "alt=sse");
    Some(Target { model: model.to_owned(), stream, as_events })
}
