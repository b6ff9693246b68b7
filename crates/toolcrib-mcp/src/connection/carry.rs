//! Sends calls to a server. They bypass the protocol library, which would copy each request and
//! pass it and its response through several tasks; the intake recognizes the response.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{RemoteTool, call::Call};

/// Sends calls to one server.
pub(super) trait Carrier: Send + Sync + 'static {
    /// Sends a call, once, unless it has been [withdrawn](Call::withdraw). Done when all writing
    /// and reading for it is finished. Its response goes to the intake, before that or after.
    ///
    /// Dropped, it sends nothing more, and reads no response; but a message on a shared stream that
    /// has been begun is written to its end.
    fn carry(&self, call: Outgoing) -> BoxFuture<'static, Result<(), NotCarried>>;

    /// Stores the schemas of a page of tools, for headers of calls; of the first page, or of
    /// another.
    fn listed(&self, _tools: &[RemoteTool], _is_first: bool) {}
}

/// A call that was not finished. Its [`Call`] knows whether the server received it.
#[derive(Debug)]
pub(super) struct NotCarried {
    /// For the operator.
    pub(super) problem: String,
    /// Whether the server has responded nevertheless, with an invalid response.
    pub(super) is_answer: bool,
}

impl NotCarried {
    /// The connection broke.
    pub(super) fn broken(problem: impl Into<String>) -> Self {
        Self { problem: problem.into(), is_answer: false }
    }
}

/// A `tools/call` before it is written.
pub(super) struct Outgoing {
    pub(super) id: i64,
    pub(super) tool: Arc<str>,
    /// Shared with the caller, which may have to send it again.
    pub(super) arguments: Arc<Map<String, Value>>,
    /// The server's state to return, if it requested another call.
    pub(super) state: Option<String>,
    /// The client's metadata, if each request needs it.
    pub(super) introduction: Option<Arc<Introduction>>,
    pub(super) call: Arc<Call>,
}

/// The client's metadata, in each request since 2026-07-28; before, once in the handshake.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Introduction {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    pub(super) protocol: String,
    #[serde(rename = "io.modelcontextprotocol/clientInfo")]
    pub(super) client: Value,
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities")]
    pub(super) capabilities: Value,
}

impl Outgoing {
    /// The method of every call.
    pub(super) const METHOD: &str = "tools/call";

    /// The message, on one line and without its end.
    pub(super) fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(&Message {
            jsonrpc: "2.0",
            id: self.id,
            method: Self::METHOD,
            params: Params {
                name: &self.tool,
                arguments: &self.arguments,
                state: self.state.as_deref(),
                meta: Meta { progress_token: self.id, introduction: self.introduction.as_deref() },
            },
        })
    }
}

#[derive(Serialize)]
struct Message<'a> {
    jsonrpc: &'static str,
    id: i64,
    method: &'static str,
    params: Params<'a>,
}

#[derive(Serialize)]
struct Params<'a> {
    name: &'a str,
    arguments: &'a Map<String, Value>,
    #[serde(rename = "requestState", skip_serializing_if = "Option::is_none")]
    state: Option<&'a str>,
    #[serde(rename = "_meta")]
    meta: Meta<'a>,
}

#[derive(Serialize)]
struct Meta<'a> {
    #[serde(rename = "progressToken")]
    progress_token: i64,
    #[serde(flatten)]
    introduction: Option<&'a Introduction>,
}
