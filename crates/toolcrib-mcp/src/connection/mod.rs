//! The port to the protocol: what a client asks of a server, in words of our own. What is behind
//! it speaks MCP by rmcp, over a program's pipes, HTTP, or a pipe in memory.

mod call;
mod carry;
mod ending;
mod http;
mod intake;
mod lines;
mod link;
mod open;
mod pace;
#[cfg(any(test, feature = "mock"))]
mod pipe;
mod program;
mod request;
mod result;
#[cfg(test)]
mod tests;
mod text;

use std::{fmt, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use toolcrib_core::{CancellationToken, ToolOutput};

use self::call::OnProgress;
#[cfg(any(test, feature = "mock"))]
pub(crate) use self::pipe::pipe;
pub(crate) use self::{http::http, program::stdio};

/// Opens connections to one server. Each is independent of those before it.
pub(crate) trait Connect: Send + Sync + 'static {
    /// Starts or dials the server and agrees on a version with it. Dropping the future undoes
    /// what it began, without waiting for that: a process is killed.
    fn connect(
        &self,
        signals: Arc<dyn Signals>,
    ) -> BoxFuture<'static, Result<Arc<dyn Connection>, ConnectError>>;

    /// The server as an operator knows it: its command line, with whatever was put into its
    /// arguments, or its URL without the query.
    fn target(&self) -> &str;
}

/// What a connection tells without being asked. Called from its own tasks: let it be short.
pub(crate) trait Signals: Send + Sync + 'static {
    /// The server says that its tools are others now. May come any number of times.
    fn tools_changed(&self);
}

/// An open connection to a server. Dropping the last handle ends it as `close` does, without
/// waiting.
pub(crate) trait Connection: Send + Sync + 'static {
    /// What the server says of itself, and what was agreed.
    fn server(&self) -> &ServerInfo;

    /// One page of the list of tools.
    fn list_tools(&self, cursor: Option<String>) -> BoxFuture<'static, Result<Page, RequestError>>;

    /// One call. Firing its token, or dropping the future, tells the server to cancel.
    fn call_tool(
        &self,
        request: CallRequest,
    ) -> BoxFuture<'static, Result<CallAnswer, RequestError>>;

    /// Done when the connection is over, with the operator's reason.
    fn closed(&self) -> BoxFuture<'static, Arc<str>>;

    /// Ends the connection and waits until nothing of it is left: no process, no task.
    fn close(&self) -> BoxFuture<'static, ()>;
}

/// What a server says of itself. Self-reported: for people, never for a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerInfo {
    /// Its own name.
    pub(crate) name: String,
    /// Its own version.
    pub(crate) version: String,
    /// The protocol version that was agreed on, such as `2025-11-25`.
    pub(crate) protocol: String,
    /// Whether it announces that its tools change.
    pub(crate) announces_changes: bool,
}

/// One page of a server's tools.
#[derive(Debug, Clone, Default)]
pub(crate) struct Page {
    pub(crate) tools: Vec<RemoteTool>,
    /// How much their descriptions and schemas hold, in bytes.
    pub(crate) bytes: usize,
    /// Where the next page begins; none on the last.
    pub(crate) next: Option<String>,
    /// How long the list holds, where the server says so.
    pub(crate) ttl: Option<Duration>,
}

/// A tool as a server describes it; nothing of it is believed yet.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RemoteTool {
    /// None where what is listed has no name, or is no description at all.
    pub(crate) name: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) input_schema: Value,
    pub(crate) output_schema: Option<Value>,
    pub(crate) hints: Hints,
}

/// What a server says of a tool's effects, where it says something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Hints {
    pub(crate) read_only: Option<bool>,
    pub(crate) destructive: Option<bool>,
    pub(crate) idempotent: Option<bool>,
}

/// One call, as it goes to the server.
pub(crate) struct CallRequest {
    /// The server's own name of the tool.
    pub(crate) tool: Arc<str>,
    /// Shared with whoever may have to send it again.
    pub(crate) arguments: Arc<Map<String, Value>>,
    /// Told of the server's progress: a text, and how much is done, 0 to 100.
    pub(crate) on_progress: OnProgress,
    /// Ends the call: the server is told, and the answer is no longer waited for.
    pub(crate) cancellation: CancellationToken,
}

impl fmt::Debug for CallRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallRequest").field("tool", &self.tool).finish_non_exhaustive()
    }
}

/// What a server answered to a call.
#[derive(Debug)]
pub(crate) struct CallAnswer {
    pub(crate) output: ToolOutput,
    /// The server says that the tool failed; the output says how.
    pub(crate) is_error: bool,
}

/// A connection that could not be opened. The text is the operator's.
#[derive(Debug, thiserror::Error)]
#[error("{problem}")]
pub(crate) struct ConnectError {
    pub(crate) problem: String,
    #[source]
    pub(crate) source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// A request without a usable answer. The texts are the operator's.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    /// Nothing of it reached the server, or the server refused it unread: it may be sent again.
    #[error("the server did not take the request: {0}")]
    NotSent(String),
    /// It was sent, or may have been, and the connection ended before an answer came.
    #[error("the connection ended before an answer came: {0}")]
    Lost(String),
    /// The server answered with a protocol error.
    #[error("the server answered with error {code}: {message}")]
    Refused {
        /// The JSON-RPC code.
        code: i32,
        /// The server's words.
        message: String,
    },
    /// The server answered with something that is no answer to this request.
    #[error("the answer cannot be used: {0}")]
    Malformed(String),
    /// The request was cancelled here, after it was sent or begun to be; the server is told.
    #[error("it was cancelled")]
    Cancelled,
}
