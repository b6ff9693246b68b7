//! Suggestions for mistyped names.

/// Longer words are compared with nothing, in bytes: the work grows with the product of the lengths.
const LONGEST: usize = 128;

/// `did you mean …?` with the nearest name, if one is near enough.
pub(crate) fn did_you_mean<'a>(
    word: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    nearest(word, names, 1).first().map(|name| format!("did you mean `{name}`?"))
}

/// The names that are near enough to a word, the nearest first, at most so many; case-insensitive. Words
/// of more than 128 bytes have no near name.
pub fn nearest<'a>(
    word: &str,
    names: impl IntoIterator<Item = &'a str>,
    most: usize,
) -> Vec<&'a str> {
    if word.len() > LONGEST {
        return Vec::new();
    }
    let word = word.to_lowercase();
    let mut near: Vec<_> = names
        .into_iter()
        .filter(|name| name.len() <= LONGEST)
        .map(|name| (name, likeness(&word, &name.to_lowercase())))
        .filter(|(_, alike)| *alike >= 0.66)
        .collect();
    // Stable: equally near names stay in their order.
    near.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    near.into_iter().take(most).map(|(name, _)| name).collect()
}

fn likeness(word: &str, name: &str) -> f64 {
    // The second recognizes abbreviations, such as `params` for `parameters`.
    strsim::normalized_damerau_levenshtein(word, name).max(strsim::jaro_winkler(word, name) - 0.2)
}

/// Words in backticks, separated by commas. Unprintable characters are escaped, because words may
/// come from untrusted files and messages go to terminals.
pub fn quoted<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words = words.into_iter().map(|word| format!("`{}`", word.escape_debug()));
    words.collect::<Vec<_>>().join(", ")
}
