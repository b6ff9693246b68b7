//! The client that a request to a server is made for: the server may ask it while the request runs.

use std::{
    future::ready,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::{Map, Value, json};
use toolcrib_core::{BoxFuture, CancellationToken, ClientPort, ClientRefusal};

/// The client of one request, and the server that may ask it.
#[derive(Clone)]
pub(crate) struct Caller {
    client: Arc<dyn ClientPort>,
    /// The operator's name of the server.
    server: Arc<str>,
    /// The metadata that is passed on.
    meta: Option<Arc<Map<String, Value>>>,
    log_level: Option<&'static str>,
    /// The number of requests that the server has made of the client.
    requests: Arc<AtomicUsize>,
    /// Fires when the request is over: what the server asked then is not answered any more.
    over: CancellationToken,
}

impl Caller {
    /// A client, until the token fires.
    pub(crate) fn new(
        client: Arc<dyn ClientPort>,
        server: Arc<str>,
        over: CancellationToken,
    ) -> Self {
        let meta = client.meta().filter(|meta| !meta.is_empty()).cloned().map(Arc::new);
        let log_level = client.log_level();
        Self { client, server, meta, log_level, requests: Arc::default(), over }
    }

    /// The same for a call with a span, whose trace context replaces the client's.
    pub(crate) fn within(mut self, traceparent: Option<&str>) -> Self {
        if let (Some(own), Some(meta)) = (traceparent, &mut self.meta) {
            let meta = Arc::make_mut(meta);
            let theirs = meta.shift_remove("traceparent");
            // `tracestate` belongs to its trace.
            if trace(theirs.as_ref().and_then(Value::as_str)) != trace(Some(own)) {
                meta.shift_remove("tracestate");
            }
        }
        self
    }

    /// The metadata for the server.
    pub(super) fn meta(&self) -> Option<&Map<String, Value>> {
        self.meta.as_deref()
    }

    /// The least level of log messages that the client receives; `None`: no messages.
    pub(super) fn log_level(&self) -> Option<&str> {
        self.log_level
    }

    /// Identifies the client.
    pub(super) fn key(&self) -> usize {
        self.client.key()
    }

    pub(super) fn over(&self) -> &CancellationToken {
        &self.over
    }

    /// Receives a log message.
    pub(super) fn log(&self, message: Value) {
        self.client.log(&self.server, message);
    }

    /// Answers requests of the server.
    pub(super) fn request(
        &self,
        requests: Map<String, Value>,
    ) -> BoxFuture<'static, Result<Map<String, Value>, ClientRefusal>> {
        let made = requests.len();
        let before = self.requests.fetch_add(made, Ordering::Relaxed);
        if before.saturating_add(made) > self.client.most_requests() {
            let problem = "this call has asked its client often enough";
            return Box::pin(ready(Err(ClientRefusal::not_supported(problem))));
        }
        self.client.request(Arc::clone(&self.server), requests)
    }

    /// Shows the URLs that an error of the server requires, as requests of the server. Whether one
    /// was opened.
    pub(crate) async fn visits(&self, required: &Value) -> bool {
        if !self.client.shows_required_urls() {
            return false;
        }
        let urls = required.get("elicitations").and_then(Value::as_array).into_iter().flatten();
        let requests = urls.enumerate().map(|(number, url)| {
            let mut params = url.as_object().cloned().unwrap_or_default();
            params.insert("mode".to_owned(), "url".into());
            (number.to_string(), json!({ "method": "elicitation/create", "params": params }))
        });
        let answers = self.request(requests.collect()).await.unwrap_or_default();
        answers.values().any(|answer| answer.get("action").is_some_and(|it| it == "accept"))
    }

    /// Answers one request of the server.
    pub(super) fn request_one(
        &self,
        method: &str,
        params: &Map<String, Value>,
    ) -> impl Future<Output = Result<Value, ClientRefusal>> + Send + 'static {
        const KEY: &str = "request";
        let request = json!({ "method": method, "params": params });
        let answers = self.request(Map::from_iter([(KEY.to_owned(), request)]));
        async move {
            let mut answers = answers.await?;
            answers.remove(KEY).ok_or_else(|| ClientRefusal::failed("the client gave no answer"))
        }
    }
}

toolcrib_core::__internal::debug_fields!(Caller { server, .. });

/// The trace of a `traceparent`.
fn trace(traceparent: Option<&str>) -> Option<&str> {
    traceparent?.split('-').nth(1)
}
