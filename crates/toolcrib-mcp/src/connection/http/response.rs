//! The parts of a response.

use std::time::SystemTime;

use serde_json::Value;
use toolcrib_capabilities::http::{HeaderValue, HttpStream, StatusCode, header, retry_after};
use toolcrib_core::__internal::beginning;

use super::{
    super::{
        intake::Intake,
        result::{self, Refusal},
        text::over_limit,
    },
    failure::HttpFailure,
};
use crate::{connection::types::RequestError, envelope::Envelope};

/// The size limit of the body of an error response: 64 KiB.
pub(super) const MAX_ERROR_BYTES: usize = 64 * 1024;

/// How much of a path an error shows.
const PATH_CHARS: usize = 200;

pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub(super) const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// The head of a response, before its body is read.
pub(super) enum Head {
    /// Accepted, without a response here.
    Accepted,
    Events(HttpStream),
    Json(HttpStream),
    /// An error status.
    Refusal(HttpStream),
    /// Not a response of the protocol.
    Other(HttpStream),
}

/// The kind of a response.
pub(super) fn head(answer: HttpStream) -> Head {
    match answer.status() {
        StatusCode::ACCEPTED | StatusCode::NO_CONTENT => Head::Accepted,
        status if !status.is_success() => Head::Refusal(answer),
        _ if is_of_events(&answer) => Head::Events(answer),
        _ if is_of(&answer, &JSON) => Head::Json(answer),
        // Without a type, it is read as a message.
        _ if !answer.headers().contains_key(header::CONTENT_TYPE) => Head::Json(answer),
        _ => Head::Other(answer),
    }
}

/// An error response.
pub(super) struct ErrorResponse {
    pub(super) failure: HttpFailure,
    /// The protocol error in it.
    pub(super) refusal: Option<Refusal>,
    /// The id in it, if it is a response of the protocol to a request.
    pub(super) id: Option<Value>,
    /// The path of the response, after redirects.
    path: String,
}

impl ErrorResponse {
    pub(super) async fn read(answer: HttpStream, intake: &Intake) -> Self {
        let status = answer.status();
        let path = beginning(answer.final_url().path(), PATH_CHARS);
        let is_json = is_of(&answer, &JSON);
        let wait = retry_after(answer.headers(), SystemTime::now());
        let challenge = answer.headers().get(header::WWW_AUTHENTICATE);
        let challenge = challenge.and_then(|said| said.to_str().ok()).map(str::to_owned);
        let body = read(answer, MAX_ERROR_BYTES).await.unwrap_or_default();
        let is_denied = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        // A request that is refused before it is parsed has no id in the response.
        let envelope = serde_json::from_slice::<Envelope<'_>>(&body).ok();
        let envelope = envelope.filter(Envelope::is_of_version);
        let is_of_protocol = is_json && envelope.is_some();
        let id = envelope.filter(|it| it.is_answer() && it.has_id()).and_then(|it| it.id);
        let refusal = match result::nothing(&body) {
            Err(RequestError::Refused { code, message, data }) if is_of_protocol && !is_denied => {
                Some(Refusal { code, message, data })
            }
            _ => None,
        };
        let text = match challenge {
            Some(challenge) => format!("it requires authorization: {challenge}"),
            None => intake.preview(&body),
        };
        let text = match wait {
            Some(wait) => format!("{text} (it permits the next request in {} s)", wait.as_secs()),
            None => text,
        };
        let failure = HttpFailure::Status { status: status.as_u16(), text, wait };
        Self { failure, refusal, id, path }
    }

    /// The failure of the first request of a connection.
    pub(super) fn of_greeting(self) -> HttpFailure {
        match self.failure {
            HttpFailure::Status { status: 404, text, .. } => {
                HttpFailure::NoEndpoint { path: self.path, text }
            }
            failure => failure,
        }
    }
}

/// The whole body of a response.
pub(super) async fn read(mut answer: HttpStream, max_bytes: usize) -> Result<Vec<u8>, HttpFailure> {
    let mut body = Vec::new();
    while let Some(piece) = answer.chunk().await? {
        if piece.len() > max_bytes.saturating_sub(body.len()) {
            return Err(HttpFailure::TooLarge(over_limit("a response", max_bytes)));
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

pub(super) fn not_of_the_protocol(answer: &HttpStream, intake: &Intake) -> String {
    let said = answer.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    format!(
        "its answer is of type {}, and not of {} or {}",
        intake.preview(said.unwrap_or_default()),
        JSON.to_str().unwrap_or_default(),
        EVENTS.to_str().unwrap_or_default()
    )
}

pub(super) fn is_of_events(answer: &HttpStream) -> bool {
    is_of(answer, &EVENTS)
}

fn is_of(answer: &HttpStream, media_type: &HeaderValue) -> bool {
    let said = answer.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    let said = said.and_then(|said| said.split(|byte| *byte == b';').next());
    said.is_some_and(|said| said.trim_ascii().eq_ignore_ascii_case(media_type.as_bytes()))
}
