//! A subscription of a client to a resource of a server.

use std::sync::Arc;

use toolcrib_mcp::__internal::Subscribed;

/// The limit of subscriptions of a client.
pub(crate) const MOST_SUBSCRIPTIONS: usize = 256;

/// A subscription of a client.
pub(crate) struct Subscription {
    pub(crate) server: Arc<str>,
    /// The server's own URI.
    pub(crate) uri: Arc<str>,
    pub(crate) _upstream: Arc<Subscribed>,
}
