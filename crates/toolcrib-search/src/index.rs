use std::{cmp::Ordering, sync::Arc};

use toolcrib_core::Tool;

use crate::{
    fields::Term,
    need::terms_of,
    segment::{Posting, Segment},
    stem::stem,
    weights::Weights,
    words::need_words,
};

/// An index of tools, immutable and shared.
///
/// It consists of two segments: a large one that [updates](Self::updated) share, and a small one of
/// the tools that are not in it. Both are searched as one: the scores are those of a new index.
#[derive(Debug, Clone)]
pub struct Index {
    pub(crate) weights: Weights,
    pub(crate) base: Arc<Segment>,
    pub(crate) recent: Arc<Segment>,
    /// The tools of the base, then the recent ones. `None`: it is no longer in the list.
    pub(crate) slots: Vec<Option<Slot>>,
    /// For each list of the base, the number of its tools that are gone.
    pub(crate) gone: Vec<u32>,
    /// The number of tools.
    pub(crate) count: usize,
}

/// A tool's place in the index.
#[derive(Debug, Clone)]
pub(crate) struct Slot {
    pub(crate) tool: Tool,
    /// The place of the tool in the list that was indexed.
    pub(crate) position: u32,
}

/// A tool that a search found.
#[derive(Debug, Clone)]
pub struct Hit {
    /// The tool.
    pub tool: Tool,
    /// The score. Only comparable within one search.
    pub score: f32,
}

/// The place of a tool in the list for a need, for people.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranking {
    /// From 1; `None` if it has nothing in common with the need.
    pub rank: Option<usize>,
    /// The words of the need that the tool's texts contain, in lower case.
    pub matched: Vec<String>,
    /// The words that they do not contain.
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
        self.count
    }

    /// Whether there is no tool.
    pub fn is_empty(&self) -> bool {
        self.count == 0
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
        Self::best(self.scored(&terms_of(need), admits), limit)
    }

    /// The best of these, in order.
    pub(crate) fn best(mut found: Vec<ScoredTool<'_>>, limit: usize) -> Vec<Hit> {
        let better = |one: &ScoredTool<'_>, other: &ScoredTool<'_>| one.before(other);
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
    pub fn ranking(&self, need: &str, tool: &Tool) -> Option<Ranking> {
        let number = self.slot_of(tool)?;
        let own = self.slots.get(number)?.as_ref()?;
        let sentences = terms_of(need);
        let found = self.scored(&sentences, |_| true);
        let rank = found.iter().find(|found| found.slot.position == own.position).map(|mine| {
            found.iter().filter(|other| other.before(mine) == Ordering::Less).count() + 1
        });
        let has = |term: &Term| self.postings(term).any(|(slot, _)| slot == number);
        let (mut matched, mut missing) = (Vec::new(), Vec::new());
        for word in need_words(need) {
            let term = Term::Word(stem(word.clone()).into());
            // Words beyond the limit of a need are not compared.
            if sentences.iter().any(|terms| terms.contains(&term)) {
                let list = if has(&term) { &mut matched } else { &mut missing };
                if !list.contains(&word) {
                    list.push(word);
                }
            }
        }
        Some(Ranking { rank, matched, missing })
    }

    /// All tools with a score, in no order. The scores of the sentences are summed.
    pub(crate) fn scored(
        &self,
        sentences: &[Vec<Term>],
        admits: impl Fn(&Tool) -> bool,
    ) -> Vec<ScoredTool<'_>> {
        let mut scores = vec![0.0_f32; self.slots.len()];
        for terms in sentences {
            let rarities: Vec<f32> =
                terms.iter().map(|term| self.rarity(self.frequency(term))).collect();
            let words = terms.iter().zip(&rarities).filter(|(term, _)| term.is_word());
            let length: f32 = words.map(|(_, rarity)| rarity).sum();
            // A long sentence has more to match, and says no more about the tool.
            let scale = length.max(1.0).powf(-self.weights.sentences);
            for (term, rarity) in terms.iter().zip(rarities) {
                for (slot, impact) in self.postings(term) {
                    if let Some(score) = scores.get_mut(slot) {
                        *score += scale * rarity * impact;
                    }
                }
            }
        }
        let all = self.slots.iter().zip(scores);
        all.filter_map(|(slot, score)| {
            let slot = slot.as_ref().filter(|slot| score > 0.0 && admits(&slot.tool))?;
            Some(ScoredTool { slot, score })
        })
        .collect()
    }

    /// The slots of the tools that have a term, each with its share of a score. Some are of tools
    /// that are gone.
    fn postings(&self, term: &Term) -> impl Iterator<Item = (usize, f32)> + use<'_> {
        let offset = self.base.len();
        let of = |offset: usize| {
            move |posting: &Posting| (posting.slot as usize + offset, posting.impact)
        };
        let recent = self.recent.postings(term).iter().map(of(offset));
        self.base.postings(term).iter().map(of(0)).chain(recent)
    }

    /// The number of tools that have a term.
    fn frequency(&self, term: &Term) -> usize {
        let of_base = self.base.list(term).map_or(0, |(number, list)| {
            let gone = self.gone.get(number as usize).copied().unwrap_or_default();
            list.len().saturating_sub(gone as usize)
        });
        of_base + self.recent.list(term).map_or(0, |(_, list)| list.len())
    }

    /// BM25's inverse document frequency. A term of no tool is rarest.
    fn rarity(&self, with_term: usize) -> f32 {
        let (all, with_term) = (self.len() as f32, with_term as f32);
        (1.0 + (all - with_term + 0.5).max(0.0) / (with_term + 0.5)).ln().powf(self.weights.rarity)
    }
}

pub(crate) struct ScoredTool<'a> {
    pub(crate) slot: &'a Slot,
    pub(crate) score: f32,
}

impl ScoredTool<'_> {
    /// `Less` if it is better, so that a sorted list begins with the best.
    fn before(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then(self.slot.position.cmp(&other.slot.position))
    }
}
