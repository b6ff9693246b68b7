//! The client of a run: the requests that remote servers may send it during a call.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

/// The abilities of a client for a server during a call, by the protocol's capabilities. Nothing by
/// default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct ClientAbilities {
    /// Whether the client shows a form to its user and returns the answers.
    pub elicitation_form: bool,
    /// Whether the client shows a link to its user.
    pub elicitation_url: bool,
    /// Whether the client samples a message from its model.
    pub sampling: bool,
    /// Whether the client samples with tools.
    pub sampling_tools: bool,
    /// Whether the client adds the context of servers to a sampled message.
    pub sampling_context: bool,
    /// Whether the client has folders that servers may know.
    pub roots: bool,
    /// Whether the client announces changes of these folders.
    pub roots_changes: bool,
    /// Whether the client accepts requests at any time while a call runs. Otherwise it is asked only by a
    /// response that requires input, after which the call is repeated, as clients without a session are. It
    /// says how a client can be asked, and not for what.
    pub in_session: bool,
}

impl ClientAbilities {
    /// Whether a server can ask it anything.
    pub fn can_something(self) -> bool {
        Self { in_session: false, ..self } != Self::default()
    }

    /// The abilities that both have.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            elicitation_form: self.elicitation_form && other.elicitation_form,
            elicitation_url: self.elicitation_url && other.elicitation_url,
            sampling: self.sampling && other.sampling,
            sampling_tools: self.sampling_tools && other.sampling_tools,
            sampling_context: self.sampling_context && other.sampling_context,
            roots: self.roots && other.roots,
            roots_changes: self.roots_changes && other.roots_changes,
            in_session: self.in_session && other.in_session,
        }
    }
}

/// The client of a run, for the MCP servers that its calls reach: it answers their requests, and
/// receives their log messages.
///
/// Neighbor: an [`Approver`](crate::Approver) decides on calls; this port serves a call that runs.
pub trait ClientPort: Send + Sync + 'static {
    /// Its abilities for a server, by the operator's name of the server. A server is asked to use
    /// nothing else.
    fn abilities(&self, server: &str) -> ClientAbilities;

    /// Whether sampling and roots require a policy rule that names their toolset, `mcp.sampling` or
    /// `mcp.roots`. False for a client that decides with its own user. Default: false.
    fn needs_rule(&self) -> bool {
        false
    }

    /// Identifies the client: ports with an equal key serve the same one. A connection on which
    /// several clients have calls cannot tell whose call a request of the server belongs to.
    fn key(&self) -> usize;

    /// Metadata of the request that the call answers, such as `traceparent`, for the server: all of it is
    /// passed on. Default: none.
    fn meta(&self) -> Option<&Map<String, Value>> {
        None
    }

    /// The least level of log messages that it receives, such as `info`. Default: `None`, and it
    /// receives none.
    fn log_level(&self) -> Option<&'static str> {
        None
    }

    /// The limit of requests of a server during one call; it refuses further ones. Default: none.
    fn most_requests(&self) -> usize {
        usize::MAX
    }

    /// Whether it shows its user the URLs that a server's error (-32042) requires, instead of
    /// receiving the error alone. Default: false.
    fn shows_required_urls(&self) -> bool {
        false
    }

    /// Answers requests of a server, by the server's keys: each is an object with `method`
    /// (`elicitation/create`, `sampling/createMessage` or `roots/list`) and `params`. The results
    /// have the same keys.
    fn request(
        &self,
        server: Arc<str>,
        requests: Map<String, Value>,
    ) -> BoxFuture<'static, Result<Map<String, Value>, ClientRefusal>>;

    /// Receives the parameters of a log message of a server. Must not block. Default: drops it.
    fn log(&self, server: &str, message: Value) {
        let _ = (server, message);
    }
}

/// A client's refusal of a server's requests, for the server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ClientRefusal {
    /// The code of JSON-RPC.
    pub code: i32,
    /// The reason, without secrets.
    pub message: String,
}

impl ClientRefusal {
    /// The request cannot be answered here.
    pub fn not_supported(message: impl Into<String>) -> Self {
        Self { code: -32_601, message: message.into() }
    }

    /// An error that says why the request failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self { code: -32_603, message: message.into() }
    }
}

/// The client of a run, as a [handle](crate::ToolContext::handle) of a call.
#[derive(Clone)]
pub struct ClientHandle(pub Arc<dyn ClientPort>);

crate::internal::debug_fields!(ClientHandle);
