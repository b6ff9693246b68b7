//! One request to a vendor, and its answer as it comes.

use std::{sync::Arc, time::Duration};

use futures_util::{FutureExt as _, Stream, stream};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use toolcrib_core::{ModelChunk, ModelError, ModelErrorClass, ModelRequest};
use toolcrib_scope::http::{
    Bytes, HeaderMap, HeaderName, HeaderValue, HttpClient, HttpRequest, HttpStream, IpNet, Method,
    StatusCode, header,
};

use super::{
    answer::Answer,
    failure,
    frames::{Frames, Framing},
    model::VendorModel,
    protocol::{Asked, Reader},
};

/// The largest stream of an answer: 256 MiB. A guard, not a measure: an answer has a few hundred
/// kilobytes.
const MAX_STREAM_BYTES: usize = 256 * 1024 * 1024;
/// How much of a refusal is read.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;
/// How large a list of models may be.
const MAX_LIST_BYTES: usize = 8 * 1024 * 1024;
/// How long a list of models may take.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);

/// Goes to every address but those that hand out a machine's credentials.
pub(super) fn default_client() -> HttpClient {
    let everywhere = ["0.0.0.0/0", "::/0"].into_iter().filter_map(|net| net.parse::<IpNet>().ok());
    HttpClient::builder().allow_addresses(everywhere).build()
}

/// An answer that has begun.
pub(super) struct Exchange {
    model: Arc<VendorModel>,
    stream: HttpStream,
    frames: Frames,
    reader: Box<dyn Reader>,
    answer: Answer,
}

/// Sends the request and reads the head of the answer.
pub(super) async fn begin(
    model: Arc<VendorModel>,
    request: ModelRequest,
) -> Result<Exchange, ModelError> {
    match open(&model, &request).await {
        Ok((stream, framing)) => Ok(Exchange {
            reader: model.vendor.protocol().reader(&request),
            frames: Frames::new(framing),
            answer: Answer::default(),
            stream,
            model,
        }),
        Err(error) => Err(failure::without_key(error, model.key.as_ref())),
    }
}

async fn open(
    model: &VendorModel,
    request: &ModelRequest,
) -> Result<(HttpStream, Framing), ModelError> {
    check_key(model)?;
    let protocol = model.vendor.protocol();
    let unwritable = |error: serde_json::Error| {
        ModelError::new(ModelErrorClass::BadRequest, "the request cannot be written as JSON")
            .caused_by(error)
    };
    let tools = match request.menu.is_empty() {
        true => None,
        false => {
            Some(model.menus.get(&request.menu, |menu| protocol.tools(menu)).map_err(unwritable)?)
        }
    };
    let body = protocol
        .body(&Asked {
            model: &model.model,
            settings: &model.settings,
            request,
            tools: tools.as_deref(),
        })
        .map_err(unwritable)?;
    let framing = protocol.framing();
    let mut sent =
        http_request(model, Method::POST, &protocol.path(&model.model), framing.media_type())?;
    sent.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    sent.body = Some(Bytes::from(body));
    sent.max_body_bytes = MAX_STREAM_BYTES;
    sent.timeout = Some(model.timeout);
    sent.idle_timeout = Some(model.idle_timeout);
    // An idle connection that the server closes as it is used has not been answered; asking a model
    // twice changes nothing.
    sent.may_repeat = true;

    let stream = model
        .client
        .stream(sent, &CancellationToken::new())
        .await
        .map_err(|error| failure::of_http(error, false))?;
    if stream.status() != StatusCode::OK {
        return Err(refused(model, stream).await);
    }
    check_media_type(stream.headers(), framing)?;
    Ok((stream, framing))
}

fn check_key(model: &VendorModel) -> Result<(), ModelError> {
    match model.no_key() {
        Some(reason) => Err(ModelError::new(ModelErrorClass::Auth, reason)),
        None => Ok(()),
    }
}

/// A request without a body to a path of the vendor's.
fn http_request(
    model: &VendorModel,
    method: Method,
    path: &str,
    accept: &'static str,
) -> Result<HttpRequest, ModelError> {
    let protocol = model.vendor.protocol();
    let mut request = HttpRequest::new(method, model.base_url.join(path));
    request.max_redirects = 0;
    request.headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
    for (name, value) in protocol.headers() {
        request.headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    if let Some(key) = &model.key {
        let (name, value) = protocol.key(key.expose());
        let mut value = HeaderValue::from_str(&value)
            .map_err(|_| ModelError::new(ModelErrorClass::Auth, "the key cannot be sent"))?;
        value.set_sensitive(true);
        request.headers.insert(name, value);
    }
    Ok(request)
}

async fn refused(model: &VendorModel, mut stream: HttpStream) -> ModelError {
    let status = stream.status();
    let headers = stream.headers().clone();
    let mut body = Vec::new();
    // What it says is worth having, but not worth waiting or failing for.
    while body.len() < MAX_REFUSAL_BYTES
        && let Ok(Some(piece)) = stream.chunk().await
    {
        body.extend_from_slice(&piece);
    }
    body.truncate(MAX_REFUSAL_BYTES);
    failure::of_status(model.vendor, status, &headers, &body)
}

/// A page of a proxy, or the whole answer at once, is not the stream that was asked for.
fn check_media_type(headers: &HeaderMap, framing: Framing) -> Result<(), ModelError> {
    let Some(found) = headers.get(header::CONTENT_TYPE) else { return Ok(()) };
    let found = String::from_utf8_lossy(found.as_bytes()).to_ascii_lowercase();
    let found = found.split(';').next().unwrap_or_default().trim();
    let as_expected = match framing {
        Framing::Events => found == "text/event-stream",
        Framing::Lines => found == "application/x-ndjson" || found == "application/json",
    };
    if as_expected {
        return Ok(());
    }
    let found: String = found.chars().filter(|c| !c.is_control()).take(60).collect();
    Err(ModelError::new(
        ModelErrorClass::Protocol,
        format!(
            "the server answers with `{found}` in place of `{}`; check the base URL",
            framing.media_type()
        ),
    ))
}

impl Exchange {
    /// The answer as it comes.
    pub(super) fn chunks(self) -> impl Stream<Item = Result<ModelChunk, ModelError>> {
        stream::try_unfold(Some(self), |exchange| async move {
            let Some(mut exchange) = exchange else { return Ok(None) };
            match exchange.next().await {
                Ok(done @ ModelChunk::Done(_)) => Ok(Some((done, None))),
                Ok(chunk) => Ok(Some((chunk, Some(exchange)))),
                Err(error) => Err(failure::without_key(error, exchange.model.key.as_ref())),
            }
        })
    }

    async fn next(&mut self) -> Result<ModelChunk, ModelError> {
        loop {
            if let Some(chunk) = self.answer.next_chunk() {
                return Ok(chunk);
            }
            if let Some(frame) = self.frames.next()? {
                self.reader.read(&frame, &mut self.answer)?;
                if self.answer.is_complete() {
                    self.leave_connection();
                }
                continue;
            }
            match self.stream.chunk().await.map_err(|error| failure::of_http(error, true))? {
                Some(bytes) => self.frames.push(&bytes),
                None => self.end()?,
            }
        }
    }

    /// The stream is over.
    fn end(&mut self) -> Result<(), ModelError> {
        while let Some(frame) = self.frames.rest()? {
            self.reader.read(&frame, &mut self.answer)?;
        }
        if !self.answer.is_complete() {
            self.reader.end(&mut self.answer);
        }
        if self.answer.is_complete() {
            return Ok(());
        }
        Err(ModelError::new(
            ModelErrorClass::Incomplete,
            "its answer ended before it was complete: the server closed the stream",
        ))
    }

    /// What ends an answer mostly comes with its last bytes: then the next request has its
    /// connection. Nobody waits for it.
    fn leave_connection(&mut self) {
        while let Some(Ok(Some(_))) = self.stream.chunk().now_or_never() {}
    }
}

/// The models that the vendor lists.
pub(super) async fn list_models(model: &VendorModel) -> Result<Vec<String>, ModelError> {
    let listed = async {
        check_key(model)?;
        let protocol = model.vendor.protocol();
        let mut request =
            http_request(model, Method::GET, protocol.models_path(), "application/json")?;
        request.max_body_bytes = MAX_LIST_BYTES;
        request.timeout = Some(LIST_TIMEOUT);
        let answer = model
            .client
            .send(request, &CancellationToken::new())
            .await
            .map_err(|error| failure::of_http(error, false))?;
        if answer.status != StatusCode::OK {
            return Err(failure::of_status(
                model.vendor,
                answer.status,
                &answer.headers,
                &answer.body,
            ));
        }
        let list: Value = serde_json::from_slice(&answer.body).map_err(|error| {
            ModelError::new(
                ModelErrorClass::Protocol,
                "the server's list of models is no JSON; check the base URL",
            )
            .caused_by(error)
        })?;
        Ok(protocol.model_names(&list))
    };
    listed.await.map_err(|error| failure::without_key(error, model.key.as_ref()))
}
