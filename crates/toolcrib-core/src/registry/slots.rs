//! A copy-on-write, ordered map of tools. Edits are stored separately from the shared base, so that
//! neither a copy nor its first edit copies all tools.

use std::{collections::BTreeMap, sync::Arc};

use indexmap::IndexMap;

use crate::{names::name::ToolName, tool::Tool};

/// With more edits than these the base is copied once.
const MOST_EDITS: usize = 64;

/// A tool with its position and whether it is hidden.
#[derive(Debug, Clone)]
pub(super) struct Slot {
    pub(super) tool: Tool,
    pub(super) hidden: bool,
}

impl Slot {
    fn is_ephemeral(&self) -> bool {
        self.tool.ephemeral().is_some()
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Slots {
    base: Arc<IndexMap<ToolName, Slot>>,
    /// Changed or removed slots of the base, by position.
    changed: BTreeMap<usize, Option<Slot>>,
    /// Slots after the base.
    added: IndexMap<ToolName, Slot>,
    /// The number of ephemeral tools.
    ephemeral: usize,
}

impl Slots {
    pub(super) fn get(&self, name: &str) -> Option<&Slot> {
        match self.position(name) {
            Some(at) => match self.changed.get(&at) {
                Some(changed) => changed.as_ref(),
                None => self.base.get_index(at).map(|(_, slot)| slot),
            },
            None => self.added.get(name),
        }
    }

    /// In order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Slot> {
        let mut changed = self.changed.iter().peekable();
        let base = self.base.values().enumerate().filter_map(move |(position, slot)| match changed
            .next_if(|(at, _)| **at == position)
        {
            None => Some(slot),
            Some((_, changed)) => changed.as_ref(),
        });
        base.chain(self.added.values())
    }

    pub(super) fn len(&self) -> usize {
        let taken_out = self.changed.values().filter(|slot| slot.is_none()).count();
        self.base.len().saturating_sub(taken_out) + self.added.len()
    }

    pub(super) fn has_ephemeral(&self) -> bool {
        self.ephemeral > 0
    }

    /// Whether both are unedited copies of the same base; does not compare the tools.
    pub(super) fn is_copy_of(&self, other: &Self) -> bool {
        let unedited = |slots: &Self| slots.changed.is_empty() && slots.added.is_empty();
        Arc::ptr_eq(&self.base, &other.base) && unedited(self) && unedited(other)
    }

    /// Replaces the tool of the same name, or appends. Returns the previous slot.
    pub(super) fn put(&mut self, slot: Slot) -> Option<Slot> {
        self.ephemeral += usize::from(slot.is_ephemeral());
        let name = slot.tool.name().clone();
        let replaced = if let Some(own) = self.own() {
            own.insert(name, slot)
        } else if let Some(at) = self.position(&name) {
            self.change(at, Some(slot))
        } else {
            self.added.insert(name, slot)
        };
        self.forget(replaced)
    }

    /// Removes a tool; the others keep their order.
    pub(super) fn take(&mut self, name: &str) -> Option<Slot> {
        let taken = if let Some(own) = self.own() {
            own.shift_remove(name)
        } else if let Some(at) = self.position(name) {
            self.change(at, None)
        } else {
            self.added.shift_remove(name)
        };
        self.forget(taken)
    }

    /// Removes and returns the tools that `keep` rejects, in order.
    pub(super) fn retain(&mut self, keep: impl Fn(&Slot) -> bool) -> Vec<Slot> {
        let gone: Vec<_> = self.iter().filter(|slot| !keep(slot)).cloned().collect();
        if gone.len() > MOST_EDITS {
            self.base = Arc::new(self.kept(&keep));
            self.changed.clear();
            self.added.clear();
            self.ephemeral = self.base.values().filter(|slot| slot.is_ephemeral()).count();
        } else {
            for slot in &gone {
                self.take(slot.tool.name());
            }
        }
        gone
    }

    fn kept(&self, keep: impl Fn(&Slot) -> bool) -> IndexMap<ToolName, Slot> {
        let kept = self.iter().filter(|slot| keep(slot));
        kept.map(|slot| (slot.tool.name().clone(), slot.clone())).collect()
    }

    /// The base map, if no copy shares it.
    fn own(&mut self) -> Option<&mut IndexMap<ToolName, Slot>> {
        match self.changed.len() + self.added.len() {
            0 => {}
            1..=MOST_EDITS => return None,
            _ => {
                self.base = Arc::new(self.kept(|_| true));
                self.changed.clear();
                self.added.clear();
            }
        }
        Arc::get_mut(&mut self.base)
    }

    /// The position of a name in the base, unless it was removed.
    fn position(&self, name: &str) -> Option<usize> {
        let at = self.base.get_index_of(name)?;
        (!matches!(self.changed.get(&at), Some(None))).then_some(at)
    }

    /// Replaces an existing slot of the base. Returns the previous slot.
    fn change(&mut self, at: usize, slot: Option<Slot>) -> Option<Slot> {
        match self.changed.insert(at, slot) {
            Some(before) => before,
            None => self.base.get_index(at).map(|(_, slot)| slot.clone()),
        }
    }

    fn forget(&mut self, gone: Option<Slot>) -> Option<Slot> {
        let ephemeral = gone.as_ref().is_some_and(Slot::is_ephemeral);
        self.ephemeral = self.ephemeral.saturating_sub(usize::from(ephemeral));
        gone
    }
}
