//! Building an index, and updating it by the difference.

use std::{collections::HashMap, sync::Arc};

use toolcrib_core::Tool;

use crate::{
    fields::{Term, impacts},
    index::{Index, Posting, Slot},
    weights::Weights,
};

/// A new index is built if more than one tool of this many has changed: it is then cheaper, and it
/// drops the terms that no tool has.
const REBUILD_SHARE: usize = 4;

/// Lists without tools that an updated index keeps at most, in shares of all lists.
const EMPTY_SHARE: usize = 2;

/// The changes in the list of one term.
///
/// Both parts and the list itself are in the order of the slots.
#[derive(Default)]
struct Change {
    gone: Vec<u32>,
    new: Vec<Posting>,
}

impl Change {
    fn apply(self, list: &mut Vec<Posting>) {
        if list.is_empty() {
            *list = self.new;
            return;
        }
        for slot in self.gone {
            // A slot that another tool takes is overwritten below.
            let is_taken = self.new.binary_search_by_key(&slot, |posting| posting.slot).is_ok();
            let place = list.binary_search_by_key(&slot, |posting| posting.slot);
            if let Some(place) = place.ok().filter(|_| !is_taken) {
                list.remove(place);
            }
        }
        for posting in self.new {
            match list.binary_search_by_key(&posting.slot, |posting| posting.slot) {
                Ok(place) => list.iter_mut().skip(place).take(1).for_each(|old| *old = posting),
                Err(place) => list.insert(place, posting),
            }
        }
    }
}

impl Index {
    /// [`new`](Self::new) with other weights.
    pub fn with_weights(tools: &[Tool], weights: Weights) -> Self {
        let nothing = Self {
            weights,
            terms: HashMap::new(),
            lists: Vec::new(),
            slots: Vec::new(),
            by_texts: HashMap::new(),
        };
        nothing.changed_to(tools, &vec![None; tools.len()])
    }

    /// The index of another list of tools. Finds the same as a new index of that list, and costs
    /// time in proportion to the number of changed tools, plus a copy of the index's tables.
    #[must_use]
    pub fn updated(&self, tools: &[Tool]) -> Self {
        let slots: Vec<Option<u32>> = tools.iter().map(|tool| self.slot_of(tool)).collect();
        let stay = slots.iter().flatten().count();
        let changes = self.len().saturating_sub(stay) + tools.len().saturating_sub(stay);
        let empty = self.lists.iter().filter(|list| list.is_empty()).count();
        if changes * REBUILD_SHARE > self.len() || empty * EMPTY_SHARE > self.lists.len() {
            return Self::with_weights(tools, self.weights);
        }
        self.clone().changed_to(tools, &slots)
    }

    /// Changes to a list of tools, each with its slot if it is indexed.
    fn changed_to(mut self, tools: &[Tool], slots: &[Option<u32>]) -> Self {
        let mut stays = vec![false; self.slots.len()];
        let mut added = Vec::new();
        for ((position, tool), slot) in (0..).zip(tools).zip(slots) {
            let place = slot.and_then(|number| self.slots.get_mut(number as usize)?.as_mut());
            let stays = slot.and_then(|number| stays.get_mut(number as usize));
            match (place, stays) {
                // The same texts again.
                (_, Some(true)) => {}
                (Some(place), Some(stays)) => {
                    *stays = true;
                    place.tool = tool.clone();
                    place.position = position;
                }
                _ => added.push((position, tool)),
            }
        }
        let mut changes: HashMap<u32, Change> = HashMap::new();
        let mut free = self.release(&stays, &mut changes).into_iter();
        for (position, tool) in added {
            if self.by_texts.contains_key(&tool.digest()) {
                continue;
            }
            let number = free.next().unwrap_or_else(|| {
                self.slots.push(None);
                last_of(&self.slots)
            });
            let of_tool = impacts(tool, &self.weights).into_iter().map(|(term, impact)| {
                let list = self.list_of(term);
                changes.entry(list).or_default().new.push(Posting { slot: number, impact });
                list
            });
            let terms = of_tool.collect();
            self.by_texts.insert(tool.digest(), number);
            if let Some(place) = self.slots.get_mut(number as usize) {
                *place = Some(Slot { tool: tool.clone(), position, terms });
            }
        }
        for (list, change) in changes {
            if let Some(list) = self.lists.get_mut(list as usize) {
                change.apply(Arc::make_mut(list));
            }
        }
        self
    }

    /// Empties the slots of tools that do not stay. Returns the empty slots, in order.
    fn release(&mut self, stays: &[bool], changes: &mut HashMap<u32, Change>) -> Vec<u32> {
        let mut empty = Vec::new();
        for ((number, place), stays) in (0..).zip(&mut self.slots).zip(stays) {
            if *stays {
                continue;
            }
            empty.push(number);
            let Some(Slot { tool, terms, .. }) = place.take() else { continue };
            self.by_texts.remove(&tool.digest());
            for list in terms.iter() {
                changes.entry(*list).or_default().gone.push(number);
            }
        }
        empty
    }

    /// The number of a term's list.
    fn list_of(&mut self, term: Term) -> u32 {
        *self.terms.entry(term).or_insert_with(|| {
            self.lists.push(Arc::default());
            last_of(&self.lists)
        })
    }

    /// The slot of a tool that is indexed with the same texts.
    pub(crate) fn slot_of(&self, tool: &Tool) -> Option<u32> {
        let number = *self.by_texts.get(&tool.digest())?;
        let indexed = &self.slots.get(number as usize)?.as_ref()?.tool;
        let is_same =
            indexed.toolset() == tool.toolset() && indexed.mcp_server() == tool.mcp_server();
        is_same.then_some(number)
    }
}

/// The number of the last item. More of them do not fit into memory.
fn last_of<T>(items: &[T]) -> u32 {
    u32::try_from(items.len().saturating_sub(1)).unwrap_or(u32::MAX)
}
