//! Lines of a width, broken between words.

use unicode_width::UnicodeWidthStr;

const RESET: &str = "\u{1b}[0m";

/// Breaks styled text between words, as it arrives: [`push`](Self::push) a piece, then
/// [`take`](Self::take) the output. A word is written when it is complete. A word that is longer
/// than a line is left to the terminal, from which it is copied without a break.
#[derive(Debug, Default)]
pub(super) struct Wrap {
    /// The beginning of continued lines, and its columns.
    hang: String,
    hang_width: usize,
    /// The columns that are filled on the current line.
    column: usize,
    /// The spaces before the word.
    gap: usize,
    /// The word with its escape sequences, and without.
    word: String,
    visible: String,
    /// The escape sequence that is being read.
    escape: String,
    /// The style of the text, and of the end of the word. Each word begins and ends its style: the
    /// spinner may be drawn between two, and a continued line begins without style.
    style: String,
    word_style: String,
    out: String,
}

impl Wrap {
    /// Sets the beginning of the lines on which a line is continued.
    pub(super) fn hang(&mut self, hang: impl Into<String>) {
        self.hang = hang.into();
        self.hang_width = self.hang.width();
    }

    /// The filled columns of the current line.
    pub(super) fn column(&self) -> usize {
        self.column
    }

    /// Adds text for lines of this width.
    pub(super) fn push(&mut self, text: &str, width: usize) {
        for c in text.chars() {
            self.add(c, width);
        }
    }

    fn add(&mut self, c: char, width: usize) {
        match c {
            '\u{1b}' => self.escape.push(c),
            _ if !self.escape.is_empty() => {
                self.escape.push(c);
                if c.is_ascii_alphabetic() {
                    match std::mem::take(&mut self.escape) {
                        reset if reset == RESET => self.style.clear(),
                        style => self.style.push_str(&style),
                    }
                }
            }
            '\n' => {
                self.end_word(width);
                self.out.push('\n');
                (self.column, self.gap) = (0, 0);
            }
            ' ' | '\t' => {
                self.end_word(width);
                self.gap += if c == '\t' { 4 } else { 1 };
            }
            _ => {
                if is_ideograph(c) {
                    self.end_word(width);
                }
                if self.word_style != self.style {
                    self.end_style();
                    self.word.push_str(&self.style);
                    self.word_style.clone_from(&self.style);
                }
                self.word.push(c);
                self.visible.push(c);
            }
        }
    }

    /// Writes the word that has begun.
    pub(super) fn end_word(&mut self, width: usize) {
        if self.visible.is_empty() {
            return;
        }
        self.end_style();
        let word_width = self.visible.width();
        let is_over = self.column + self.gap + word_width > width;
        // On a continued line it would begin no earlier.
        if is_over && self.column > 0 && self.column + self.gap > self.hang_width {
            self.out.push('\n');
            self.out.push_str(&self.hang);
            (self.column, self.gap) = (self.hang_width, 0);
        }
        self.out.extend(std::iter::repeat_n(' ', self.gap));
        self.out.push_str(&self.word);
        self.column += self.gap + word_width;
        if self.column > width {
            // The terminal has broken it.
            self.column %= width.max(1);
        }
        self.gap = 0;
        self.word.clear();
        self.visible.clear();
    }

    fn end_style(&mut self) {
        if !std::mem::take(&mut self.word_style).is_empty() {
            self.word.push_str(RESET);
        }
    }

    /// The output so far.
    pub(super) fn take(&mut self) -> String {
        std::mem::take(&mut self.out)
    }
}

/// Whether a line may be broken before a character that no space precedes.
fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3041}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7a3}' | '\u{20000}'..='\u{3ffff}')
}

/// Whole lines for a terminal of this width. Continued lines begin at the last column of a line
/// that looks like a table's row, else `indent` columns after the line's own beginning.
pub(super) fn wrapped(text: &str, width: usize, indent: impl Fn(&str) -> usize) -> String {
    let mut lines = Vec::new();
    for line in text.split('\n') {
        let mut wrap = Wrap::default();
        wrap.hang(" ".repeat(hanging(line, width, indent(line))));
        wrap.push(line, width);
        wrap.end_word(width);
        lines.push(wrap.take());
    }
    lines.join("\n")
}

fn hanging(line: &str, width: usize, more: usize) -> usize {
    let (mut column, mut spaces, mut indent, mut hang) = (0, 0, None, None);
    let mut in_escape = false;
    for c in line.chars() {
        match c {
            '\u{1b}' => in_escape = true,
            _ if in_escape => in_escape = !c.is_ascii_alphabetic(),
            ' ' => {
                spaces += 1;
                column += 1;
            }
            _ => {
                match indent {
                    None => indent = Some(column),
                    Some(_) if spaces >= 2 && column <= width / 2 => hang = Some(column),
                    Some(_) => {}
                }
                spaces = 0;
                column += UnicodeWidthStr::width(c.encode_utf8(&mut [0; 4]) as &str);
            }
        }
        if column > width / 2 {
            break;
        }
    }
    let indent = indent.unwrap_or(column);
    hang.unwrap_or(indent + more).min(width / 2)
}

/// The beginning of a text that fits these columns, with `…` if it is cut.
pub(crate) fn fitted(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut fitted = String::new();
    for c in text.chars() {
        fitted.push(c);
        if fitted.width() + 1 > columns {
            fitted.pop();
            break;
        }
    }
    fitted.truncate(fitted.trim_end().len());
    fitted.push('…');
    fitted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(text: &str, width: usize) -> Vec<String> {
        wrapped(text, width, |_| 2).split('\n').map(str::to_owned).collect()
    }

    #[test]
    fn lines_are_broken_between_words_and_continue_below_their_text() {
        assert_eq!(lines("one two three", 9), ["one two", "  three"]);
        assert_eq!(lines("  - one two three", 12), ["  - one two", "    three"]);
        assert_eq!(
            lines("key    one two three four", 16),
            ["key    one two", "       three", "       four"]
        );
        // A word that is too long is left to the terminal.
        assert_eq!(
            lines("see https://example.com/long b", 10),
            ["see", "  https://example.com/long b"]
        );
        assert_eq!(lines("退款将在五个 ok", 8), ["退款将在", "  五个", "  ok"]);
        assert_eq!(lines("ends 👩‍👩‍👧 here", 8), ["ends 👩‍👩‍👧", "  here"]);
    }

    #[test]
    fn each_word_has_its_style() {
        let styled = "\u{1b}[1m\u{1b}[36mone two\u{1b}[0m\u{1b}[1m\u{1b}[36m!\u{1b}[0m 3";
        let style = "\u{1b}[1m\u{1b}[36m";
        assert_eq!(
            lines(styled, 6),
            [format!("{style}one{RESET}"), format!("  {style}two!{RESET}"), "  3".to_owned()]
        );
    }

    proptest! {
        #[test]
        fn no_word_is_lost_or_split(text in "[a-z]{1,9}( {1,2}[a-z中]{1,9}){0,30}", width in 20_usize..90) {
            let lines = lines(&text, width);
            prop_assert!(lines.iter().all(|line| line.width() <= width), "{lines:?}");
            let joined: String = lines.concat().split_whitespace().collect();
            prop_assert_eq!(joined, text.split_whitespace().collect::<String>());
            let words: Vec<_> = text.split_whitespace().filter(|word| word.is_ascii()).collect();
            let shown = lines.join("\n");
            prop_assert!(words.iter().all(|word| shown.contains(word)), "{shown}");
        }
    }

    #[test]
    fn what_is_cut_says_so_and_fits() {
        assert_eq!(fitted("abc", 3), "abc");
        assert_eq!(fitted("abcd", 3), "ab…");
        assert_eq!(fitted("a bcd", 3), "a…");
        assert_eq!(fitted("中文字", 4), "中…");
    }
}
