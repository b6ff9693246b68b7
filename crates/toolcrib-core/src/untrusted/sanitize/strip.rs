//! A text without what a reader does not see.

use std::ops::Range;

use super::{
    change::{ChangeKind, TextChange},
    folded::simple_prefix,
};
use crate::text::hidden::{flag_of_tags, is_hidden, is_invisible, is_needed, is_run_of_code};

/// A text without terminal escape sequences and hidden characters, with line feeds as line ends.
#[derive(Default)]
pub(crate) struct StrippedText {
    pub(crate) text: String,
    pub(crate) changes: Vec<TextChange>,
}

/// The characters that stay in a stripped text although they are invisible.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// Those that scripts and emoji need.
    Needed,
    /// Besides, those that code may have.
    OfCode,
    /// No invisible character stays.
    Nothing,
}

impl StrippedText {
    pub(crate) fn of(text: &str, kept: Kept) -> Self {
        let mut this = Self { text: String::with_capacity(text.len()), changes: Vec::new() };
        // The characters before this one in the text, and in the stripped text.
        let (mut before, mut last) = (None, None);
        // Whether the current run of invisible characters stays.
        let mut is_of_code = false;
        let mut at = 0;
        loop {
            let unread = text.get(at..).unwrap_or_default();
            let (simple, rest) = unread.split_at(simple_prefix(unread));
            if let Some(end) = simple.chars().next_back() {
                this.text.push_str(simple);
                at += simple.len();
                (before, last) = (Some(end), Some(end));
            }
            let Some(c) = rest.chars().next() else { break };
            let start = at;
            at += c.len_utf8();
            let next = text.get(at..).and_then(|rest| rest.chars().next());
            // A carriage return becomes or precedes a line feed.
            let next = next.map(|next| if next == '\r' { '\n' } else { next });
            if is_invisible(c) && !before.is_some_and(is_invisible) {
                is_of_code = kept == Kept::OfCode && is_run_of_code(before, rest);
            }
            match c {
                '\u{1b}' => {
                    at = start + escape_sequence(rest);
                    this.remove(start..at, ChangeKind::Escape);
                }
                '\r' if text.get(at..).is_some_and(|rest| rest.starts_with('\n')) => {
                    this.remove(start..at, ChangeKind::LineEnd);
                }
                '\r' => {
                    let end = this.text.len();
                    this.text.push('\n');
                    let (shown, real, kind) = (end..end + 1, start..at, ChangeKind::LineEnd);
                    this.changes.push(TextChange { shown, real, kind });
                    last = Some('\n');
                }
                _ if !is_invisible(c) => {
                    let whole = if kept == Kept::Nothing { None } else { flag_of_tags(rest) };
                    at = start + whole.map_or(c.len_utf8(), str::len);
                    this.text.push_str(text.get(start..at).unwrap_or_default());
                    last = Some(c);
                }
                _ if (kept != Kept::Nothing
                    && (!is_hidden(last, c, next) || is_needed(before, c, next)))
                    || is_of_code =>
                {
                    this.text.push(c);
                    last = Some(c);
                }
                _ => this.remove(start..at, ChangeKind::Hidden),
            }
            before = Some(if c == '\r' { '\n' } else { c });
        }
        this
    }

    fn remove(&mut self, real: Range<usize>, kind: ChangeKind) {
        let at = self.text.len();
        match self.changes.last_mut() {
            Some(last)
                if last.kind == kind && last.shown == (at..at) && last.real.end == real.start =>
            {
                last.real.end = real.end;
            }
            _ => self.changes.push(TextChange { shown: at..at, real, kind }),
        }
    }
}

/// The length in bytes of the escape sequence at the beginning of a text.
fn escape_sequence(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1).peekable();
    match chars.next() {
        Some((_, '[')) => {
            while chars.next_if(|(_, c)| ('\u{20}'..='\u{3f}').contains(c)).is_some() {}
            chars.next_if(|(_, c)| ('\u{40}'..='\u{7e}').contains(c));
        }
        // An operating-system command ends with BEL or ESC \.
        Some((_, ']')) => {
            while let Some((_, c)) = chars.next_if(|(_, c)| *c != '\n') {
                if c == '\u{7}' || (c == '\u{1b}' && chars.next_if(|(_, c)| *c == '\\').is_some()) {
                    break;
                }
            }
        }
        Some((_, '\u{20}'..='\u{7e}')) => {}
        _ => return '\u{1b}'.len_utf8(),
    }
    chars.peek().map_or(text.len(), |(at, _)| *at)
}
