//! The lists of a set of tools.

use std::{collections::HashMap, sync::Arc};

use toolcrib_core::{Digest, Tool};

use crate::fields::Term;

/// A tool that has a term.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Posting {
    pub(crate) slot: u32,
    /// The share of a score, without the term's rarity.
    pub(crate) impact: f32,
}

/// Tools and the lists of their terms, immutable once it is built.
#[derive(Debug, Default)]
pub(crate) struct Segment {
    /// The terms, each with the number of its list.
    terms: HashMap<Term, u32>,
    /// In the order of the slots.
    lists: Vec<Vec<Posting>>,
    tools: Vec<Tool>,
    /// The numbers of the lists of each tool.
    lists_of: Vec<Box<[u32]>>,
    by_texts: HashMap<Digest, u32>,
}

impl Segment {
    /// The number of tools.
    pub(crate) fn len(&self) -> usize {
        self.tools.len()
    }

    /// The number of lists.
    pub(crate) fn lists(&self) -> usize {
        self.lists.len()
    }

    /// The list of a term, with its number.
    pub(crate) fn list(&self, term: &Term) -> Option<(u32, &[Posting])> {
        let number = *self.terms.get(term)?;
        Some((number, self.lists.get(number as usize)?))
    }

    /// The tools that have a term.
    pub(crate) fn postings(&self, term: &Term) -> &[Posting] {
        self.list(term).map(|(_, list)| list).unwrap_or_default()
    }

    /// The numbers of the lists of a tool.
    pub(crate) fn lists_of(&self, slot: usize) -> &[u32] {
        self.lists_of.get(slot).map_or(&[], |lists| lists)
    }

    /// The slot of a tool with the same texts, and whether its server and toolset are the same too.
    pub(crate) fn find(&self, tool: &Tool) -> Option<(usize, bool)> {
        let slot = *self.by_texts.get(&tool.digest())? as usize;
        let indexed = self.tools.get(slot)?;
        let is_same =
            indexed.toolset() == tool.toolset() && indexed.mcp_server() == tool.mcp_server();
        Some((slot, is_same))
    }

    /// Adds a tool.
    pub(crate) fn push(&mut self, tool: &Tool, impacts: impl IntoIterator<Item = (Term, f32)>) {
        let slot = number(self.tools.len());
        self.by_texts.insert(tool.digest(), slot);
        self.tools.push(tool.clone());
        let lists = impacts.into_iter().map(|(term, impact)| {
            let list = *self.terms.entry(term).or_insert_with(|| {
                self.lists.push(Vec::new());
                number(self.lists.len() - 1)
            });
            if let Some(list) = self.lists.get_mut(list as usize) {
                list.push(Posting { slot, impact });
            }
            list
        });
        let lists = lists.collect();
        self.lists_of.push(lists);
    }

    /// The terms of each tool.
    pub(crate) fn impacts(&self) -> Vec<Vec<(Term, f32)>> {
        let mut all = vec![Vec::new(); self.tools.len()];
        for (term, list) in &self.terms {
            for Posting { slot, impact } in self.lists.get(*list as usize).into_iter().flatten() {
                if let Some(impacts) = all.get_mut(*slot as usize) {
                    impacts.push((term.clone(), *impact));
                }
            }
        }
        all
    }

    /// Releases memory that further tools would use.
    pub(crate) fn finished(mut self) -> Arc<Self> {
        self.lists.iter_mut().for_each(Vec::shrink_to_fit);
        Arc::new(self)
    }
}

/// The number of an item. More of them do not fit into memory.
fn number(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}
