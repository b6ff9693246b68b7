//! Differences between two registries.

use std::collections::HashMap;

use super::{ToolRegistry, slots::Slot};
use crate::names::name::ToolName;

/// The differences between two registries. Names are in the order of their registry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RegistryDiff {
    /// Added tools.
    pub added: Vec<ToolName>,
    /// Removed tools.
    pub removed: Vec<ToolName>,
    /// Names that now belong to another tool, whose texts may be the same.
    pub replaced: Vec<ToolName>,
    /// Tools that became hidden.
    pub hidden: Vec<ToolName>,
    /// Tools that became visible.
    pub unhidden: Vec<ToolName>,
    /// Whether the common tools are in another order.
    pub reordered: bool,
}

impl RegistryDiff {
    /// Whether the registries are equal.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl ToolRegistry {
    /// The differences from an earlier registry, such as the baseline that this one is a copy of.
    pub fn diff(&self, before: &Self) -> RegistryDiff {
        // Locks one at a time: both may be the same registry, and another thread may compare in
        // reverse.
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
