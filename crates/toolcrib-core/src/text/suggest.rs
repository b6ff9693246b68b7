//! Suggestions for mistyped names.

use strsim::{jaro_winkler, normalized_damerau_levenshtein};

/// Longer words are compared with nothing, in bytes: the work grows with the product of the lengths.
const LONGEST: usize = 128;

/// `did you mean …?` with the nearest name, if one is near enough.
pub(crate) fn did_you_mean<'a>(
    word: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    nearest_names(word, names, 1).first().map(|name| format!("did you mean `{name}`?"))
}

/// The nearest word, if one is near enough; case-insensitive. It may be an abbreviation, such as `params`
/// for `parameters`. Words of more than 128 bytes have no near word.
pub fn nearest<'a>(word: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let alike = |word: &str, other: &str| {
        normalized_damerau_levenshtein(word, other).max(jaro_winkler(word, other) - 0.2)
    };
    near_by(alike, word, words).first().copied()
}

/// The names that a slip separates from a word, the nearest first, at most this number. Names with the same
/// prefix, as those of one source, are not near for that, as they are to [`nearest`].
pub fn nearest_names<'a>(
    word: &str,
    names: impl IntoIterator<Item = &'a str>,
    most: usize,
) -> Vec<&'a str> {
    let mut near = near_by(normalized_damerau_levenshtein, word, names);
    near.truncate(most);
    near
}

fn near_by<'a>(
    alike: impl Fn(&str, &str) -> f64,
    word: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Vec<&'a str> {
    if word.len() > LONGEST {
        return Vec::new();
    }
    let word = word.to_lowercase();
    let mut near: Vec<_> = names
        .into_iter()
        .filter(|name| name.len() <= LONGEST)
        .map(|name| (name, alike(&word, &name.to_lowercase())))
        .filter(|(_, alike)| *alike >= 0.66)
        .collect();
    // Stable: equally near names stay in their order.
    near.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    near.into_iter().map(|(name, _)| name).collect()
}

/// Words in backticks, separated by commas. Unprintable characters are escaped, because words may
/// come from untrusted files and messages go to terminals.
pub fn quoted<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words = words.into_iter().map(|word| format!("`{}`", word.escape_debug()));
    words.collect::<Vec<_>>().join(", ")
}
