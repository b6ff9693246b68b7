//! On whose behalf a run acts.

use std::sync::Arc;

use serde::Serialize;

/// Who is behind a run. The same value reaches providers, policy, tools and events.
///
/// `conversation` is always there: the session's id, else the run's. The other two are there only
/// when the caller named them; nothing is ever invented.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Identity {
    /// The customer or organisation, where one process serves several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<Arc<str>>,
    /// The person or service that the run acts for. Roles are looked up by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<Arc<str>>,
    /// The conversation that the run belongs to.
    pub conversation: Arc<str>,
}

impl Identity {
    /// An identity that names nobody, only a conversation. The other two are fields to be set.
    pub fn conversation(conversation: impl Into<Arc<str>>) -> Self {
        Self { tenant: None, principal: None, conversation: conversation.into() }
    }
}
