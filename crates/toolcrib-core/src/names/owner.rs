//! The owner of sessions and stored values.

use std::sync::Arc;

use serde::Serialize;

/// The owner of sessions: the tenant and the principal of an [`Identity`](super::Identity).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize)]
pub struct SessionOwner {
    /// The tenant, if there is one.
    pub tenant: Option<Arc<str>>,
    /// The principal, if there is one.
    pub principal: Option<Arc<str>>,
}

impl SessionOwner {
    /// A principal without a tenant.
    pub fn principal(principal: impl Into<Arc<str>>) -> Self {
        Self { tenant: None, principal: Some(principal.into()) }
    }
}
