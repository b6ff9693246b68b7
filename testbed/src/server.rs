//! A server that plays the vendors, with a model of the caller's behind it.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use axum::{Router, serve::ListenerExt as _};
use tokio::{net::TcpListener, sync::oneshot};
use toolcrib_core::Model;

use crate::{
    Protocol,
    exchange::{Shared, serve},
    recorder::Recorder,
};

/// A server on this machine's loopback that plays the vendors of models, all of them on one port,
/// with a [`Model`] of the caller's behind it: in tests a scripted one.
///
/// It takes what the vendors take and refuses what they refuse, with their status and the shape of
/// their error. It answers in their form, streamed or whole. The same requests in the same order
/// get the same bytes. What the model says is passed on as it is, also where it does not keep to the
/// tool choice. It stops when it is dropped; an exchange that is under way is completed.
///
/// Its neighbour [`CannedServer`](crate::CannedServer) knows nothing of vendors and sends whatever
/// bytes it was given: it is for faults.
///
/// | protocol | paths | key |
/// |---|---|---|
/// | OpenAI | `POST /v1/chat/completions`, `GET /v1/models` | `Authorization: Bearer` |
/// | Anthropic | `POST /v1/messages`, `GET /v1/models` | `x-api-key`, or as OpenAI |
/// | Gemini | `POST /v1/models/MODEL:generateContent`, `…:streamGenerateContent`, `GET /v1/models`; the same below `/v1beta` | `x-goog-api-key`, or `key=` in the query |
/// | Ollama | `POST /api/chat`, `GET /api/tags` | none needed; `Authorization: Bearer` must be right if it is there |
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    _running: oneshot::Sender<()>,
}

#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) key: String,
    pub(crate) model_name: String,
    pub(crate) fragment_chars: usize,
    pub(crate) chunk_bytes: Option<usize>,
    pub(crate) delay: Duration,
    pub(crate) call_ids: bool,
    pub(crate) interleave_calls: bool,
    pub(crate) thoughts: bool,
    pub(crate) failure_mark: String,
}

/// Says how a [`ModelServer`] is to be. Ends with [`start`](Self::start).
#[must_use = "a builder serves nothing until it is started"]
pub struct ModelServerBuilder {
    model: Arc<dyn Model>,
    port: u16,
    settings: Settings,
}

impl ModelServerBuilder {
    /// The port. Default: 0, any that is free.
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// The key that clients must send. Default: `test-key`.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.settings.key = key.into();
        self
    }

    /// What the model is called; requests for another one are refused. Default: `test-model`.
    pub fn model_name(mut self, name: impl Into<String>) -> Self {
        self.settings.model_name = name.into();
        self
    }

    /// How many characters of a text, or of the arguments of a call, stand in one piece of a
    /// stream. Default: 8; the least is 1.
    pub fn fragment_chars(mut self, chars: usize) -> Self {
        self.settings.fragment_chars = chars;
        self
    }

    /// How many bytes leave at once, wherever that cuts: within a line, within a character.
    /// Default: each event, or line, by itself.
    pub fn chunk_bytes(mut self, bytes: usize) -> Self {
        self.settings.chunk_bytes = Some(bytes);
        self
    }

    /// How long to wait between what leaves at once. Default: not at all.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.settings.delay = delay;
        self
    }

    /// Whether calls have ids where the vendor may leave them out: Gemini, Ollama. Default: no.
    pub fn call_ids(mut self, with_ids: bool) -> Self {
        self.settings.call_ids = with_ids;
        self
    }

    /// OpenAI: whether the pieces of parallel calls come in turn, as some servers of that protocol
    /// send them, instead of one call after the other. Default: no.
    pub fn interleave_calls(mut self, in_turn: bool) -> Self {
        self.settings.interleave_calls = in_turn;
        self
    }

    /// Whether the model thinks, which is shown where a vendor shows it, and wanted back where one
    /// wants it: by Anthropic where the client enables it, by Gemini as signatures of the calls
    /// since the user last spoke; by OpenAI's Responses it is wanted back with what followed it, and
    /// shown where a summary is asked for. For OpenAI's Chat Completions it is `reasoning_content`, which may come back; the
    /// vendor itself shows nothing, but many servers of its protocol do. A model that has no thought
    /// of its own gets one. Default: no.
    pub fn thoughts(mut self, thinks: bool) -> Self {
        self.settings.thoughts = thinks;
        self
    }

    /// How the text of a call's result begins if the call failed, for protocols that have no field
    /// for it: OpenAI's and Ollama's. It is taken off before the model reads the text. Default:
    /// `Error: `; an empty one takes no result for a failure.
    pub fn failure_mark(mut self, mark: impl Into<String>) -> Self {
        self.settings.failure_mark = mark.into();
        self
    }

    /// Starts the server, on a runtime of tokio's.
    ///
    /// # Errors
    /// The port is taken.
    pub async fn start(self) -> io::Result<ModelServer> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, self.port)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::new(self.model, self.settings));
        let router = Router::new().fallback(serve).with_state(Arc::clone(&shared));
        let (running, stopped) = oneshot::channel::<()>();
        // Without it small pieces wait for each other.
        let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        let serving = axum::serve(listener, router).with_graceful_shutdown(async {
            let _ = stopped.await;
        });
        tokio::spawn(async { serving.await });
        Ok(ModelServer { address, shared, _running: running })
    }
}

impl ModelServer {
    /// Starts a server for a model, with everything else as it is by default.
    ///
    /// # Errors
    /// No port can be had.
    pub async fn start(model: Arc<dyn Model>) -> io::Result<Self> {
        Self::builder(model).start().await
    }

    /// Says how a server for a model is to be.
    pub fn builder(model: Arc<dyn Model>) -> ModelServerBuilder {
        let settings = Settings {
            key: "test-key".to_owned(),
            model_name: "test-model".to_owned(),
            fragment_chars: 8,
            chunk_bytes: None,
            delay: Duration::ZERO,
            call_ids: false,
            interleave_calls: false,
            thoughts: false,
            failure_mark: "Error: ".to_owned(),
        };
        ModelServerBuilder { model, port: 0, settings }
    }

    /// Where it listens: `http://127.0.0.1:41234`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What a client of that vendor's takes for its base URL: OpenAI's has the version in it.
    pub fn base_url(&self, protocol: Protocol) -> String {
        match protocol {
            Protocol::OpenAi | Protocol::OpenAiResponses => format!("{}/v1", self.url()),
            Protocol::Anthropic | Protocol::Gemini | Protocol::Ollama => self.url(),
        }
    }

    /// The key that it expects.
    pub fn key(&self) -> &str {
        &self.shared.settings.key
    }

    /// What its model is called.
    pub fn model_name(&self) -> &str {
        &self.shared.settings.model_name
    }

    /// What came in.
    pub fn recorder(&self) -> &Recorder {
        &self.shared.recorder
    }
}
