//! Merging of registries.

use super::{AlreadyRegisteredError, ToolRegistry, slots::Slot};
use crate::tool::definition::OnCollision;

impl ToolRegistry {
    /// Merges registries and fails on a collision: [`merge_with`](Self::merge_with)
    /// [`OnCollision::Fail`].
    ///
    /// # Errors
    /// [`AlreadyRegisteredError`] if two tools have the same name, and the second declares no
    /// `on_collision`.
    pub fn merge<'a>(
        registries: impl IntoIterator<Item = &'a Self>,
    ) -> Result<Self, AlreadyRegisteredError> {
        Self::merge_with(registries, OnCollision::Fail)
    }

    /// A registry of all tools of several, in order: registry after registry, each in its own
    /// order. The sources stay unchanged, and their [bindings](Self::bind_context) are not copied.
    ///
    /// On a name collision the incoming tool's `on_collision` applies; if that is
    /// [`OnCollision::Fail`], the argument decides. The existing tool's setting is ignored. A
    /// replacement keeps the position of the replaced tool. The result is hidden if the tool that
    /// stays is hidden: a hidden tool that yields hides nothing. A tool does not collide with
    /// itself.
    ///
    /// # Errors
    /// [`AlreadyRegisteredError`] if no setting resolves a collision.
    pub fn merge_with<'a>(
        registries: impl IntoIterator<Item = &'a Self>,
        on_collision: OnCollision,
    ) -> Result<Self, AlreadyRegisteredError> {
        let mut registries = registries.into_iter();
        // Copying the first as a whole is cheap.
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
                        return Err(AlreadyRegisteredError::between(&there.tool, &slot.tool));
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
