//! Characters that a reader does not see.

/// Whether a character between two others is one that a reader does not see, but a model reads or
/// a terminal obeys: controls other than line feed and tab, zero-width and bidirectional
/// characters, the tag block, variation selectors. What only makes an emoji what it is, a joiner
/// between two or a selector behind one, is not hidden.
pub fn is_hidden(last: Option<char>, c: char, next: Option<char>) -> bool {
    let unseen = (c.is_control() && !matches!(c, '\n' | '\t'))
        || matches!(
            c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
                | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
                | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}'
        );
    unseen && !belongs_to_emoji(last, c, next)
}

fn belongs_to_emoji(last: Option<char>, c: char, next: Option<char>) -> bool {
    let is_keycap = |c: char| matches!(c, '0'..='9' | '#' | '*');
    match c {
        '\u{fe0e}' | '\u{fe0f}' => {
            last.is_some_and(is_emoji) || (next == Some('\u{20e3}') && last.is_some_and(is_keycap))
        }
        '\u{200d}' => {
            last.is_some_and(|c| is_emoji(c) || c == '\u{fe0f}') && next.is_some_and(is_emoji)
        }
        _ => false,
    }
}

fn is_emoji(c: char) -> bool {
    matches!(
        c,
        '©' | '®' | '‼' | '⁉' | '™' | 'ℹ' | '\u{2190}'..='\u{2bff}' | '\u{3030}' | '\u{303d}'
            | '\u{3297}' | '\u{3299}' | '\u{1f000}'..='\u{1faff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visible(text: &str) -> String {
        let chars: Vec<char> = text.chars().collect();
        let at = |position: Option<usize>| position.and_then(|p| chars.get(p).copied());
        let seen = chars.iter().enumerate().filter(|(position, c)| {
            !is_hidden(at(position.checked_sub(1)), **c, at(Some(position + 1)))
        });
        seen.map(|(_, c)| *c).collect()
    }

    #[test]
    fn what_nobody_sees_goes_and_emoji_stay() {
        for text in ["plain\n\ttext", "👩‍👩‍👧", "❤️‍🔥", "1️⃣", "naïve 中文"]
        {
            assert_eq!(visible(text), text);
        }
        assert_eq!(visible("a\u{202e}b\u{e0041}c\u{200d}d\u{fe0f}\u{7}"), "abcd");
        assert_eq!(visible("❤\u{fe0f}\u{fe0f}\u{fe01}"), "❤\u{fe0f}");
    }
}
