//! Which hosts a call may reach, as data.

use std::sync::Arc;

/// Bounds on the hosts that a call may reach over HTTP. It only ever narrows: a tool still reaches
/// no more than it declares, and the client no more than the host set it up for.
///
/// Hosts are written as in [`Capabilities::network`](crate::Capabilities): `api.example.com`, or
/// `*.example.com` for all below it, which is not `example.com` itself. A text that is no such
/// pattern lets no call reach anything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NetworkRules {
    /// The hosts that may be reached; absent, all of them, and empty, none.
    pub allow: Option<Vec<Arc<str>>>,
    /// Hosts that may not be reached, whatever else allows them.
    pub deny: Vec<Arc<str>>,
}

impl NetworkRules {
    /// Whether they bound nothing.
    pub fn is_open(&self) -> bool {
        self.allow.is_none() && self.deny.is_empty()
    }
}
