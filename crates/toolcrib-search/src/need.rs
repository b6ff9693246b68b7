//! A need in words, as terms of the index.

use crate::{
    fields::Term,
    stem::stem,
    words::{joined, need_words, trigrams, words},
};

/// In characters. The rest of a longer need is ignored.
pub const LONGEST_NEED: usize = 2_000;

/// Different terms of a need that are looked up. Each costs one pass over the tools that have it.
const MOST_TERMS: usize = 256;

/// The different terms of a need, in its order: words, the names that it may quote, and the
/// trigrams of its words.
pub(crate) fn terms_of(need: &str) -> Vec<Term> {
    let need = match need.char_indices().nth(LONGEST_NEED) {
        Some((end, _)) => need.get(..end).unwrap_or(need),
        None => need,
    };
    let mut all: Vec<Term> = Vec::new();
    let mut add = |term: Term| {
        if all.len() < MOST_TERMS && !all.contains(&term) {
            all.push(term);
        }
    };
    need_words(need).for_each(|word| add(Term::Word(stem(word).into())));
    add(Term::WholeName(joined(need).into()));
    // A quoted name, such as `find_order`. Single words are too often part of a sentence.
    let names = need.split_whitespace().filter(|word| words(word).nth(1).is_some());
    names.for_each(|name| add(Term::WholeName(joined(name).into())));
    for word in words(need).filter(|word| word.len() > 3) {
        trigrams(&word).into_iter().for_each(|three| add(Term::Trigram(three)));
    }
    all
}
