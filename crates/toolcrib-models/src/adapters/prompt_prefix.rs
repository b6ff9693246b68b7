//! The parts of a prompt before every message.

use std::sync::Arc;

use toolcrib_core::{Digest, Menu, Message, ModelRequest};

use super::protocol::Offer;

/// The parts before every message: the tools and the system text.
pub(super) struct PromptPrefix {
    menu: Arc<Menu>,
    loads: bool,
    has_stand_in: bool,
    pub(super) system: Arc<str>,
}

impl PromptPrefix {
    pub(super) fn of(request: &ModelRequest, offer: Offer<'_>) -> Self {
        Self {
            menu: Arc::clone(&request.menu),
            loads: offer.loads(),
            has_stand_in: has_stand_in(request),
            system: Arc::clone(&request.system),
        }
    }

    /// The digest of the declared tools; `None` if all of them are gone.
    pub(super) fn tools(&self) -> Option<Digest> {
        let offer = Offer::new(&self.menu, self.loads);
        (!self.has_stand_in).then(|| offer.declared_digest())
    }

    /// Whether another one is the same.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let has_same_menu = || match Arc::ptr_eq(&self.menu, &other.menu) {
            true => self.loads == other.loads,
            false => self.tools() == other.tools(),
        };
        self.has_stand_in == other.has_stand_in
            && (Arc::ptr_eq(&self.system, &other.system) || self.system == other.system)
            && (self.has_stand_in || has_same_menu())
    }
}

/// Whether a conversation has calls, and the menu has no tool any more.
pub(super) fn has_stand_in(request: &ModelRequest) -> bool {
    request.menu.is_empty()
        && request
            .messages
            .iter()
            .any(|message| matches!(message, Message::Assistant { calls, .. } if !calls.is_empty()))
}
