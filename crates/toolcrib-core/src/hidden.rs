//! Invisible and look-alike characters.

use std::iter;

/// Whether a character, given its neighbors, is invisible to a reader but read by a model or
/// interpreted by a terminal: controls other than line feed and tab, zero-width and bidirectional
/// characters, the tag block, variation selectors. Characters that form an emoji, such as a joiner
/// between two or a selector after one, do not count as hidden.
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

/// The characters of a text, each with whether it [is hidden](is_hidden).
pub fn marked(text: &str) -> impl Iterator<Item = (char, bool)> {
    let mut last = None;
    let mut chars = text.chars().peekable();
    iter::from_fn(move || {
        let c = chars.next()?;
        let hidden = is_hidden(last, c, chars.peek().copied());
        last = Some(c);
        Some((c, hidden))
    })
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

/// The ASCII lower-case letter that a character of another script looks like; otherwise the
/// character itself.
pub fn plain_letter(c: char) -> char {
    match c {
        _ if c.is_ascii() => c,
        // Full-width forms.
        '\u{ff01}'..='\u{ff5e}' => {
            u32::from(c).checked_sub(0xfee0).and_then(char::from_u32).unwrap_or(c)
        }
        // Mathematical and enclosed letters.
        '\u{1d400}'..='\u{1d6a3}' => letter((u32::from(c) - 0x1d400) % 26),
        '\u{24b6}'..='\u{24e9}' => letter((u32::from(c) - 0x24b6) % 26),
        'а' | 'А' | 'α' | 'Α' => 'a',
        'В' | 'в' | 'Β' => 'b',
        'с' | 'С' | 'ϲ' => 'c',
        'ԁ' => 'd',
        'е' | 'Е' | 'Ε' => 'e',
        'һ' | 'Н' | 'н' | 'Η' => 'h',
        'і' | 'І' | 'ι' | 'Ι' | 'ı' => 'i',
        'ј' | 'Ј' => 'j',
        'К' | 'к' | '\u{212a}' | 'κ' | 'Κ' => 'k',
        'М' | 'м' | 'Μ' => 'm',
        'Ν' | 'ո' => 'n',
        'о' | 'О' | 'ο' | 'Ο' => 'o',
        'р' | 'Р' | 'ρ' | 'Ρ' => 'p',
        'ԛ' => 'q',
        'ѕ' | 'Ѕ' | 'ſ' => 's',
        'Т' | 'т' | 'Τ' | 'τ' => 't',
        'υ' | 'ս' => 'u',
        'ν' => 'v',
        'ԝ' => 'w',
        'х' | 'Х' | 'Χ' => 'x',
        'у' | 'У' | 'Υ' => 'y',
        'Ζ' => 'z',
        _ => c,
    }
}

fn letter(position: u32) -> char {
    u32::from('a').checked_add(position).and_then(char::from_u32).unwrap_or('a')
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
