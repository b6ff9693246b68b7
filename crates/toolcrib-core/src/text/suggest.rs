//! Suggestions for mistyped names.

/// `did you mean …?` with the nearest name, if one is near enough.
pub(crate) fn did_you_mean<'a>(
    word: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    nearest(word, names, 1).first().map(|name| format!("did you mean `{name}`?"))
}

/// The names that are near enough to a word, the nearest first, at most so many. The work grows with
/// the number of names and the length of the word.
pub fn nearest<'a>(
    word: &str,
    names: impl IntoIterator<Item = &'a str>,
    most: usize,
) -> Vec<&'a str> {
    let word = word.to_lowercase();
    let mut near: Vec<_> = names
        .into_iter()
        .map(|name| (name, strsim::normalized_damerau_levenshtein(&word, name)))
        .filter(|(_, alike)| *alike >= 0.66)
        .collect();
    // Stable: equally near names stay in their order.
    near.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    near.into_iter().take(most).map(|(name, _)| name).collect()
}
