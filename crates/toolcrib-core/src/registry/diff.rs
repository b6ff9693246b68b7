//! How two registries differ.

use std::collections::HashMap;

use super::{ToolRegistry, slots::Slot};
use crate::name::ToolName;

/// How a registry differs from another one. Names stand in the order of the registry that has them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RegistryDiff {
    /// Tools that were not there.
    pub added: Vec<ToolName>,
    /// Tools that are not there any more.
    pub removed: Vec<ToolName>,
    /// Names under which there is another tool now; it may read the same.
    pub replaced: Vec<ToolName>,
    /// Tools that are hidden now and were not.
    pub hidden: Vec<ToolName>,
    /// Tools that were hidden and are not any more.
    pub unhidden: Vec<ToolName>,
    /// Whether the tools that both have stand in another order.
    pub reordered: bool,
}

impl RegistryDiff {
    /// Whether there is no difference.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl ToolRegistry {
    /// How this registry differs from what another one is, such as the baseline that it is a copy of.
    pub fn diff(&self, before: &Self) -> RegistryDiff {
        // One lock at a time: both may be the same registry, and another thread may ask the other way round.
        let now = self.state().slots.clone();
        let before = before.state().slots.clone();
        let mut diff = RegistryDiff::default();
        if now.is_copy_of(&before) {
            return diff;
        }
        let name = |slot: &Slot| slot.tool.name().clone();
        let gone = before.iter().filter(|slot| now.get(slot.tool.name()).is_none());
        diff.removed = gone.map(name).collect();
        let stayed = before.iter().filter(|slot| now.get(slot.tool.name()).is_some());
        let positions: HashMap<_, _> =
            stayed.enumerate().map(|(at, slot)| (slot.tool.name(), at)).collect();
        let mut at = 0;
        for slot in now.iter() {
            let Some(was) = before.get(slot.tool.name()) else {
                diff.added.push(name(slot));
                continue;
            };
            diff.reordered |= positions.get(slot.tool.name()) != Some(&at);
            at += 1;
            if !slot.tool.same(&was.tool) {
                diff.replaced.push(name(slot));
            }
            match (was.hidden, slot.hidden) {
                (false, true) => diff.hidden.push(name(slot)),
                (true, false) => diff.unhidden.push(name(slot)),
                _ => {}
            }
        }
        diff
    }
}
