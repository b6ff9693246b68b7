//! A need in words, as terms of the index.

use crate::{
    concepts::concepts,
    fields::Term,
    stem::stem,
    words::{joined, need_words, trigrams, words},
};

/// The limit of a need, in characters. The rest of a longer need is ignored.
pub const LONGEST_NEED: usize = 2_000;

/// Different terms of a need that are looked up. Each costs one pass over the tools that have it.
const MOST_TERMS: usize = 256;

/// Sentences of a need that are scored apart. The last one has the rest.
const MOST_SENTENCES: usize = 8;

/// Abbreviations that tools write out.
const ABBREVIATIONS: [(&str, [&str; 2]); 2] =
    [("pr", ["pull", "request"]), ("mr", ["merge", "request"])];

/// The terms of each sentence of a need, in its order and different within a sentence: words, their
/// concepts, the names that it may quote, and the trigrams of its words.
pub(crate) fn terms_of(need: &str) -> Vec<Vec<Term>> {
    let mut left = MOST_TERMS;
    let mut all: Vec<Vec<Term>> = Vec::new();
    for sentence in sentences(shortened(need)) {
        let terms = terms_of_sentence(sentence, left);
        left -= terms.len();
        all.push(terms);
    }
    all
}

/// The part of a need that counts.
pub(crate) fn shortened(need: &str) -> &str {
    let end = need.char_indices().nth(LONGEST_NEED).map(|(end, _)| end);
    end.and_then(|end| need.get(..end)).unwrap_or(need)
}

/// The sentences of a need.
fn sentences(need: &str) -> impl Iterator<Item = &str> {
    let mut ends = 1;
    need.split_inclusive(move |letter: char| {
        let is_end = ends < MOST_SENTENCES && matches!(letter, '.' | '?' | '!' | ';' | '\n');
        ends += usize::from(is_end);
        is_end
    })
}

fn terms_of_sentence(sentence: &str, most: usize) -> Vec<Term> {
    let mut all: Vec<Term> = Vec::new();
    let mut add = |term: Term| {
        if all.len() < most && !all.contains(&term) {
            all.push(term);
        }
    };
    // Also those of words that are not searched themselves, such as "where".
    for word in words(sentence).map(stem) {
        concepts(&word).iter().for_each(|concept| add(Term::Concept(*concept)));
    }
    for word in need_words(sentence).map(stem) {
        let long = ABBREVIATIONS.iter().find(|(short, _)| *short == word);
        for word in long.into_iter().flat_map(|(_, words)| words) {
            add(Term::Word(stem((*word).to_owned()).into()));
        }
        add(Term::Word(word.into()));
    }
    add(Term::WholeName(joined(sentence).into()));
    // A quoted name, such as `find_order`. Single words are too often part of a sentence.
    let names = sentence.split_whitespace().filter(|word| words(word).nth(1).is_some());
    names.for_each(|name| add(Term::WholeName(joined(name).into())));
    for word in words(sentence).filter(|word| word.len() > 3) {
        trigrams(&word).into_iter().for_each(|three| add(Term::Trigram(three)));
    }
    all
}
