/// How much a match counts.
///
/// The default was chosen by `cargo xtask search-bench --choose` over several catalogs, each of which
/// was also left out: see `docs/tool-search.md`. Needs seldom quote a tool, so the weight of the whole
/// name was not chosen by it.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Weights {
    /// Weight of a word of each [`Field`](crate::Field), in their order.
    pub fields: [f32; 6],
    /// How much a long field is discounted: 0 not at all, 1 in proportion to its length.
    pub discount: f32,
    /// BM25's k1: how soon repetitions of a word count no more.
    pub saturation: f32,
    /// Weight of three letters in a row of the name.
    pub trigrams: f32,
    /// Weight of another word for the same thing. The word itself has it too.
    pub synonyms: f32,
    /// Weight of the whole name.
    pub whole_name: f32,
    /// How much less a word counts in a long sentence: 0 not at all, 1 in proportion to the rarity of
    /// all its words.
    pub sentences: f32,
    /// The power of a word's rarity.
    pub rarity: f32,
}

/// Lengths of the fields of a usual tool, in words. Constants instead of the catalog's average: a
/// change of some tools then leaves the scores of the others.
pub(crate) const USUAL_LENGTHS: [f32; 6] = [3.0, 1.0, 10.0, 10.0, 8.0, 40.0];

impl Weights {
    /// The weights of an [`Index::new`](crate::Index::new).
    pub const CHOSEN: Self = Self {
        fields: [3.0, 1.0, 3.0, 2.0, 2.0, 1.0],
        discount: 0.5,
        saturation: 1.0,
        trigrams: 0.06,
        synonyms: 0.4,
        whole_name: 4.0,
        sentences: 0.2,
        rarity: 0.75,
    };
}

impl Default for Weights {
    fn default() -> Self {
        Self::CHOSEN
    }
}
