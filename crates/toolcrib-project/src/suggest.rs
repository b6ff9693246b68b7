//! Suggestions for words that are not known.

/// The candidate that a word was probably meant to be.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let lower = word.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| {
            let other = candidate.to_lowercase();
            let alike = strsim::normalized_damerau_levenshtein(&lower, &other)
                // It knows abbreviations, such as `params` for `parameters`.
                .max(strsim::jaro_winkler(&lower, &other) - 0.2);
            (candidate, alike)
        })
        .filter(|(_, alike)| *alike >= 0.66)
        .max_by(|(_, a), (_, b)| a.total_cmp(b))
        .map(|(candidate, _)| candidate)
}

/// What to say of an unknown word: the nearest known one, else all of them. `of` names them in
/// the plural.
pub(crate) fn help<'a>(
    word: &str,
    of: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> String {
    const SHOWN: usize = 20;
    let candidates: Vec<&str> = candidates.into_iter().collect();
    if let Some(near) = nearest(word, candidates.iter().copied()) {
        return format!("did you mean `{near}`?");
    }
    let shown: Vec<String> = candidates
        .iter()
        .take(SHOWN)
        .map(|candidate| format!("`{candidate}`"))
        .collect();
    let more = if candidates.len() > SHOWN {
        ", …"
    } else {
        ""
    };
    match shown.as_slice() {
        [] => format!("there are no {of}"),
        [only] => format!("there is only {only}"),
        _ => format!("the {of} are {}{more}", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_near_and_another_word_is_not() {
        let keys = ["description", "params", "read_only", "statements"];
        assert_eq!(nearest("desciption", keys), Some("description"));
        assert_eq!(nearest("parameters", keys), Some("params"));
        assert_eq!(nearest("Read_Only", keys), Some("read_only"));
        assert_eq!(nearest("colour", keys), None);
    }
}
