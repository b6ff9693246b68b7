//! Suggestions for mistyped names.

/// `did you mean …?` with the nearest name, if one is near enough.
pub(crate) fn did_you_mean<'a>(
    word: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    let word = word.to_lowercase();
    names
        .into_iter()
        .map(|name| (name, strsim::normalized_damerau_levenshtein(&word, name)))
        .filter(|(_, alike)| *alike >= 0.66)
        // The first of equally near names.
        .reduce(|best, next| if next.1 > best.1 { next } else { best })
        .map(|(name, _)| format!("did you mean `{name}`?"))
}
