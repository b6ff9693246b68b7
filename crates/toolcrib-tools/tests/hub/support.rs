//! A server that keeps a catalog, and hubs that ask it.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::{Body, Bytes},
    http::{HeaderMap, Method, Response, Uri},
};
use serde_json::Value;
use toolcrib_capabilities::http::HttpClient;
use toolcrib_core::{
    CancellationToken, Catalog, DiscoveryError, Identity, ListContext, Secret, SecretError,
    Secrets, ToolHub as _, secrets_fn,
};
use toolcrib_tools::{
    http::Method as CallMethod,
    hub::{HttpHub, HubPointers, HubSpec},
};

pub(crate) const SECRET: &str = "s3cret-s3cret";

/// A request as it came in.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Asked {
    pub(crate) fn line(&self) -> String {
        format!("{} {}", self.method, self.uri)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// A server on this machine that answers as a function says, and remembers what it was asked.
pub(crate) struct Server {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start<F>(answer: F) -> Self
    where
        F: Fn(&Asked) -> Response<Body> + Clone + Send + Sync + 'static,
    {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let seen = Arc::clone(&asked);
        let handler = move |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| {
            let body = String::from_utf8(body.to_vec()).unwrap();
            let asked = Asked { method, uri, headers, body };
            seen.lock().unwrap().push(asked.clone());
            let answer = answer(&asked);
            async move { answer }
        };
        let router = Router::new().fallback(handler);
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, asked, task }
    }

    /// One page, whatever is asked.
    pub(crate) async fn of(page: Value) -> Self {
        Self::start(move |_| json(&page)).await
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.asked().iter().map(Asked::line).collect()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) fn json(value: &Value) -> Response<Body> {
    status(200, &[("content-type", "application/json")], value.to_string())
}

pub(crate) fn status(code: u16, headers: &[(&str, &str)], body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::builder().status(code);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(body.into()).unwrap()
}

/// A client that dials this machine.
pub(crate) fn client() -> HttpClient {
    HttpClient::builder().allow_addresses(["127.0.0.1/32".parse().unwrap()]).build()
}

/// Knows `KEY`.
pub(crate) fn vault() -> impl Secrets {
    secrets_fn(|name| match name {
        "KEY" => Ok(Secret::new(SECRET)),
        _ => Err(SecretError::Unknown { name: name.into() }),
    })
}

/// A hub whose list is all of its page, and whose tools are called by `POST /call/NAME`.
pub(crate) fn spec(server: &Server, path: &str) -> HubSpec {
    HubSpec::new("h", server.url(path), CallMethod::POST, server.url("/call/{tool}"))
}

pub(crate) fn in_pages(server: &Server, path: &str) -> HubSpec {
    let pointers = HubPointers {
        list: "/tools".to_owned(),
        next: Some("/next".to_owned()),
        ..HubPointers::default()
    };
    HubSpec { pointers, ..spec(server, path) }
}

pub(crate) fn build(spec: HubSpec) -> HttpHub {
    spec.build(&client(), Some(Arc::new(vault()))).unwrap()
}

pub(crate) fn of(tenant: Option<&str>, principal: Option<&str>) -> ListContext {
    let identity = Identity {
        tenant: tenant.map(Into::into),
        principal: principal.map(Into::into),
        ..Identity::conversation("c")
    };
    ListContext::new(Arc::new(identity), CancellationToken::new())
}

pub(crate) async fn fetch(hub: &HttpHub) -> Result<Catalog, DiscoveryError> {
    hub.fetch_catalog(&of(None, None).into()).await
}

pub(crate) async fn fails(spec: HubSpec) -> DiscoveryError {
    fetch(&build(spec)).await.unwrap_err()
}

pub(crate) fn names(catalog: &Catalog) -> Vec<&str> {
    catalog.offered().iter().map(|tool| tool.name().as_str()).collect()
}
