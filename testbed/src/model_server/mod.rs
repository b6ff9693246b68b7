//! A server with OpenAI's Chat Completions, for a model of the caller.

mod reply;
mod request;

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use axum::{
    Router,
    body::{Body, Bytes, to_bytes},
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode, Uri, header},
    response::{IntoResponse as _, Response},
    serve::ListenerExt as _,
};
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::oneshot};
use toolcrib_core::{Model, ModelChunk};

use crate::recorder::{Recorded, Recorder};

/// Maximum size of a request body.
const MOST_BYTES: usize = 64 * 1024 * 1024;

/// A server on the loopback interface with OpenAI's Chat Completions, streamed, which gets its
/// answers from a [`Model`] of the caller: in tests a scripted one.
///
/// It requires its key, refuses unknown fields and a history whose calls and results do not pair,
/// and stops when it is dropped. The other protocols are tested with prepared streams
/// ([`CannedServer`](crate::CannedServer)) and against the vendors' SDKs.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    recorder: Recorder,
    _running: oneshot::Sender<()>,
}

/// Configures a [`ModelServer`]. Ends with [`start`](Self::start).
#[must_use = "nothing is served until `start`"]
pub struct ModelServerBuilder {
    model: Arc<dyn Model>,
    key: String,
    model_name: String,
    chunk_bytes: Option<usize>,
}

struct Shared {
    settings: ModelServerBuilder,
    recorder: Recorder,
    calls: AtomicU64,
}

/// A status and the message of its error.
type Refusal = (StatusCode, String);

impl ModelServerBuilder {
    /// Sets the required key. Default: `test-key`.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = key.into();
        self
    }

    /// Sets the model's name; requests for another one are refused. Default: `test-model`.
    pub fn model_name(mut self, name: impl Into<String>) -> Self {
        self.model_name = name.into();
        self
    }

    /// Sets how many bytes are sent at once, also within a line or a character. Default: each event
    /// separately.
    pub fn chunk_bytes(mut self, bytes: usize) -> Self {
        self.chunk_bytes = Some(bytes);
        self
    }

    /// Starts the server, on a tokio runtime.
    ///
    /// # Errors
    /// No port is free.
    pub async fn start(self) -> io::Result<ModelServer> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let recorder = Recorder::new();
        let shared =
            Shared { settings: self, recorder: recorder.clone(), calls: AtomicU64::new(0) };
        let router = Router::new().fallback(serve).with_state(Arc::new(shared));
        let (running, stopped) = oneshot::channel::<()>();
        // Without it small pieces are delayed.
        let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        let serving = axum::serve(listener, router).with_graceful_shutdown(async {
            let _ = stopped.await;
        });
        tokio::spawn(async { serving.await });
        Ok(ModelServer { address, recorder, _running: running })
    }
}

impl ModelServer {
    /// Configures a server for a model.
    pub fn builder(model: Arc<dyn Model>) -> ModelServerBuilder {
        let (key, model_name) = ("test-key".to_owned(), "test-model".to_owned());
        ModelServerBuilder { model, key, model_name, chunk_bytes: None }
    }

    /// The base URL for OpenAI's clients: `http://127.0.0.1:41234/v1`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The requests so far.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }
}

async fn serve(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, MOST_BYTES).await.unwrap_or_default();
    shared.recorder.keep(Recorded {
        method: head.method.clone(),
        path_and_query: head.uri.to_string(),
        headers: head.headers.clone(),
        body: body.clone(),
    });
    let answer = shared.answer(&head.method, &head.uri, &head.headers, &body).await;
    answer.unwrap_or_else(|(status, message)| {
        written(status, &json!({ "error": { "message": message } }))
    })
}

impl Shared {
    async fn answer(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Result<Response, Refusal> {
        self.check_key(headers)?;
        let ModelServerBuilder { model, model_name, chunk_bytes, .. } = &self.settings;
        match (method.as_str(), uri.path()) {
            ("GET", "/v1/models") => {
                let listed = json!({ "object": "list", "data": [{ "id": model_name }] });
                return Ok(written(StatusCode::OK, &listed));
            }
            ("POST", "/v1/chat/completions") => {}
            (_, path) => return Err((StatusCode::NOT_FOUND, format!("no {method} {path} here"))),
        }
        let (named, request) = request::read(body).map_err(|why| (StatusCode::BAD_REQUEST, why))?;
        if named != *model_name {
            return Err((StatusCode::NOT_FOUND, format!("the model `{named}` does not exist")));
        }
        let mut stream = Arc::clone(model).respond(request);
        while let Some(chunk) = stream.next().await {
            let chunk = chunk.map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, error.message));
            // The last chunk repeats the whole text.
            if let ModelChunk::Done(said) = chunk? {
                let calls = u64::try_from(said.calls.len()).unwrap_or(u64::MAX);
                let first = self.calls.fetch_add(calls, Ordering::Relaxed);
                let events = reply::events(&said, first, model_name);
                let pieces = reply::pieces(events, *chunk_bytes);
                let body = Body::from_stream(futures_util::stream::iter(pieces).then(let_out));
                return Ok(([(header::CONTENT_TYPE, "text/event-stream")], body).into_response());
            }
        }
        Err((StatusCode::INTERNAL_SERVER_ERROR, "the model ended without an answer".to_owned()))
    }

    fn check_key(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let given = given.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
        if given == self.settings.key {
            return Ok(());
        }
        // The vendor quotes the beginning of the key: clients must not pass on such a message.
        let begin: String = given.chars().take(8).collect();
        let message = format!("Incorrect API key provided: {begin}***.");
        Err((StatusCode::UNAUTHORIZED, message))
    }
}

fn written(status: StatusCode, body: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

/// Pieces that are ready at once may be merged, so this lets the writer run between them.
async fn let_out(piece: Bytes) -> io::Result<Bytes> {
    tokio::task::yield_now().await;
    Ok(piece)
}

/// A server-sent event.
fn event(data: &Value) -> Bytes {
    format!("data: {data}\n\n").into()
}
