//! Puts several registries together.

use super::{AlreadyRegistered, ToolRegistry, slots::Slot};
use crate::definition::OnCollision;

impl ToolRegistry {
    /// [`merge_with`](Self::merge_with) [`OnCollision::Fail`].
    ///
    /// # Errors
    /// [`AlreadyRegistered`] when two tools have one name, and the second does not say which yields.
    pub fn merge<'a>(
        registries: impl IntoIterator<Item = &'a Self>,
    ) -> Result<Self, AlreadyRegistered> {
        Self::merge_with(registries, OnCollision::Fail)
    }

    /// A registry of all tools of several, in order: registry after registry, each in its own order.
    /// None of them is changed, and what they are [bound](Self::bind_context) to is not taken over.
    ///
    /// Where a name comes in that is taken, the tool that comes in is asked what it declares; where that
    /// is [`OnCollision::Fail`], `on_collision` decides. What the tool that is there declares counts for
    /// nothing. The one that replaces takes the place of the one that was there. Whether the result is
    /// hidden is a matter of the tool that stays: a hidden one that yields hides nothing. A tool does not
    /// collide with itself.
    ///
    /// # Errors
    /// [`AlreadyRegistered`] when nobody says which yields; there is no result then.
    pub fn merge_with<'a>(
        registries: impl IntoIterator<Item = &'a Self>,
        on_collision: OnCollision,
    ) -> Result<Self, AlreadyRegistered> {
        let mut registries = registries.into_iter();
        // The first is copied as a whole, which costs nothing.
        let first = registries.next().map(|first| first.state().slots.clone());
        let mut merged = first.unwrap_or_default();
        for registry in registries {
            let incoming = registry.state().slots.clone();
            for slot in incoming.iter() {
                let Some(there) = merged.get(slot.tool.name()) else {
                    merged.put(slot.clone());
                    continue;
                };
                match decided(slot, there, on_collision) {
                    OnCollision::Keep => {}
                    OnCollision::Replace => {
                        merged.put(slot.clone());
                    }
                    OnCollision::Fail => {
                        return Err(AlreadyRegistered::between(&there.tool, &slot.tool));
                    }
                }
            }
        }
        Ok(Self::of(merged))
    }
}

fn decided(incoming: &Slot, there: &Slot, on_collision: OnCollision) -> OnCollision {
    let declared = match incoming.tool.on_collision() {
        OnCollision::Fail => on_collision,
        declared => declared,
    };
    match declared {
        OnCollision::Fail if incoming.tool.same(&there.tool) => OnCollision::Keep,
        declared => declared,
    }
}
