//! One request of a model to its vendor, and its streamed response.

use std::{sync::Arc, time::Duration};

use futures_util::{Stream, TryFutureExt as _, stream};
use serde_json::Value;
use tokio::time::timeout;
use toolcrib_capabilities::http::{
    Bytes, HeaderMap, HeaderName, HeaderValue, HttpError, HttpRequest, HttpStream, Method,
    StatusCode, header,
};
use toolcrib_core::{
    CancellationToken, Digest, ImageSupport, Model, ModelChunk, ModelError, ModelErrorClass,
    ModelRequest, ModelStream,
};

use super::{
    answer::Answer,
    failure,
    frames::{Frame, Frames, Framing},
    images::SentImages,
    model::VendorModel,
    protocol::{Offer, Reader, RequestInput},
    sent_parts::SentForm,
};

/// Maximum size of a response stream: 256 MiB. A safety limit: a response has a few hundred
/// kilobytes.
const MAX_STREAM_BYTES: usize = 256 * 1024 * 1024;
/// Maximum size read of an error response.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;
/// Time limit for reading an error response.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum size of a list of models.
const MAX_LIST_BYTES: usize = 8 * 1024 * 1024;
/// Time to wait for the end of a stream after the response is complete.
const END_WAIT: Duration = Duration::from_millis(50);
/// Time limit for a list of models.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);

impl Model for VendorModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn reports_cost(&self) -> bool {
        false
    }

    fn images(&self) -> ImageSupport {
        let known = self.protocol.images(&self.model);
        ImageSupport {
            sees: self.settings.images.or(known.sees),
            in_results: self.settings.result_blocks.unwrap_or(known.in_results),
            ..known
        }
    }

    fn respond(self: Arc<Self>, request: ModelRequest) -> ModelStream {
        Box::pin(begin(self, request).map_ok(Exchange::chunks).try_flatten_stream())
    }
}

impl VendorModel {
    /// Lists the models of its server: checks that it can be reached and accepts the key. Times out
    /// after ten seconds.
    ///
    /// # Errors
    /// [`ModelError`], with the same classes as for a response.
    pub async fn list_models(&self) -> Result<Vec<String>, ModelError> {
        list_models(self).await
    }
}

/// A response that has begun.
struct Exchange {
    model: Arc<VendorModel>,
    stream: HttpStream,
    /// The error if the response is not read: the server declares another media type.
    other_type: Option<ModelError>,
    arrived: usize,
    frames: Frames,
    reader: Box<dyn Reader>,
    answer: Answer,
}

/// Sends the request and reads the head of the response.
async fn begin(model: Arc<VendorModel>, request: ModelRequest) -> Result<Exchange, ModelError> {
    match open(&model, &request).await {
        Ok((stream, framing, reader)) => Ok(Exchange {
            reader,
            other_type: other_type(stream.headers(), framing),
            frames: Frames::new(framing),
            answer: Answer::new(model.think_tags),
            arrived: 0,
            stream,
            model,
        }),
        Err(error) => Err(for_callers(&model, error)),
    }
}

async fn open(
    model: &VendorModel,
    request: &ModelRequest,
) -> Result<(HttpStream, Framing, Box<dyn Reader>), ModelError> {
    check_key(model)?;
    let protocol = model.protocol;
    let (body, reader) = write(model, request).map_err(|error| {
        ModelError::new(ModelErrorClass::BadRequest, "the request cannot be written as JSON")
            .caused_by(error)
    })?;
    let framing = protocol.framing();
    let mut sent =
        http_request(model, Method::POST, &protocol.path(&model.model), framing.media_type())?;
    sent.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    sent.body = Some(Bytes::from(body));
    // The limit is checked here: an error response is one, whatever length its server declares.
    sent.max_body_bytes = usize::MAX;
    sent.timeout = Some(model.timeout);
    sent.idle_timeout = Some(model.idle_timeout);
    // The request may be repeated if the server closes an idle connection on its use: the server
    // did not respond, and asking a model twice changes nothing.
    sent.may_repeat = true;

    let stream = model
        .client
        .stream(sent, &CancellationToken::new())
        .await
        .map_err(|error| failure::of_http(error, false))?;
    if stream.status() != StatusCode::OK {
        return Err(refused(model, stream).await);
    }
    Ok((stream, framing, reader))
}

/// The body of a request, and the reader of its response.
fn write(
    model: &VendorModel,
    request: &ModelRequest,
) -> serde_json::Result<(Vec<u8>, Box<dyn Reader>)> {
    let protocol = model.protocol;
    let offer = Offer::new(&request.menu, model.loads_tools);
    let server = model.base_url.join("");
    let with_blocks = match model.settings.result_blocks {
        None => "",
        Some(true) => "with blocks",
        Some(false) => "without blocks",
    };
    let form = || {
        let form = [protocol.name(), &model.model, &server, with_blocks];
        *model.form.get_or_init(|| Digest::of_all(&form.map(Digest::of)))
    };
    let first = SentForm::new(request.sent_parts.as_ref(), form);
    let tools = match request.menu.is_empty() {
        true => None,
        false => Some(model.menus.get(offer, &first, |offer| protocol.tools(offer, &first))?),
    };
    let mut conversation = model.conversations.take(request, offer, first.version());
    let images = SentImages::of(&model.images(), &request.messages, conversation.from());
    let input = RequestInput {
        server: &server,
        model: &model.model,
        settings: &model.settings,
        request,
        offer,
        tools: tools.as_deref(),
        first: &first,
        images: &images,
    };
    let body = protocol.body(&input, &mut conversation)?;
    conversation.wrote(request, offer);
    model.conversations.put(conversation);
    Ok((body, protocol.reader(&input)))
}

/// The error for the caller: without the key, and with a hint if there is none.
fn for_callers(model: &VendorModel, mut error: ModelError) -> ModelError {
    if error.class == ModelErrorClass::Auth && model.key.is_none() && model.no_key().is_none() {
        let vendor = model.vendor;
        let (variable, variables) = (vendor.base_url_variable(), vendor.key_variables());
        let variables = variables.join(" or ");
        error.message += &match model.is_at_vendor() {
            true => format!("; no key was sent: set {variables}"),
            false => format!(
                "; no key was sent: a key from the environment is only sent to a base URL from the \
                 environment, so set {variables} together with {variable}, or give this model a \
                 separate key"
            ),
        };
    }
    failure::without_key(error, model.key.as_ref())
}

fn check_key(model: &VendorModel) -> Result<(), ModelError> {
    match model.no_key() {
        Some(reason) => Err(ModelError::new(ModelErrorClass::Auth, reason)),
        None => Ok(()),
    }
}

/// A request without a body to a path of the vendor.
fn http_request(
    model: &VendorModel,
    method: Method,
    path: &str,
    accept: &'static str,
) -> Result<HttpRequest, ModelError> {
    let protocol = model.protocol;
    let mut request = HttpRequest::new(method, model.base_url.join(path));
    request.max_redirects = 0;
    request.headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
    for (name, value) in protocol.headers(&model.settings) {
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

async fn refused(model: &VendorModel, stream: HttpStream) -> ModelError {
    let status = stream.status();
    let headers = stream.headers().clone();
    failure::of_status(model.protocol, status, &headers, &beginning(stream).await)
}

/// The beginning of a server's response that is not a stream. It is useful, but not worth waiting
/// or failing for.
async fn beginning(mut stream: HttpStream) -> Vec<u8> {
    let mut body = Vec::new();
    let reading = async {
        while body.len() < MAX_REFUSAL_BYTES
            && let Ok(Some(piece)) = stream.chunk().await
        {
            body.extend_from_slice(&piece);
        }
    };
    // After the timeout, the part read so far is used.
    let _ = timeout(REFUSAL_TIMEOUT, reading).await;
    body.truncate(MAX_REFUSAL_BYTES);
    body
}

/// The error for a response of another media type than the requested stream, such as a proxy's page.
/// Such a response is read if it begins as a stream or a JSON value.
fn other_type(headers: &HeaderMap, framing: Framing) -> Option<ModelError> {
    let found = headers.get(header::CONTENT_TYPE)?;
    let found = String::from_utf8_lossy(found.as_bytes()).to_ascii_lowercase();
    let found = found.split(';').next().unwrap_or_default().trim();
    let as_expected = match framing {
        Framing::Events => found == "text/event-stream",
        Framing::Lines => found == "application/x-ndjson" || found == "application/json",
    };
    if as_expected {
        return None;
    }
    let found: String = found.chars().filter(|c| !c.is_control()).take(60).collect();
    Some(ModelError::new(
        ModelErrorClass::Protocol,
        format!(
            "the server responds with `{found}` instead of `{}`; check the base URL",
            framing.media_type()
        ),
    ))
}

impl Exchange {
    /// The streamed response.
    fn chunks(self) -> impl Stream<Item = Result<ModelChunk, ModelError>> {
        stream::try_unfold(Some(self), |exchange| async move {
            let Some(mut exchange) = exchange else { return Ok(None) };
            match exchange.next().await {
                Ok(done @ ModelChunk::Done(_)) => Ok(Some((done, None))),
                Ok(chunk) => Ok(Some((chunk, Some(exchange)))),
                Err(mut error) => {
                    error.usage = exchange.answer.usage_so_far();
                    Err(for_callers(&exchange.model, error))
                }
            }
        })
    }

    async fn next(&mut self) -> Result<ModelChunk, ModelError> {
        loop {
            if let Some(chunk) = self.answer.next_chunk() {
                return Ok(chunk);
            }
            if let Some(frame) = self.frames.next()? {
                self.read(&frame)?;
                if self.answer.is_complete() {
                    self.leave_connection().await;
                }
                continue;
            }
            match self.stream.chunk().await {
                Ok(Some(bytes)) => self.take(&bytes)?,
                Ok(None) => self.end()?,
                // A complete response is valid, however the connection ends.
                Err(error) => {
                    self.end().map_err(|_| failure::of_http(error, self.answer.has_begun()))?;
                }
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), ModelError> {
        self.arrived = self.arrived.saturating_add(bytes.len());
        if self.arrived > MAX_STREAM_BYTES {
            return Err(ModelError::new(
                ModelErrorClass::Protocol,
                format!("its response has more than {MAX_STREAM_BYTES} bytes"),
            ));
        }
        self.frames.push(bytes)?;
        // With the expected type, unknown lines of a stream are ignored.
        match self.other_type.take_if(|_| self.frames.is_unknown()) {
            Some(other) => Err(other),
            None => Ok(()),
        }
    }

    /// Handles the end of the stream.
    fn end(&mut self) -> Result<(), ModelError> {
        // A truncated line cannot be read; the error is about the truncation.
        let last = match self.read_rest() {
            Err(error) if error.class != ModelErrorClass::Protocol => return Err(error),
            read => read.unwrap_or_default(),
        };
        if !self.answer.is_complete() {
            self.reader.end(&mut self.answer);
        }
        if self.answer.is_complete() {
            return Ok(());
        }
        if self.frames.is_value() {
            // Some servers send an error with a success status.
            let last = last.and_then(|last| serde_json::from_str(&last.data).ok());
            let refusal = last.map(|body| self.model.protocol.refusal(StatusCode::OK, &body));
            if let Some(refusal) = refusal.filter(|refusal| refusal.message.is_some()) {
                return Err(failure::in_stream(refusal));
            }
            return Err(ModelError::new(
                ModelErrorClass::Protocol,
                "the server ignores `stream` and responds with JSON that is not a whole response of \
                 its API; check the base URL",
            ));
        }
        if let Some(other) = self.other_type.take_if(|_| self.frames.is_empty()) {
            return Err(other);
        }
        Err(match self.answer.has_begun() {
            true => ModelError::new(
                ModelErrorClass::Incomplete,
                "its response ended before it was complete: the server closed the stream",
            ),
            false => ModelError::new(
                ModelErrorClass::Network,
                "its response ended before it began: the server closed the stream",
            ),
        })
    }

    /// Reads what is left, and returns the last frame of it.
    fn read_rest(&mut self) -> Result<Option<Frame>, ModelError> {
        let mut last = None;
        while let Some(frame) = self.frames.rest()? {
            self.read(&frame)?;
            last = Some(frame);
        }
        Ok(last)
    }

    fn read(&mut self, frame: &Frame) -> Result<(), ModelError> {
        self.answer.begin_frame();
        self.reader.read(frame, &mut self.answer)?;
        self.answer.check()
    }

    /// Reads to the end of the stream, so that the next request can reuse the connection: a new one
    /// takes several times as long as the end, which has usually arrived. Do not poll only once:
    /// received data still has to move from the connection's task to this one.
    async fn leave_connection(&mut self) {
        let to_the_end = async { while let Ok(Some(_)) = self.stream.chunk().await {} };
        // Otherwise the connection is closed, without further effect.
        let _ = timeout(END_WAIT, to_the_end).await;
    }
}

/// The models that the vendor lists.
async fn list_models(model: &VendorModel) -> Result<Vec<String>, ModelError> {
    let listed = async {
        check_key(model)?;
        let protocol = model.protocol;
        let mut request =
            http_request(model, Method::GET, protocol.models_path(), "application/json")?;
        request.max_body_bytes = MAX_LIST_BYTES;
        request.timeout = Some(LIST_TIMEOUT);
        let answer =
            model.client.send(request, &CancellationToken::new()).await.map_err(of_list)?;
        if answer.status != StatusCode::OK {
            return Err(failure::of_status(
                model.protocol,
                answer.status,
                &answer.headers,
                &answer.body,
            ));
        }
        let list: Value = serde_json::from_slice(&answer.body).map_err(|error| {
            ModelError::new(
                ModelErrorClass::Protocol,
                "the server's list of models is not JSON; check the base URL",
            )
            .caused_by(error)
        })?;
        let no_list = || failure::of_no_list(protocol.refusal(answer.status, &list));
        protocol.model_names(&list).ok_or_else(no_list)
    };
    let mut names = listed.await.map_err(|error| for_callers(model, error))?;
    names.retain(|name| !failure::shows_key(name, model.key.as_ref()));
    Ok(names)
}

fn of_list(error: HttpError) -> ModelError {
    match error {
        HttpError::BodyTooLarge { limit, .. } => ModelError::new(
            ModelErrorClass::Protocol,
            format!("its list of models has more than {limit} bytes; check the base URL"),
        ),
        other => failure::of_http(other, false),
    }
}
