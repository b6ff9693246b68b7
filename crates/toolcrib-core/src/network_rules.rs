//! Rules for the hosts that a call may reach.

use std::sync::Arc;

/// Limits on the hosts that a call may reach over HTTP. They only narrow: a tool still reaches only
/// hosts that it declares, and the client only hosts that it is configured for.
///
/// Hosts are written as in [`Capabilities::network`](crate::Capabilities): `api.example.com`, or
/// `*.example.com` for all subdomains, excluding `example.com` itself. An invalid pattern blocks
/// all hosts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NetworkRules {
    /// Allowed hosts; `None` allows all, an empty list none.
    pub allow: Option<Vec<Arc<str>>>,
    /// Denied hosts; takes precedence over `allow`.
    pub deny: Vec<Arc<str>>,
}

impl NetworkRules {
    /// Whether any host may be reached.
    pub fn is_open(&self) -> bool {
        self.allow.is_none() && self.deny.is_empty()
    }
}
