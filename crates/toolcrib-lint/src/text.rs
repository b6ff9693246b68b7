//! Displays and compares texts.

use std::{collections::BTreeSet, fmt::Write as _};

pub(crate) use toolcrib_core::__internal::counted as count;
use toolcrib_core::__internal::is_hidden;

/// A text without hidden characters and line breaks: invisible characters are shown as `\u{…}`.
/// Emoji that contain an invisible joiner are split.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => shown.push_str("\\n"),
            '\t' => shown.push_str("\\t"),
            _ if is_hidden(None, c, None) => {
                let _ = write!(shown, "{}", c.escape_unicode());
            }
            _ => shown.push(c),
        }
    }
    shown
}

/// The beginning of a text, [`visible`] and in quotes.
pub(crate) fn quoted(text: &str) -> String {
    const LONGEST: usize = 60;
    format!("\"{}\"", cut(text, LONGEST))
}

/// A name, [`visible`] and in backticks.
pub(crate) fn name(text: &str) -> String {
    const LONGEST: usize = 100;
    format!("`{}`", cut(text, LONGEST))
}

/// A key as part of a path: a long one is shortened, since all nested paths contain it.
pub(crate) fn segment(key: &str) -> String {
    const LONGEST: usize = 64;
    cut(key, LONGEST)
}

fn cut(text: &str, longest: usize) -> String {
    // The displayed form is never shorter than its source.
    let begin: String = text.chars().take(longest + 1).collect();
    let shown = visible(&begin);
    if shown.chars().count() <= longest {
        return shown;
    }
    let mut cut: String = shown.chars().take(longest.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

/// The first few of many, with commas, and the number of further ones.
pub(crate) fn some_of<T: AsRef<str>>(all: &[T]) -> String {
    const SHOWN: usize = 5;
    let shown: Vec<&str> = all.iter().take(SHOWN).map(AsRef::as_ref).collect();
    match all.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// The words of a name: `getUserName`, `get_user_name` and `get-user.name` have the same.
pub(crate) fn name_words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut last_is_small = false;
    for c in name.chars() {
        let begins = c.is_uppercase() && last_is_small;
        if begins || !c.is_alphanumeric() {
            words.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
        last_is_small = c.is_lowercase() || c.is_numeric();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The words of a text, in lower case. In scripts without spaces between words, each character is
/// one.
pub(crate) fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric()).flat_map(|run| {
        let mut words = vec![String::new()];
        for c in run.chars() {
            if is_ideograph(c) {
                words.push(c.to_string());
                words.push(String::new());
            } else if let Some(word) = words.last_mut() {
                word.extend(c.to_lowercase());
            }
        }
        words.retain(|word| !word.is_empty());
        words
    })
}

/// Whether a character counts as about a word: Chinese, Japanese, Korean.
pub(crate) fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Words without information about a tool.
const STOP_WORDS: [&str; 32] = [
    "a", "an", "and", "any", "are", "as", "at", "be", "by", "can", "for", "from", "given", "in",
    "into", "is", "it", "its", "of", "on", "or", "that", "the", "this", "to", "tool", "use",
    "used", "using", "was", "which", "with",
];

/// The informative words of a text, without the endings of plurals and verbs.
pub(crate) fn telling_words(text: &str) -> BTreeSet<String> {
    // Later words do not distinguish tools.
    const MOST: usize = 300;
    words(text)
        .filter(|word| !STOP_WORDS.contains(&word.as_str()))
        .map(|w| stem(&w))
        .take(MOST)
        .collect()
}

/// A word without the `s` of a plural or a verb.
pub(crate) fn stem(word: &str) -> String {
    let cut = match word.strip_suffix("ies") {
        Some(stem) if stem.len() > 1 => return format!("{stem}y"),
        _ => word.strip_suffix('s').filter(|stem| stem.len() > 2 && !stem.ends_with('s')),
    };
    cut.unwrap_or(word).to_owned()
}

/// A text as a model may read it in spite of its spelling: in lower case, without invisible
/// characters, with letters instead of their look-alikes, and with single blanks.
pub(crate) fn folded(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_whitespace() {
            if !folded.ends_with(' ') {
                folded.push(' ');
            }
        } else if !is_hidden(None, c, None) {
            folded.extend(plain_letter(c).to_lowercase().map(plain_letter));
        }
    }
    folded
}

/// The ASCII letter or quote that a character resembles; the character itself if there is none.
pub(crate) fn plain_letter(c: char) -> char {
    match c {
        '‘' | '’' => '\'',
        '“' | '”' => '"',
        c => toolcrib_core::__internal::plain_letter(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fall_into_words() {
        for name in ["getUserName", "get_user_name", "get-user.name", "Get User__Name"] {
            assert_eq!(name_words(name), ["get", "user", "name"], "{name}");
        }
        assert_eq!(name_words("v2Beta"), ["v2", "beta"]);
    }

    #[test]
    fn texts_are_shown_on_one_line_and_cut() {
        assert_eq!(quoted("a\n\u{202e}b"), r#""a\n\u{202e}b""#);
        assert_eq!(quoted(&"x".repeat(90)).chars().count(), 62);
        assert_eq!(visible("👩\u{200d}👧"), r"👩\u{200d}👧");
        assert_eq!(some_of(&["a", "b"]), "a, b");
        assert_eq!(some_of(&["a", "b", "c", "d", "e", "f", "g"]), "a, b, c, d, e and 2 more");
    }

    #[test]
    fn what_looks_alike_is_folded() {
        assert_eq!(folded("Іgn\u{200b}оre\n  ＡＬＬ"), "ignore all");
    }

    #[test]
    fn endings_go() {
        for (word, stemmed) in
            [("files", "file"), ("queries", "query"), ("class", "class"), ("is", "is")]
        {
            assert_eq!(stem(word), stemmed);
        }
    }
}
