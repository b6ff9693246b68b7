//! Building an index, and updating it by the difference.

use std::{collections::HashSet, mem, sync::Arc};

use toolcrib_core::Tool;

use crate::{
    fields::{Term, impacts},
    index::{Index, Slot},
    segment::Segment,
    weights::Weights,
};

/// The segments are joined if more than one tool of this many is recent or gone. Joining costs as
/// much as a few updates.
const JOIN_SHARE: usize = 8;

impl Index {
    /// [`new`](Self::new) with other weights.
    pub fn with_weights(tools: &[Tool], weights: Weights) -> Self {
        let nothing = Self {
            weights,
            base: Arc::default(),
            recent: Arc::default(),
            slots: Vec::new(),
            gone: Vec::new(),
            count: 0,
        };
        nothing.joined(tools)
    }

    /// The index of another list of tools. Finds the same as a new index of that list, and costs
    /// time in proportion to the number of changed tools, plus a pass over the list.
    #[must_use]
    pub fn updated(&self, tools: &[Tool]) -> Self {
        let mut slots: Vec<Option<Slot>> = vec![None; self.base.len()];
        let mut added: Vec<(u32, &Tool)> = Vec::new();
        // Base slots whose texts another tool of the list has, with another server or toolset.
        let mut taken: HashSet<usize> = HashSet::new();
        let mut stay = 0;
        for (position, tool) in (0..).zip(tools) {
            match self.base.find(tool) {
                Some((number, is_same)) => match slots.get_mut(number) {
                    // The same texts again.
                    Some(Some(_)) => {}
                    Some(_) if taken.contains(&number) => {}
                    Some(place) if is_same => {
                        *place = Some(Slot { tool: tool.clone(), position });
                        stay += 1;
                    }
                    _ => {
                        taken.insert(number);
                        added.push((position, tool));
                    }
                },
                None => added.push((position, tool)),
            }
        }
        let changes = self.base.len() - stay + added.len();
        if changes * JOIN_SHARE > self.base.len() {
            return self.joined(tools);
        }
        let mut gone = vec![0; self.base.lists()];
        for (slot, _) in slots.iter().enumerate().filter(|(_, place)| place.is_none()) {
            for list in self.base.lists_of(slot) {
                gone.iter_mut().skip(*list as usize).take(1).for_each(|count| *count += 1);
            }
        }
        let mut known = IndexedTerms::of([&*self.recent]);
        let mut recent = Segment::default();
        for (position, tool) in added {
            if recent.find(tool).is_none() {
                recent.push(tool, known.terms_of(tool, &self.weights));
                slots.push(Some(Slot { tool: tool.clone(), position }));
            }
        }
        let count = stay + recent.len();
        let (weights, base) = (self.weights, Arc::clone(&self.base));
        Self { weights, base, recent: recent.finished(), slots, gone, count }
    }

    /// The index of a list with all tools in one segment. Texts that are indexed are not read again.
    fn joined(&self, tools: &[Tool]) -> Self {
        let mut known = IndexedTerms::of([&*self.base, &*self.recent]);
        let mut base = Segment::default();
        let mut slots = Vec::with_capacity(tools.len());
        for (position, tool) in (0..).zip(tools) {
            if base.find(tool).is_none() {
                base.push(tool, known.terms_of(tool, &self.weights));
                slots.push(Some(Slot { tool: tool.clone(), position }));
            }
        }
        Self {
            weights: self.weights,
            gone: vec![0; base.lists()],
            count: slots.len(),
            base: base.finished(),
            recent: Arc::default(),
            slots,
        }
    }

    /// The slot of a tool that is indexed with the same texts.
    pub(crate) fn slot_of(&self, tool: &Tool) -> Option<usize> {
        let same = |(slot, is_same): (usize, bool)| is_same.then_some(slot);
        let of_base = self.base.find(tool).and_then(same);
        let is_there = |slot: &usize| self.slots.get(*slot).is_some_and(Option::is_some);
        of_base
            .filter(is_there)
            .or_else(|| Some(self.recent.find(tool).and_then(same)? + self.base.len()))
    }
}

/// The terms of a tool with their impacts.
type Impacts = Vec<(Term, f32)>;

/// The terms of tools that are indexed.
struct IndexedTerms<'a>(Vec<(&'a Segment, Vec<Impacts>)>);

impl<'a> IndexedTerms<'a> {
    fn of(segments: impl IntoIterator<Item = &'a Segment>) -> Self {
        Self(segments.into_iter().map(|segment| (segment, segment.impacts())).collect())
    }

    /// The terms of a tool. Those of an indexed tool can be taken once.
    fn terms_of(&mut self, tool: &Tool, weights: &Weights) -> Impacts {
        for (segment, known) in &mut self.0 {
            if let Some((slot, true)) = segment.find(tool)
                && let Some(terms) = known.get_mut(slot)
                && !terms.is_empty()
            {
                return mem::take(terms);
            }
        }
        impacts(tool, weights)
    }
}
