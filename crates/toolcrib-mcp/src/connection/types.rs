//! The requests of a connection, the server's answers and announcements, and the errors of both.

use std::{sync::Arc, time::Duration};

use rmcp::model::ServerCapabilities;
use serde_json::{Map, Value};
use toolcrib_core::{CancellationToken, ToolOutput};

use super::{
    Caller, MarkedArguments, Redaction, WireObserver, intake::Intake, message::OnProgress,
};

/// Unrequested signals of a connection. Called from its own tasks; should return quickly.
pub(crate) trait Signals: Send + Sync + 'static {
    /// The server announces changed tools. May come any number of times.
    fn tools_changed(&self);

    /// The server announces something else.
    fn notice(&self, notice: ServerNotice);

    /// The only client of the session, which the server may ask outside of calls.
    fn client(&self) -> Option<Caller>;

    /// The redaction of secrets that texts of the server may contain.
    fn redactor(&self) -> Redaction;

    /// The observer of the traffic, if there is one.
    fn observer(&self) -> Option<WireObserver>;
}

/// An announcement of a server that answers no request.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ServerNotice {
    /// It is connected.
    Connected,
    /// Its prompts have changed.
    PromptsChanged,
    /// Its resources have changed.
    ResourcesChanged,
    /// The resource with this URI has changed.
    ResourceUpdated(Arc<str>),
    /// A log message: the parameters of the notification.
    Log(Value),
    /// A visit to a URL is complete: the parameters of the notification.
    ElicitationComplete(Value),
}

/// A server's self-description.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ServerInfo {
    /// Its self-reported name.
    pub(crate) name: String,
    /// Its self-reported version.
    pub(crate) version: String,
    /// The negotiated protocol version, such as `2025-11-25`.
    pub(crate) protocol: String,
    /// Its offers.
    pub(crate) capabilities: Arc<ServerCapabilities>,
    /// Its instructions for models.
    pub(crate) instructions: Option<Arc<str>>,
}

/// One page of a server's tools.
#[derive(Debug, Clone, Default)]
pub(crate) struct Page {
    pub(crate) tools: Vec<RemoteTool>,
    /// The size of their descriptions and schemas, in bytes.
    pub(crate) bytes: usize,
    /// The cursor of the next page; `None` on the last.
    pub(crate) next: Option<String>,
    /// The time to live of the list, if the server states one.
    pub(crate) ttl: Option<Duration>,
}

/// A server's description of a tool, not verified yet.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RemoteTool {
    /// `None` for an entry without a name, or an invalid one.
    pub(crate) name: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) input_schema: Value,
    pub(crate) output_schema: Option<Value>,
    pub(crate) hints: Hints,
    /// All its other fields, for clients of a gateway: icons, metadata, annotations.
    pub(crate) fields: Map<String, Value>,
    /// Its arguments that calls copy to headers.
    pub(crate) marked: MarkedArguments,
    /// Why it cannot be offered, if a part of it cannot be read or used.
    pub(crate) flaw: Option<String>,
}

/// A server's annotations of a tool's effects, if any.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Hints {
    pub(crate) read_only: Option<bool>,
    pub(crate) destructive: Option<bool>,
    pub(crate) idempotent: Option<bool>,
}

/// One request of a method without a separate type.
pub(crate) struct PlainRequest {
    pub(crate) method: &'static str,
    /// Shared with the caller, which may have to send it again.
    pub(crate) params: Arc<Map<String, Value>>,
    pub(crate) on_progress: Option<OnProgress>,
    pub(crate) caller: Option<Caller>,
    pub(crate) cancellation: CancellationToken,
}

/// One call for the server. Clones share its arguments.
#[derive(Clone)]
pub(crate) struct CallRequest {
    /// The server's own name of the tool.
    pub(crate) tool: Arc<str>,
    pub(crate) arguments: Arc<Map<String, Value>>,
    /// The arguments that are copied to headers.
    pub(crate) marked: MarkedArguments,
    /// By which the server may recognize a repeated call.
    pub(crate) idempotency_key: Arc<str>,
    /// The span of the call.
    pub(crate) traceparent: Option<Arc<str>>,
    /// Receives the server's progress.
    pub(crate) on_progress: OnProgress,
    /// Whom the server may ask meanwhile.
    pub(crate) caller: Option<Caller>,
    /// Ends the call: the server receives a cancellation, and the response is no longer awaited.
    pub(crate) cancellation: CancellationToken,
}

toolcrib_core::__internal::debug_fields!(CallRequest { tool, .. });

/// A server's response to a call.
#[derive(Debug)]
pub(crate) struct CallAnswer {
    pub(crate) output: ToolOutput,
    /// The server reports that the tool failed; the output has the details.
    pub(crate) is_error: bool,
}

/// A connection that could not be opened. The text is for the operator.
#[derive(Debug, thiserror::Error)]
#[error("{problem}")]
pub(crate) struct ConnectError {
    pub(crate) problem: String,
    #[source]
    pub(crate) source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// A request without a usable response. The texts are for the operator.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    /// Nothing of it reached the server, or the server refused it unread: it may be sent again.
    #[error("the server did not take the request: {0}")]
    NotSent(String),
    /// It was sent, or may have been, and the connection ended before a response.
    #[error("the connection ended before an answer came: {0}")]
    Lost(String),
    /// It was sent in a session that the server no longer knows, and refused, probably without being
    /// executed: it may be repeated if a repetition does no harm.
    #[error("the connection ended before an answer came: {0}")]
    SessionLost(String),
    /// The server responded with a protocol error.
    #[error("the server answered with error {code}: {message}")]
    Refused {
        /// The JSON-RPC code.
        code: i32,
        /// The server's message.
        message: String,
        /// The server's data.
        data: Option<Value>,
    },
    /// The server required input that its client did not give.
    #[error("the client did not answer the server: {0}")]
    NotAnswered(String),
    /// The server's message is not a valid response to this request.
    #[error("the answer cannot be used: {0}")]
    Malformed(String),
    /// The server's response is larger than is read.
    #[error("the answer cannot be used: {0}")]
    TooLarge(String),
    /// The server denies access.
    #[error("the server denied access: {0}")]
    Denied(String),
    /// The server limits the rate of requests.
    #[error("the server limits the rate of requests: {problem}")]
    Limited {
        /// Its response.
        problem: String,
        /// The time after which it permits the next request.
        wait: Option<Duration>,
    },
    /// The server, or a proxy in front of it, has failed.
    #[error("the server failed: {problem}")]
    Failed {
        /// Its response.
        problem: String,
        /// The HTTP status.
        status: u16,
    },
    /// The request was cancelled here, after it was at least partly sent; the server receives a
    /// cancellation. With what the server has sent instead of a response, which may be empty.
    #[error("it was cancelled{0}")]
    Cancelled(String),
}

impl RequestError {
    /// The same, as it is shown. The server's refusal of a call goes through the pipe whole, which redacts
    /// and then cuts it.
    pub(super) fn shown(self, intake: &Intake) -> Self {
        match self {
            Self::NotSent(problem) => Self::NotSent(intake.shown(&problem)),
            Self::Lost(problem) => Self::Lost(intake.shown(&problem)),
            Self::SessionLost(problem) => Self::SessionLost(intake.shown(&problem)),
            Self::Malformed(problem) => Self::Malformed(intake.shown(&problem)),
            Self::TooLarge(problem) => Self::TooLarge(intake.shown(&problem)),
            Self::Denied(problem) => Self::Denied(intake.shown(&problem)),
            Self::Limited { problem, wait } => {
                Self::Limited { problem: intake.shown(&problem), wait }
            }
            Self::Failed { problem, status } => {
                Self::Failed { problem: intake.shown(&problem), status }
            }
            Self::Cancelled(instead) => Self::Cancelled(intake.shown(&instead)),
            refused @ (Self::Refused { .. } | Self::NotAnswered(_)) => refused,
        }
    }

    /// The same, with the beginning of a response that could not be read.
    pub(crate) fn quoting(self, beginning: impl FnOnce() -> String) -> Self {
        match self {
            Self::Malformed(problem) => {
                Self::Malformed(format!("{problem}; it begins: {}", beginning()))
            }
            other => other,
        }
    }
}
