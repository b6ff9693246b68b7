//! The identity of a session, and of a conversation.

use std::sync::Arc;

use toolcrib_core::ClientAbilities;

use crate::oauth::Owner;

/// The identity of a session. All fields are empty for a shared session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct IdentityScope {
    pub(super) tenant: Option<Arc<str>>,
    pub(super) principal: Option<Arc<str>>,
    /// For [`SessionScope::Client`].
    pub(super) conversation: Option<Arc<str>>,
    /// The abilities of the session's clients: the server learns it when the session begins.
    pub(super) abilities: ClientAbilities,
}

impl IdentityScope {
    /// Whose login its connection uses.
    pub(super) fn owner(&self) -> Owner {
        Owner { tenant: self.tenant.clone(), principal: self.principal.clone() }
    }

    pub(super) fn can_something(&self) -> bool {
        self.abilities.can_something()
    }

    pub(crate) fn without_abilities(&self) -> Self {
        Self { abilities: ClientAbilities::default(), ..self.clone() }
    }
}
