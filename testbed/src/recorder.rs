//! What came in.

use std::sync::Arc;

use axum::{
    body::Bytes,
    http::{HeaderMap, Method},
};
use serde_json::Value;
use tokio::sync::watch;

/// A request as it came in, whatever became of it.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// Its method.
    pub method: Method,
    /// Its path, and its query behind a `?` where there is one.
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
    /// The body is no JSON.
    pub fn json(&self) -> Result<Value, serde_json::Error> {
        serde_json::from_slice(&self.body)
    }

    /// The first header of that name, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// Keeps every request that a server got, in order. Clones share what is kept.
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

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.borrow().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// Forgets all of them, as a bench must from time to time.
    pub fn clear(&self) {
        self.0.send_modify(Vec::clear);
    }

    /// Waits until there are so many. It waits for ever if they do not come: put a time limit
    /// around it.
    pub async fn wait_for(&self, requests: usize) -> Vec<Recorded> {
        let mut kept = self.0.subscribe();
        match kept.wait_for(|kept| kept.len() >= requests).await {
            Ok(kept) => kept.clone(),
            // The sender lives in `self`.
            Err(_) => self.requests(),
        }
    }
}
