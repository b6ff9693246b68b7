//! Splits text into words.

use std::collections::HashSet;
use std::sync::LazyLock;

use crate::stem::stem;

/// In characters. Longer runs are data, such as keys and digests, not words.
const LONGEST_WORD: usize = 40;

/// In bytes.
const LONGEST_STOP_WORD: usize = 6;

/// Words without a meaning for a search.
static STOP_WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    "a an and any are as at be been but by can could do does for from had has have he her here \
     him his how i if in into is it its just let like may me might my need of on or our out over \
     please she should so some such than that the their them then there these they this those to \
     too up us use used using want was we were what when where which while who will with would \
     you your"
        .split_whitespace()
        .collect()
});

/// The words of a text in lower case, in order: split at punctuation and where the case changes
/// (`getHTTPPage` is `get`, `http`, `page`).
pub(crate) fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|letter: char| !letter.is_alphanumeric()).flat_map(split_at_case).filter_map(
        |word| {
            let is_short = word.chars().nth(LONGEST_WORD).is_none();
            is_short.then(|| lower(word))
        },
    )
}

/// The stemmed words that a search compares.
pub(crate) fn terms(text: &str) -> impl Iterator<Item = String> + '_ {
    told_words(text).map(stem)
}

/// The words of a text that a search compares and that a name does not have, as they are written
/// except for their case. `get_pull_request` has the words of "pull requests".
///
/// ```
/// let need = toolcrib_search::without_words_of("Gets one pull request with its diff.", "get_pull_request");
/// assert_eq!(need, "one diff");
/// ```
pub fn without_words_of(text: &str, name: &str) -> String {
    let of_name: HashSet<String> = words(name).map(stem).collect();
    let others = told_words(text).filter(|word| !of_name.contains(&stem(word.clone())));
    others.collect::<Vec<_>>().join(" ")
}

/// The words that a search compares, not stemmed.
pub(crate) fn told_words(text: &str) -> impl Iterator<Item = String> + '_ {
    words(text).filter(|word| !is_stop_word(word))
}

/// The words of a need, not stemmed: the split ones, and names such as `GitLab` whole too, since a
/// server is called `gitlab`.
pub(crate) fn need_words(need: &str) -> impl Iterator<Item = String> + '_ {
    let whole = need
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|run| split_at_case(run).len() > 1 && run.chars().nth(LONGEST_WORD).is_none());
    told_words(need).chain(whole.map(lower))
}

/// The letters and digits of a name, in lower case.
pub(crate) fn joined(name: &str) -> String {
    name.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Every three letters in a row, and the ends of the word.
pub(crate) fn trigrams(word: &str) -> Vec<[char; 3]> {
    let letters: Vec<char> = [' '].into_iter().chain(word.chars()).chain([' ']).collect();
    letters.windows(3).filter_map(|three| three.try_into().ok()).collect()
}

fn is_stop_word(word: &str) -> bool {
    word.len() <= LONGEST_STOP_WORD && STOP_WORDS.contains(word)
}

fn lower(word: &str) -> String {
    // The usual case, and a tenth of the time.
    if word.is_ascii() { word.to_ascii_lowercase() } else { word.to_lowercase() }
}

fn split_at_case(run: &str) -> Vec<&str> {
    // Most runs have nothing to split.
    if !run.chars().skip(1).any(char::is_uppercase) {
        return if run.is_empty() { Vec::new() } else { vec![run] };
    }
    let letters: Vec<(usize, char)> = run.char_indices().collect();
    let mut parts = Vec::new();
    let mut start = 0;
    for (position, pair) in letters.windows(2).enumerate() {
        let [(_, before), (at, letter)] = *pair else { continue };
        let ends_capitals = before.is_uppercase()
            && letter.is_uppercase()
            && letters.get(position + 2).is_some_and(|(_, next)| next.is_lowercase());
        if (before.is_lowercase() && letter.is_uppercase()) || ends_capitals {
            parts.extend(run.get(start..at));
            start = at;
        }
    }
    parts.extend(run.get(start..).filter(|rest| !rest.is_empty()));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<String> {
        words(text).collect()
    }

    #[test]
    fn identifiers_are_split_at_case_and_punctuation() {
        assert_eq!(split("getHTTPPage"), ["get", "http", "page"]);
        assert_eq!(split("list_pull-requests.v2"), ["list", "pull", "requests", "v2"]);
        assert_eq!(split("IDs of S3Buckets"), ["i", "ds", "of", "s3buckets"]);
        assert_eq!(split("Größe ändern"), ["größe", "ändern"]);
    }

    #[test]
    fn long_runs_are_no_words() {
        assert_eq!(split(&format!("key {}", "f".repeat(64))), ["key"]);
    }
}
