//! A gateway over HTTP, and requests to it as they go over the wire.

use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, body::Incoming, client::conn::http1::SendRequest};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use toolcrib_core::CancellationToken;
use toolcrib_gateway::{Access, Gateway, GatewayError, HttpAccess};

pub(crate) const ANA: &str = "ana-token-0123456789";
pub(crate) const BOB: &str = "bob-token-0123456789";

/// A gateway that listens, to two people.
pub(crate) struct Web {
    pub(crate) address: SocketAddr,
    pub(crate) served: JoinHandle<Result<(), GatewayError>>,
    pub(crate) cancellation: CancellationToken,
}

/// A connection as any program opens one.
#[allow(clippy::disallowed_methods, reason = "the client is what is outside of the gateway")]
pub(crate) async fn connect(address: SocketAddr) -> std::io::Result<TcpStream> {
    TcpStream::connect(address).await
}

pub(crate) fn two() -> HttpAccess {
    HttpAccess::new()
        .token(ANA, Access::new().principal("ana"))
        .token(BOB, Access::new().principal("bob"))
}

impl Web {
    pub(crate) async fn of(gateway: &Gateway, access: HttpAccess) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (gateway, cancellation) = (gateway.clone(), CancellationToken::new());
        let token = cancellation.clone();
        let served = tokio::spawn(async move { gateway.serve_http(listener, access, token).await });
        Self { address, served, cancellation }
    }

    /// A connection for several requests, one after the other.
    pub(crate) async fn connection(&self) -> SendRequest<Full<Bytes>> {
        let stream = connect(self.address).await.unwrap();
        let (sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        sender
    }

    /// Sends a request on a separate connection, which lives as long as the response.
    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> Response<Incoming> {
        self.connection().await.send_request(request).await.unwrap()
    }

    pub(crate) async fn reply(&self, request: Request<Full<Bytes>>) -> Reply {
        Reply::of(self.send(request).await).await
    }

    /// A message in a session, or the one that begins it.
    pub(crate) async fn post(&self, token: &str, session: Option<&str>, message: &Value) -> Reply {
        self.reply(post("/mcp", token, session, message)).await
    }

    /// Begins a session; gives its id.
    pub(crate) async fn session(&self, path: &str, token: &str) -> String {
        let reply = self.reply(post(path, token, None, &initialize())).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let session = reply.session.unwrap();
        let initialized = post(path, token, Some(&session), &initialized);
        assert_eq!(self.reply(initialized).await.status, 202);
        session
    }

    /// The names that a session is offered.
    pub(crate) async fn names(&self, token: &str, session: &str) -> Vec<String> {
        names(&self.post(token, Some(session), &request("tools/list", &json!({}))).await)
    }

    pub(crate) async fn end(self) {
        self.cancellation.cancel();
        self.served.await.unwrap().unwrap();
        assert!(connect(self.address).await.is_err());
    }
}

/// An answer, whole.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) session: Option<String>,
    pub(crate) challenge: Option<String>,
    pub(crate) kind: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) async fn of(response: Response<Incoming>) -> Self {
        let header = |name: &str| {
            response.headers().get(name).map(|value| value.to_str().unwrap().to_owned())
        };
        let (session, challenge) = (header("mcp-session-id"), header("www-authenticate"));
        let (kind, status) =
            (header("content-type").unwrap_or_default(), response.status().as_u16());
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let body = String::from_utf8(body.to_vec()).unwrap();
        Self { status, session, challenge, kind, body }
    }

    /// The message in it: all of the body, or the last event.
    pub(crate) fn message(&self) -> Value {
        let events = self.body.lines().filter_map(|line| line.strip_prefix("data:"));
        let last = events.map(str::trim).rfind(|data| !data.is_empty());
        serde_json::from_str(last.unwrap_or(&self.body)).unwrap_or_else(|_| panic!("{self:?}"))
    }
}

pub(crate) fn names(reply: &Reply) -> Vec<String> {
    let message = reply.message();
    let tools = message["result"]["tools"].as_array().unwrap_or_else(|| panic!("{reply:?}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

pub(crate) fn request(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params })
}

pub(crate) fn initialize() -> Value {
    request(
        "initialize",
        &json!({
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "web", "version": "1" },
        }),
    )
}

/// A request of the stateless era.
pub(crate) fn stateless(
    path: &str,
    token: &str,
    method: &str,
    mut params: Value,
) -> Request<Full<Bytes>> {
    let meta = &mut params["_meta"];
    meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    let capabilities = &mut meta["io.modelcontextprotocol/clientCapabilities"];
    if capabilities.is_null() {
        *capabilities = json!({});
    }
    let name = params["name"].as_str().map(str::to_owned);
    let mut post = post(path, token, None, &request(method, &params));
    let headers = post.headers_mut();
    headers.insert("mcp-protocol-version", "2026-07-28".parse().unwrap());
    headers.insert("mcp-method", method.parse().unwrap());
    if let Some(name) = name {
        headers.insert("mcp-name", name.parse().unwrap());
    }
    post
}

pub(crate) fn post(
    path: &str,
    token: &str,
    session: Option<&str>,
    message: &Value,
) -> Request<Full<Bytes>> {
    let mut post = raw("POST", path, message.to_string());
    let headers = post.headers_mut();
    headers.insert("authorization", format!("Bearer {token}").parse().unwrap());
    if let Some(session) = session {
        headers.insert("mcp-session-id", session.parse().unwrap());
    }
    post
}

/// A request as a client of MCP makes it, but for a token.
pub(crate) fn raw(method: &str, path: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    Request::builder()
        .method(method)
        .uri(path)
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .body(Full::new(body.into()))
        .unwrap()
}
