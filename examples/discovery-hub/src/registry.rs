//! A registry of tools on this machine: slow, it fails on request, and its list changes.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    http::{HeaderMap, Response, StatusCode, Uri},
};
use serde_json::json;

/// How long it takes for each answer.
const LATENCY: Duration = Duration::from_millis(30);

#[derive(Clone, Default)]
pub(crate) struct Registry(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    version: u32,
    tools: Vec<(&'static str, &'static str)>,
    /// Answers of the next requests, instead of the list.
    failures: VecDeque<StatusCode>,
}

impl Registry {
    /// Lists these from now on.
    pub(crate) fn lists(&self, tools: &[(&'static str, &'static str)]) {
        let mut state = self.state();
        state.version += 1;
        state.tools = tools.to_vec();
    }

    /// Fails so often.
    pub(crate) fn fails(&self, times: usize) {
        self.state().failures.extend(vec![StatusCode::SERVICE_UNAVAILABLE; times]);
    }

    /// Starts it; it ends with the program.
    pub(crate) async fn start(&self) -> Result<String, std::io::Error> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let registry = self.clone();
        let router = Router::new().fallback(move |uri: Uri, headers: HeaderMap| {
            let registry = registry.clone();
            async move { registry.answer(&uri, &headers).await }
        });
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(url)
    }

    async fn answer(&self, uri: &Uri, headers: &HeaderMap) -> Response<Body> {
        tokio::time::sleep(LATENCY).await;
        if let Some(tool) = uri.path().strip_prefix("/run/") {
            return answer(StatusCode::OK, None, format!("{tool} has run in the registry"));
        }
        let mut state = self.state();
        let failure = state.failures.pop_front();
        let etag = format!("\"v{}\"", state.version);
        let told = headers.get("if-none-match").and_then(|value| value.to_str().ok());
        let (status, body) = match failure {
            Some(status) => (status, String::new()),
            None if told == Some(&etag) => (StatusCode::NOT_MODIFIED, String::new()),
            None => {
                let tools: Vec<_> = state
                    .tools
                    .iter()
                    .map(|(name, text)| json!({ "name": name, "description": text }))
                    .collect();
                (StatusCode::OK, json!({ "tools": tools }).to_string())
            }
        };
        println!("    registry: {status}");
        answer(status, Some(&etag), body)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn answer(status: StatusCode, etag: Option<&str>, body: String) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    if let Some(etag) = etag.and_then(|etag| etag.parse().ok()) {
        response.headers_mut().insert("etag", etag);
    }
    response
}
