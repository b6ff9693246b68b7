use std::{cmp::Ordering, collections::HashMap, sync::Arc};

use toolcrib_core::{Digest, Tool};

use crate::{fields::Term, need::terms_of, weights::Weights};

/// An index of tools, immutable and shared.
#[derive(Debug, Clone)]
pub struct Index {
    pub(crate) weights: Weights,
    /// The terms, each with the number of its list.
    pub(crate) terms: HashMap<Term, u32>,
    pub(crate) lists: Vec<Arc<Vec<Posting>>>,
    /// The tools, each in a slot that it keeps while it stays unchanged.
    pub(crate) slots: Vec<Option<Slot>>,
    /// The slots, by the digests of the texts.
    pub(crate) by_texts: HashMap<Digest, u32>,
}

/// A tool's place in the index.
#[derive(Debug, Clone)]
pub(crate) struct Slot {
    pub(crate) tool: Tool,
    /// The place of the tool in the list that was indexed.
    pub(crate) position: u32,
    /// The lists of its terms.
    pub(crate) terms: Arc<[u32]>,
}

/// A tool that has a term.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Posting {
    pub(crate) slot: u32,
    /// The share of a score, without the term's rarity.
    pub(crate) impact: f32,
}

/// A found tool.
#[derive(Debug, Clone)]
pub struct Hit {
    /// The tool.
    pub tool: Tool,
    /// The score. Only comparable within one search.
    pub score: f32,
}

/// The place of a tool in the list for a need, for people.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// From 1; `None` if it has nothing in common with the need.
    pub rank: Option<usize>,
    /// The words of the need that the tool's texts contain, stemmed.
    pub matched: Vec<String>,
    /// The words that they do not contain, stemmed.
    pub missing: Vec<String>,
}

impl Index {
    /// An index of these tools, with the [chosen](Weights::CHOSEN) weights. Of several tools with
    /// the same texts only the first is indexed.
    pub fn new(tools: &[Tool]) -> Self {
        Self::with_weights(tools, Weights::CHOSEN)
    }

    /// The number of tools.
    pub fn len(&self) -> usize {
        self.by_texts.len()
    }

    /// Whether there is no tool.
    pub fn is_empty(&self) -> bool {
        self.by_texts.is_empty()
    }

    /// The best tools for a need, the best first, at most `limit`. Tools without anything in common
    /// with the need are not found. Equal scores are in the order of the indexed tools.
    ///
    /// Of the need, the first [`LONGEST_NEED`](crate::LONGEST_NEED) characters count.
    pub fn search(&self, need: &str, limit: usize) -> Vec<Hit> {
        self.search_among(need, limit, |_| true)
    }

    /// [`search`](Self::search) among the tools that a filter admits.
    pub fn search_among(
        &self,
        need: &str,
        limit: usize,
        admits: impl Fn(&Tool) -> bool,
    ) -> Vec<Hit> {
        let mut found = self.scored(&terms_of(need), admits);
        let better = |one: &Found<'_>, other: &Found<'_>| one.before(other);
        if limit < found.len() {
            found.select_nth_unstable_by(limit, better);
            found.truncate(limit);
        }
        found.sort_unstable_by(better);
        found
            .iter()
            .map(|found| Hit { tool: found.slot.tool.clone(), score: found.score })
            .collect()
    }

    /// The place of a tool in the whole list for a need. `None` if it is not indexed.
    pub fn standing(&self, need: &str, tool: &Tool) -> Option<Standing> {
        let number = self.slot_of(tool)?;
        let own = self.slots.get(number as usize)?.as_ref()?;
        let terms = terms_of(need);
        let found = self.scored(&terms, |_| true);
        let rank = found.iter().find(|found| found.slot.position == own.position).map(|mine| {
            found.iter().filter(|other| other.before(mine) == Ordering::Less).count() + 1
        });
        let has = |term: &Term| self.postings(term).iter().any(|posting| posting.slot == number);
        let (mut matched, mut missing) = (Vec::new(), Vec::new());
        for term in &terms {
            if let Term::Word(word) = term {
                if has(term) { &mut matched } else { &mut missing }.push(word.to_string());
            }
        }
        Some(Standing { rank, matched, missing })
    }

    /// All tools with a score, in no order.
    fn scored(&self, terms: &[Term], admits: impl Fn(&Tool) -> bool) -> Vec<Found<'_>> {
        let mut scores = vec![0.0_f32; self.slots.len()];
        let mut covered = vec![0.0_f32; self.slots.len()];
        let mut whole = 0.0_f32;
        for term in terms {
            let list = self.postings(term);
            let rarity = self.rarity(list.len());
            let is_word = matches!(term, Term::Word(_));
            if is_word {
                whole += rarity;
            }
            for posting in list {
                let slot = posting.slot as usize;
                if let (Some(score), Some(covered)) = (scores.get_mut(slot), covered.get_mut(slot))
                {
                    *score += rarity * posting.impact;
                    if is_word {
                        *covered += rarity;
                    }
                }
            }
        }
        let all = self.slots.iter().zip(scores).zip(covered);
        all.filter_map(|((slot, score), covered)| {
            let slot = slot.as_ref().filter(|slot| score > 0.0 && admits(&slot.tool))?;
            let share = if whole > 0.0 { covered / whole } else { 0.0 };
            Some(Found { slot, score: score * (1.0 + self.weights.coverage * share) })
        })
        .collect()
    }

    /// The tools that have a term.
    fn postings(&self, term: &Term) -> &[Posting] {
        let number = self.terms.get(term).and_then(|number| self.lists.get(*number as usize));
        number.map_or(&[], |list| list)
    }

    /// BM25's inverse document frequency. A term of no tool is rarest.
    fn rarity(&self, with_term: usize) -> f32 {
        let (all, with_term) = (self.len() as f32, with_term as f32);
        (1.0 + (all - with_term + 0.5).max(0.0) / (with_term + 0.5)).ln().powf(self.weights.rarity)
    }
}

/// A tool with a score.
struct Found<'a> {
    slot: &'a Slot,
    score: f32,
}

impl Found<'_> {
    /// `Less` if it is better, so that a sorted list begins with the best.
    fn before(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then(self.slot.position.cmp(&other.slot.position))
    }
}
