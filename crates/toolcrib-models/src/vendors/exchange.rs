//! One request to a vendor, and its answer as it comes.

use std::{sync::Arc, time::Duration};

use futures_util::{Stream, stream};
use serde_json::Value;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use toolcrib_core::{ModelChunk, ModelError, ModelErrorClass, ModelRequest};
use toolcrib_scope::http::{
    Bytes, HeaderMap, HeaderName, HeaderValue, HttpClient, HttpError, HttpRequest, HttpStream,
    Method, StatusCode, header,
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
/// How long a refusal is read.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(2);
/// How large a list of models may be.
const MAX_LIST_BYTES: usize = 8 * 1024 * 1024;
/// How long the end of a stream is waited for once the answer is whole.
const END_WAIT: Duration = Duration::from_millis(50);
/// How long a list of models may take.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);

/// Goes to every address but those that hand out a machine's credentials.
pub(super) fn default_client() -> HttpClient {
    let everywhere = ["0.0.0.0/0", "::/0"].into_iter().filter_map(|net| net.parse().ok());
    HttpClient::builder().allow_addresses(everywhere).build()
}

/// An answer that has begun.
pub(super) struct Exchange {
    model: Arc<VendorModel>,
    stream: HttpStream,
    arrived: usize,
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
        Ok((stream, framing, reader)) => Ok(Exchange {
            reader,
            frames: Frames::new(framing),
            answer: Answer::default(),
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
    let asked = Asked {
        server: &model.base_url.join(""),
        model: &model.model,
        settings: &model.settings,
        request,
        tools: tools.as_deref(),
    };
    let body = protocol.body(&asked).map_err(unwritable)?;
    let reader = protocol.reader(&asked);
    let framing = protocol.framing();
    let mut sent =
        http_request(model, Method::POST, &protocol.path(&model.model), framing.media_type())?;
    sent.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    sent.body = Some(Bytes::from(body));
    // It is counted here: a refusal is one however long its server says that it is.
    sent.max_body_bytes = usize::MAX;
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
    match check_media_type(stream.headers(), framing) {
        Ok(()) => Ok((stream, framing, reader)),
        Err(other) => Err(in_place_of_an_answer(model, stream).await.unwrap_or(other)),
    }
}

/// An error as whoever asks may see it: without the key, and with a word where there is none.
fn for_callers(model: &VendorModel, mut error: ModelError) -> ModelError {
    if error.class == ModelErrorClass::Auth && model.key.is_none() && model.no_key().is_none() {
        let vendor = model.vendor;
        let (variable, variables) = (vendor.base_url_variable(), vendor.key_variables());
        let variables = variables.join(" or ");
        error.message += &match model.is_at_vendor() {
            true => format!("; no key was sent: set {variables}"),
            false => format!(
                "; no key was sent: one of the environment only goes to a base URL of the \
                 environment, so set {variables} together with {variable}, or give this model a \
                 key of its own"
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

/// A request without a body to a path of the vendor's.
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

async fn refused(model: &VendorModel, stream: HttpStream) -> ModelError {
    let status = stream.status();
    let headers = stream.headers().clone();
    failure::of_status(model.protocol, status, &headers, &beginning(stream).await)
}

/// What is said where a stream was asked for: some servers send an error with a status that says
/// yes. None if it is no error in the vendor's form.
async fn in_place_of_an_answer(model: &VendorModel, stream: HttpStream) -> Option<ModelError> {
    let status = stream.status();
    let body = serde_json::from_slice(&beginning(stream).await).ok()?;
    let refusal = model.protocol.refusal(status, &body);
    refusal.message.is_some().then(|| failure::in_stream(refusal))
}

/// The beginning of what a server says in place of an answer. It is worth having, but not worth
/// waiting or failing for.
async fn beginning(mut stream: HttpStream) -> Vec<u8> {
    let mut body = Vec::new();
    let reading = async {
        while body.len() < MAX_REFUSAL_BYTES
            && let Ok(Some(piece)) = stream.chunk().await
        {
            body.extend_from_slice(&piece);
        }
    };
    // What has come by then is what is known.
    let _ = timeout(REFUSAL_TIMEOUT, reading).await;
    body.truncate(MAX_REFUSAL_BYTES);
    body
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
                self.reader.read(&frame, &mut self.answer)?;
                if self.answer.is_complete() {
                    self.leave_connection().await;
                }
                continue;
            }
            match self.stream.chunk().await {
                Ok(Some(bytes)) => self.take(&bytes)?,
                Ok(None) => self.end()?,
                // What is whole is an answer, however the connection ends.
                Err(error) => self.end().map_err(|_| failure::of_http(error, true))?,
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), ModelError> {
        self.arrived = self.arrived.saturating_add(bytes.len());
        if self.arrived > MAX_STREAM_BYTES {
            return Err(ModelError::new(
                ModelErrorClass::Protocol,
                format!("its answer has more than {MAX_STREAM_BYTES} bytes"),
            ));
        }
        self.frames.push(bytes);
        Ok(())
    }

    /// The stream is over.
    fn end(&mut self) -> Result<(), ModelError> {
        // A line that is cut off cannot be read, which is no fault of its own.
        if let Err(error) = self.read_rest()
            && error.class != ModelErrorClass::Protocol
        {
            return Err(error);
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

    fn read_rest(&mut self) -> Result<(), ModelError> {
        while let Some(frame) = self.frames.rest()? {
            self.reader.read(&frame, &mut self.answer)?;
        }
        Ok(())
    }

    /// Reads to the end of the stream, so that the next request has its connection: a new one takes
    /// several times as long to get as the end, which is mostly there already. Not to be polled
    /// once only: what has come still goes from the connection's task to this one.
    async fn leave_connection(&mut self) {
        let to_the_end = async { while let Ok(Some(_)) = self.stream.chunk().await {} };
        // Where it does not come the connection is closed, and that is all.
        let _ = timeout(END_WAIT, to_the_end).await;
    }
}

/// The models that the vendor lists.
pub(super) async fn list_models(model: &VendorModel) -> Result<Vec<String>, ModelError> {
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
                "the server's list of models is no JSON; check the base URL",
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
