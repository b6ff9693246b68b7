//! Suggestions for unknown words.

pub use toolcrib_core::__internal::{nearest, quoted};

/// The help for an unknown word: the [nearest] known one, otherwise all known ones, at most 40.
/// `of` names them in the plural: `keys here`.
pub fn help<'a>(word: &str, of: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    const SHOWN: usize = 40;
    let candidates: Vec<&str> = candidates.into_iter().collect();
    if let Some(near) = nearest(word, candidates.iter().copied()) {
        return format!("did you mean {}?", quoted([near]));
    }
    let shown = quoted(candidates.iter().copied().take(SHOWN));
    let more = if candidates.len() > SHOWN { ", …" } else { "" };
    match candidates.len() {
        0 => format!("no {of} exist"),
        1 => format!("there is only {shown}"),
        _ => format!("the {of} are {shown}{more}"),
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
        assert_eq!(nearest("color", keys), None);
        let keys = ["user", "offered", "not_offered"];
        assert_eq!(nearest("usr", keys), Some("user"));
        assert_eq!(nearest("offer", keys), Some("offered"));
        assert_eq!(nearest("Not_Offered", keys), Some("not_offered"));
        assert_eq!(nearest("reply", keys), None);
        assert_eq!(nearest("", keys), None);
    }

    #[test]
    fn without_a_near_word_the_help_lists_some_of_what_there_is() {
        assert_eq!(help("x", "keys", []), "no keys exist");
        assert_eq!(help("x", "keys", ["a\u{1b}b"]), "there is only `a\\u{1b}b`");
        assert_eq!(help("x", "keys", ["one", "two"]), "the keys are `one`, `two`");
        let many = ["word"; 41];
        assert!(help("x", "keys", many).ends_with("`word`, `word`, …"));
    }
}
