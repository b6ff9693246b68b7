//! One request: who is meant, whether it is taken, what the model says to it.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use axum::{
    body::{Body, Bytes, to_bytes},
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Uri, header},
};
use serde_json::Value;
use toolcrib_core::{Digest, Model};

use crate::{
    Protocol,
    cache::PromptCache,
    recorder::{Recorded, Recorder},
    refusal::{Refusal, RefusalKind},
    route::{self, Target, Wants},
    said::{Said, SaidCall, Tokens, ask, written},
    server::Settings,
    wire,
};

/// The largest body of a request.
const MOST_BYTES: usize = 64 * 1024 * 1024;

/// How many digits an id has behind what its vendor begins it with.
const ID_DIGITS: usize = 22;

/// What a model thinks that does not think by itself.
const THOUGHT: &str = "I look at what was asked, and at what I know already.";

/// What the requests of one server share.
pub(crate) struct Shared {
    model: Arc<dyn Model>,
    pub(crate) settings: Settings,
    pub(crate) recorder: Recorder,
    cache: PromptCache,
    ids: AtomicU64,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("model", &self.model.name()).finish_non_exhaustive()
    }
}

pub(crate) async fn serve(State(shared): State<Arc<Shared>>, request: Request) -> Response<Body> {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, MOST_BYTES).await;
    shared.recorder.keep(Recorded {
        method: head.method.clone(),
        path_and_query: head.uri.to_string(),
        headers: head.headers.clone(),
        body: body.as_ref().cloned().unwrap_or_default(),
    });
    let protocol = route::protocol(&head.uri, &head.headers);
    let answered = match body {
        Ok(body) => shared.answer(protocol, &head.method, &head.uri, &head.headers, &body).await,
        Err(error) => Err(Refusal::new(RefusalKind::Invalid, format!("the body: {error}"))),
    };
    answered.unwrap_or_else(|refusal| shared.refuse(protocol, &refusal))
}

impl Shared {
    pub(crate) fn new(model: Arc<dyn Model>, settings: Settings) -> Self {
        Self {
            model,
            settings,
            recorder: Recorder::new(),
            cache: PromptCache::default(),
            ids: AtomicU64::new(0),
        }
    }

    async fn answer(
        &self,
        protocol: Protocol,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Result<Response<Body>, Refusal> {
        let wants = route::wants(method, uri)?;
        protocol.check_key(headers, uri.query().unwrap_or_default(), &self.settings.key)?;
        let target = match wants {
            Wants::Answer(target) => target,
            Wants::Models => {
                let models = protocol.models(&self.settings.model_name);
                return Ok(response(StatusCode::OK, "application/json", models.to_string().into()));
            }
        };
        let body: Value = serde_json::from_slice(body).map_err(|error| {
            Refusal::new(RefusalKind::Invalid, format!("the body is no valid JSON: {error}"))
        })?;
        let said = self.ask(protocol, &body, headers, &target).await?;
        let answer = protocol.answer(&said, &target, &self.settings);
        let body = wire::body(answer.pieces, self.settings.chunk_bytes, self.settings.delay);
        Ok(response(StatusCode::OK, answer.content_type, body))
    }

    async fn ask(
        &self,
        protocol: Protocol,
        body: &Value,
        headers: &HeaderMap,
        target: &Target,
    ) -> Result<Said, Refusal> {
        let asked = protocol.read(body, headers, target, &self.settings)?;
        if asked.model != self.settings.model_name {
            let sentence = format!(
                "the model `{}` does not exist; there is `{}`",
                asked.model, self.settings.model_name
            );
            return Err(Refusal::new(RefusalKind::NotFound, sentence));
        }
        let cache = self.cache.serve(protocol, &asked.prompt);
        let (mut reasoning, answer) =
            ask(&self.model, asked.request).await.map_err(|error| Refusal::of_model(&error))?;
        match self.settings.thoughts {
            true if reasoning.is_empty() => THOUGHT.clone_into(&mut reasoning),
            true => {}
            false => reasoning.clear(),
        }
        let calls = answer.calls.iter().map(|call| SaidCall {
            id: protocol.call_id(&self.next_id()),
            name: Arc::clone(&call.name),
            arguments: written(&call.arguments),
        });
        let mut said = Said {
            id: self.next_id(),
            model: asked.model,
            tokens: Tokens::new(answer.usage, cache, &reasoning),
            calls: calls.collect(),
            reasoning,
            text: answer.text,
            stop: answer.stop,
            form: asked.form,
        };
        if let Some(most) = asked.most_tokens {
            said.cut_at(most);
        }
        Ok(said)
    }

    fn refuse(&self, protocol: Protocol, refusal: &Refusal) -> Response<Body> {
        let id = self.next_id();
        let (status, error) = protocol.refusal(refusal, &id);
        let mut response = response(status, "application/json", error.to_string().into());
        if let Some(wait) = refusal.retry_after.filter(|_| protocol.has_retry_after()) {
            response.headers_mut().insert(header::RETRY_AFTER, wait.as_secs().into());
        }
        response
    }

    /// Digits that no other id of this server has.
    fn next_id(&self) -> String {
        let number = self.ids.fetch_add(1, Ordering::Relaxed);
        Digest::of(number.to_be_bytes()).to_string().chars().take(ID_DIGITS).collect()
    }
}

fn response(status: StatusCode, content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
