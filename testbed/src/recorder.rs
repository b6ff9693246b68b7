//! Records requests.

use std::sync::Arc;

use axum::{
    body::Bytes,
    http::{HeaderMap, Method},
};
use serde_json::Value;
use tokio::sync::watch;

/// A received request, whatever its outcome.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// Its method.
    pub method: Method,
    /// Its path, with its query after a `?` if there is one.
    pub path_and_query: String,
    /// Its headers, keys included.
    pub headers: HeaderMap,
    /// Its body, byte for byte.
    pub body: Bytes,
}

impl Recorded {
    /// The body as JSON.
    ///
    /// # Errors
    /// The body is not JSON.
    pub fn json(&self) -> Result<Value, serde_json::Error> {
        serde_json::from_slice(&self.body)
    }

    /// The first header of that name, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// Keeps every request of a server, in order. Clones share the list.
#[derive(Debug, Clone)]
pub struct Recorder(Arc<watch::Sender<Vec<Recorded>>>);

impl Recorder {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(Vec::new())))
    }

    pub(crate) fn keep(&self, request: Recorded) {
        self.0.send_modify(|kept| kept.push(request));
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<Recorded> {
        self.0.borrow().clone()
    }

    /// The latest request.
    pub fn last(&self) -> Option<Recorded> {
        self.0.borrow().last().cloned()
    }

    /// The number of requests.
    pub fn len(&self) -> usize {
        self.0.borrow().len()
    }

    /// Whether it contains no requests.
    pub fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// Removes all requests, for example in a long bench.
    pub fn clear(&self) {
        self.0.send_modify(Vec::clear);
    }

    /// Waits until there are this many requests. It may wait forever: put a timeout around it.
    pub async fn wait_for(&self, requests: usize) -> Vec<Recorded> {
        let mut kept = self.0.subscribe();
        match kept.wait_for(|kept| kept.len() >= requests).await {
            Ok(kept) => kept.clone(),
            // The sender lives in `self`.
            Err(_) => self.requests(),
        }
    }
}
