//! Blanks that push text out of the visible part of a window.

use std::{borrow::Cow, ops::Range};

/// The limits of what still is layout: blanks between two words of a line, blanks at the beginning of a
/// line or on an empty one, as a template literal in indented code has them, and line feeds in a row.
const MOST_BLANKS: usize = 40;
const MOST_INDENTATION: usize = 120;
const MOST_LINE_FEEDS: usize = 8;

/// The runs of blanks in a text that are too long for layout and have text after them.
pub fn padding(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut run: Option<usize> = None;
    let (mut line_feeds, mut line, mut longest) = (0, 0, 0);
    for (at, c) in text.char_indices() {
        if c.is_whitespace() {
            run.get_or_insert(at);
            match c {
                '\n' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => {
                    (line_feeds, line) = (line_feeds + 1, 0);
                }
                _ => line += 1,
            }
            longest = longest.max(line);
        } else if let Some(start) = run.take() {
            let most = if line_feeds == 0 && start > 0 { MOST_BLANKS } else { MOST_INDENTATION };
            if line_feeds > MOST_LINE_FEEDS || longest > most {
                found.push(start..at);
            }
            (line_feeds, line, longest) = (0, 0, 0);
        }
    }
    found
}

/// A text with short gaps instead of its [`padding`]; borrowed if it has none.
pub(crate) fn without_padding(text: Cow<'_, str>) -> Cow<'_, str> {
    let found = padding(&text);
    if found.is_empty() {
        return text;
    }
    let mut tidy = String::with_capacity(text.len());
    let mut end = 0;
    for run in found {
        let blanks = text.get(run.clone()).unwrap_or_default();
        tidy.push_str(text.get(end..run.start).unwrap_or_default());
        tidy.push_str(match blanks.matches('\n').count() {
            0 => " ",
            1 => "\n",
            _ => "\n\n",
        });
        end = run.end;
    }
    tidy.push_str(text.get(end..).unwrap_or_default());
    tidy.into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_text_without_padding_has_the_same_words_and_no_padding(
            text in "([a-z]{1,3}|\n{1,12}|\n {0,130}|\t{0,45}|\u{3000}{0,50}|\r\n){0,20}"
        ) {
            let tidy = without_padding(text.as_str().into());
            prop_assert!(padding(&tidy).is_empty(), "{tidy:?}");
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            prop_assert_eq!(words(&tidy), words(&text));
        }
    }
}
