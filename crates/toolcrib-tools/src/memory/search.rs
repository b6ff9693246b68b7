//! Searches: words of a query, paragraphs of topics.

use std::{collections::HashSet, sync::Arc};

use super::MOST_WORDS;

/// The distinct words of a query, in lower case.
pub(super) fn words(query: &str) -> Vec<Arc<str>> {
    let mut known = HashSet::new();
    let words = query.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let words = words.map(str::to_lowercase).filter(|word| known.insert(word.clone()));
    words.take(MOST_WORDS).map(Into::into).collect()
}

/// A paragraph with some of the words.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Paragraph<'a> {
    /// The number of distinct words in it.
    pub(super) score: usize,
    /// Its first line, from 1.
    pub(super) line: usize,
    pub(super) text: &'a str,
}

/// The paragraphs with at least one of the words; a word also matches the beginning of a longer one.
pub(super) fn paragraphs<'a>(text: &'a str, words: &[Arc<str>]) -> Vec<Paragraph<'a>> {
    let mut found = Vec::new();
    let mut line = 1;
    for text in text.split("\n\n") {
        let in_it: HashSet<String> =
            text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase).collect();
        let is_in = |word: &&Arc<str>| in_it.iter().any(|known| known.starts_with(&***word));
        let score = words.iter().filter(is_in).count();
        if score > 0 {
            let blank = text.len() - text.trim_start_matches('\n').len();
            found.push(Paragraph { score, line: line + blank, text: text.trim() });
        }
        line += text.matches('\n').count() + 2;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_have_their_lines_and_the_number_of_their_words() {
        let text = "# Garden\n\nRoses like\nthe shade.\n\n\nNothing.\n\nA rose, in SHADE: good.";
        let found = paragraphs(text, &words("shade rose ROSE"));
        let found: Vec<_> = found.iter().map(|one| (one.score, one.line)).collect();
        assert_eq!(found, [(2, 3), (2, 9)]);
        assert_eq!(words("  \"NOT\" a/b* "), ["not".into(), "a".into(), "b".into()]);
    }
}
