//! Suggestions for words that were mistyped.

/// The candidate that somebody who wrote `word` most likely meant. Letter case counts for
/// nothing; up to a third of the letters may be wrong, else there is no suggestion.
pub(super) fn nearest<'c>(
    word: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    let word = word.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| {
            let distance = strsim::damerau_levenshtein(&word, &candidate.to_lowercase());
            (distance, candidate)
        })
        .filter(|(distance, candidate)| {
            distance * 3 <= word.chars().count().max(candidate.chars().count())
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn only_a_near_word_is_suggested() {
        let keys = ["user", "offered", "not_offered"];
        assert_eq!(nearest("usr", keys), Some("user"));
        assert_eq!(nearest("offer", keys), Some("offered"));
        assert_eq!(nearest("Not_Offered", keys), Some("not_offered"));
        assert_eq!(nearest("reply", keys), None);
        assert_eq!(nearest("", keys), None);
    }
}
