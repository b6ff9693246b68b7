/// How much a match counts.
///
/// The default was chosen by `cargo xtask search-bench --choose` on BFCL's `live_multiple`, and on
/// no other data. The requests of BFCL name neither servers nor tools, so the weights of
/// [`Field::Server`](crate::Field::Server) and of the whole name were not chosen by it.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Weights {
    /// Weight of a word of each [`Field`](crate::Field), in their order.
    pub fields: [f32; 6],
    /// How much a long field is discounted: 0 not at all, 1 in proportion to its length.
    pub discounts: [f32; 6],
    /// BM25's k1: how soon repetitions of a word count no more.
    pub saturation: f32,
    /// Weight of three letters in a row of the name.
    pub trigrams: f32,
    /// Weight of the whole name.
    pub whole_name: f32,
    /// How much a tool gains that has many words of the need.
    pub coverage: f32,
    /// The power of a word's rarity.
    pub rarity: f32,
}

/// Lengths of the fields of a usual tool, in words. Constants instead of the catalog's average: a
/// change of some tools then leaves the scores of the others.
pub(crate) const USUAL_LENGTHS: [f32; 6] = [3.0, 1.0, 10.0, 10.0, 8.0, 40.0];

impl Weights {
    /// The weights of an [`Index::new`](crate::Index::new).
    pub const CHOSEN: Self = Self {
        fields: [1.75, 1.0, 2.7, 1.58, 6.35, 0.9],
        discounts: [1.0, 0.5, 0.145, 0.9, 0.05, 0.43],
        saturation: 1.035,
        trigrams: 0.075,
        whole_name: 4.0,
        coverage: 0.353,
        rarity: 0.75,
    };
}

impl Default for Weights {
    fn default() -> Self {
        Self::CHOSEN
    }
}
