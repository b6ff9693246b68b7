//! The identity that a run acts for.

use std::sync::Arc;

use serde::Serialize;

/// The identity of a run. The same value reaches providers, policy, tools and events.
///
/// `conversation` is always set: the session's id, else the run's. The other two are set only if
/// the caller named them; they are never invented.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Identity {
    /// The customer or organization, where one process serves several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<Arc<str>>,
    /// The person or service that the run acts for. Roles are looked up by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<Arc<str>>,
    /// The conversation that the run belongs to.
    pub conversation: Arc<str>,
}

impl Identity {
    /// An identity with only a conversation. Set the other two fields if known.
    pub fn conversation(conversation: impl Into<Arc<str>>) -> Self {
        Self { tenant: None, principal: None, conversation: conversation.into() }
    }
}
