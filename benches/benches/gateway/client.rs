//! The client over HTTP: hyper and prepared bytes, so that it takes little of the time and only
//! checks that a response is the right one.

use std::{net::SocketAddr, time::Instant};

use futures_util::future::try_join_all;
use http_body_util::{BodyExt as _, Full};
use hyper::{
    Method, Request, StatusCode,
    body::Bytes,
    client::conn::http1::{self, SendRequest},
    header::{self, HeaderValue},
    http::request::Builder,
};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, task::AbortHandle};
use toolcrib_benches::Outcome;

use crate::{
    figures::{Round, Window},
    message::{self, INITIALIZE, INITIALIZED},
};

/// One of the protocol's two HTTP variants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    /// `2025-06-18`: a handshake, and a session id in each request.
    Sessions,
    /// `2026-07-28`: independent requests.
    Stateless,
}

/// The called server and variant.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    pub(crate) token: Option<String>,
    pub(crate) tool: String,
    pub(crate) era: Era,
}

impl Target {
    /// One call.
    pub(crate) async fn once(&self) -> Outcome {
        let mut connection = Connection::open(self).await?;
        connection.call().await?;
        connection.close().await
    }

    /// Runs concurrent callers, each with a separate connection and session, and each with its next
    /// call as soon as the last is answered.
    pub(crate) async fn round(&self, callers: usize) -> Outcome<Round> {
        Ok(self.measured(callers, || Ok(())).await?.round)
    }

    /// A [`round`](Self::round), with what is read before its first call and after its last one.
    pub(crate) async fn measured<T>(
        &self,
        callers: usize,
        read: impl Fn() -> Outcome<T>,
    ) -> Outcome<Measured<T>> {
        let connections = try_join_all((0..callers).map(|_| Connection::open(self))).await?;
        let (before, window) = (read()?, Window::now());
        let called = try_join_all(connections.into_iter().map(|mut connection| async move {
            let mut times = Vec::new();
            while window.is_open() {
                let sent = Instant::now();
                connection.call().await?;
                window.note(sent, &mut times);
            }
            Outcome::Ok((connection, times))
        }))
        .await?;
        let (after, mut times, mut calls) = (read()?, Vec::new(), 0);
        for (connection, own) in called {
            calls += connection.calls;
            connection.close().await?;
            times.extend(own);
        }
        Ok(Measured { round: Round::of(&times), calls, before, after })
    }
}

/// A round, with what was read before and after its calls.
pub(crate) struct Measured<T> {
    pub(crate) round: Round,
    /// All answered calls, also those of the warm-up.
    pub(crate) calls: u64,
    pub(crate) before: T,
    pub(crate) after: T,
}

/// One connection, and the session on it.
struct Connection<'a> {
    target: &'a Target,
    sender: SendRequest<Full<Bytes>>,
    driver: AbortHandle,
    session: Option<HeaderValue>,
    /// The text of a call before and after its id.
    call: (String, String),
    calls: u64,
}

impl<'a> Connection<'a> {
    async fn open(target: &'a Target) -> Outcome<Self> {
        let stream = TcpStream::connect(target.address).await?;
        stream.set_nodelay(true)?;
        let (sender, driver) = http1::handshake(TokioIo::new(stream)).await?;
        let driver = tokio::spawn(async move { drop(driver.await) }).abort_handle();
        let call = message::call(&target.tool, target.era == Era::Stateless);
        let mut own = Self { target, sender, driver, session: None, call, calls: 0 };
        if target.era == Era::Sessions {
            let opened = own.post("initialize", INITIALIZE.into()).await?;
            own.session = opened.session;
            if own.session.is_none() {
                return Err(format!("no session: {} {}", opened.status, opened.body).into());
            }
            own.post("notifications/initialized", INITIALIZED.into()).await?;
        }
        Ok(own)
    }

    async fn call(&mut self) -> Outcome {
        self.calls += 1;
        let (before, after) = &self.call;
        let body = format!("{before}{}{after}", self.calls);
        let answer = self.post("tools/call", body.into()).await?;
        if !message::is_answer(&answer.body, self.calls) {
            return Err(format!("{}: {}", answer.status, answer.body).into());
        }
        Ok(())
    }

    async fn post(&mut self, method: &'static str, body: Bytes) -> Outcome<Answer> {
        let mut request = self
            .request(Method::POST)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json, text/event-stream");
        if self.target.era == Era::Stateless {
            request = request.header("mcp-protocol-version", "2026-07-28");
            request = request.header("mcp-method", method);
            request = request.header("mcp-name", self.target.tool.as_str());
        } else if self.session.is_some() {
            request = request.header("mcp-protocol-version", "2025-06-18");
        }
        self.send(request.body(Full::new(body))?).await
    }

    fn request(&self, method: Method) -> Builder {
        let mut request = Request::builder().method(method).uri("/mcp");
        request = request.header(header::HOST, self.target.address.to_string());
        if let Some(token) = &self.target.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session);
        }
        request
    }

    async fn send(&mut self, request: Request<Full<Bytes>>) -> Outcome<Answer> {
        self.sender.ready().await?;
        let (head, body) = self.sender.send_request(request).await?.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok(Answer {
            status: head.status,
            session: head.headers.get("mcp-session-id").cloned(),
            body: String::from_utf8(body.into())?,
        })
    }

    async fn close(mut self) -> Outcome {
        if self.session.is_some() {
            let request = self.request(Method::DELETE).body(Full::default())?;
            self.send(request).await?;
        }
        Ok(())
    }
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

struct Answer {
    status: StatusCode,
    session: Option<HeaderValue>,
    body: String,
}
