//! A text as a chat template might read it.

use std::ops::Range;

use crate::text::hidden::{is_invisible, plain_letter};

/// A text in lower case, with full-width forms, look-alike letters and entities resolved, unusual
/// spaces as spaces, and without invisible characters. Each part is mapped to its source.
pub(crate) struct FoldedText {
    pub(crate) text: String,
    /// Offsets in `text` with those in the source, where the distance between them changes.
    anchors: Vec<(usize, usize)>,
}

/// How the characters of a text are read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// As a template might read them.
    Folded,
    /// Besides, the look-alikes of a shown text are the characters that they replaced.
    Undone,
}

impl FoldedText {
    pub(crate) fn of(text: &str, reading: Reading) -> Self {
        let mut this = Self { text: String::with_capacity(text.len()), anchors: vec![(0, 0)] };
        let mut rest = 0;
        while let Some(unread) = text.get(rest..).filter(|unread| !unread.is_empty()) {
            let (simple, other) = unread.split_at(simple_prefix(unread));
            if !simple.is_empty() {
                this.begin_at(rest);
                this.text.extend(simple.chars().map(|c| c.to_ascii_lowercase()));
            }
            let other_at = rest + simple.len();
            rest = text.len();
            for (c, start, end) in resolved(other, reading) {
                this.begin_at(other_at + start);
                this.text.push(plain_letter(c).to_ascii_lowercase());
                if this.expected() != other_at + end {
                    this.anchors.push((this.text.len(), other_at + end));
                }
                if text.as_bytes().get(other_at + end).is_some_and(|byte| is_simple(*byte)) {
                    rest = other_at + end;
                    break;
                }
            }
        }
        this
    }

    /// Notes that the next character is from this place of the source.
    fn begin_at(&mut self, source: usize) {
        let expected = self.expected();
        if expected != source {
            let at = self.text.len();
            self.anchors.extend([(at, expected), (at, source)]);
        }
    }

    /// The source of the end of the text, if the distance has not changed.
    fn expected(&self) -> usize {
        let (at, source) = self.anchors.last().copied().unwrap_or_default();
        source + (self.text.len() - at)
    }

    /// The source range of a range of folded bytes.
    pub(crate) fn original(&self, range: &Range<usize>) -> Option<Range<usize>> {
        let source = |before: usize, folded: usize| {
            let (at, source) = self.anchors.get(before.checked_sub(1)?)?;
            Some(source + (folded - at))
        };
        let start = self.anchors.partition_point(|(at, _)| *at <= range.start);
        // Invisible characters after the end do not belong to it.
        let end = self.anchors.partition_point(|(at, _)| *at < range.end);
        let end = match self.anchors.get(end) {
            Some((at, source)) if *at == range.end => *source,
            _ => source(end, range.end)?,
        };
        Some(source(start, range.start)?..end)
    }
}

/// Whether a text contains only plain characters, with none that are hidden or look like others. In
/// such a text only those characters of a token change that have a look-alike.
pub fn is_plain(text: &str) -> bool {
    // Without an early exit the compiler vectorizes the loop.
    text.bytes().fold(true, |all, byte| all & is_simple(byte))
        || (!text.chars().any(is_invisible)
            && resolved(text, Reading::Folded).map(|(c, ..)| plain_letter(c)).eq(text.chars()))
}

/// Whether a byte is a visible ASCII character, a space, a tab or a line feed, and begins no entity: it is
/// read as it is.
#[inline]
fn is_simple(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\n' | b'\t') && byte != b'&'
}

/// The number of simple bytes at the beginning of a text.
pub(crate) fn simple_prefix(text: &str) -> usize {
    text.bytes().position(|byte| !is_simple(byte)).unwrap_or(text.len())
}

/// The characters of a text as a template might read them, each with its byte range.
pub(crate) fn resolved(text: &str, reading: Reading) -> impl Iterator<Item = (char, usize, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let rest = text.get(at..)?;
            let first = rest.chars().next()?;
            let entity = if first == '&' { entity(rest) } else { None };
            let (c, width) = match entity {
                Some(entity) => entity,
                None if is_invisible(first) => {
                    at += first.len_utf8();
                    continue;
                }
                None => {
                    let undone = (reading == Reading::Undone).then(|| replaced_by(first)).flatten();
                    (undone.unwrap_or_else(|| plain_form(first)), first.len_utf8())
                }
            };
            let start = at;
            at += width;
            return Some((c, start, at));
        }
    })
}

/// The characters that make a token, and the look-alikes that replace them.
const LOOK_ALIKES: [(char, char); 5] = [('<', '‹'), ('>', '›'), ('[', '⟦'), (']', '⟧'), (':', '∶')];

/// The look-alike of a character that makes a token; otherwise the character itself.
pub(crate) fn look_alike(c: char) -> char {
    LOOK_ALIKES.iter().find(|(active, _)| *active == c).map_or(c, |(_, alike)| *alike)
}

/// The character that a look-alike replaced.
pub(crate) fn replaced_by(alike: char) -> Option<char> {
    LOOK_ALIKES.iter().find(|(_, known)| *known == alike).map(|(active, _)| *active)
}

/// The ASCII equivalent of a full-width or look-alike character.
fn plain_form(c: char) -> char {
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        '\u{2581}' => '_',
        '\u{fe64}' | '\u{2329}' | '\u{3008}' | '\u{276e}' => '<',
        '\u{fe65}' | '\u{232a}' | '\u{3009}' | '\u{276f}' => '>',
        '\u{2758}' | '\u{2223}' | '\u{ffe8}' => '|',
        '\u{fe55}' | '\u{fe13}' | '\u{a789}' => ':',
        c if c.is_whitespace() && !matches!(c, '\n' | '\t') => ' ',
        c => c,
    }
}

/// An HTML entity, escaped any number of times, that encodes a character of a token.
fn entity(text: &str) -> Option<(char, usize)> {
    const NAMES: [(&str, char); 12] = [
        ("lt;", '<'),
        ("gt;", '>'),
        ("#60;", '<'),
        ("#62;", '>'),
        ("#x3c;", '<'),
        ("#x3e;", '>'),
        ("#124;", '|'),
        ("#x7c;", '|'),
        ("vert;", '|'),
        ("#91;", '['),
        ("#93;", ']'),
        ("#58;", ':'),
    ];
    let mut inner = text.strip_prefix('&')?;
    while let Some(deeper) = inner.get(..4).filter(|s| s.eq_ignore_ascii_case("amp;")) {
        inner = inner.get(deeper.len()..)?;
    }
    NAMES.iter().find_map(|(name, c)| {
        let found = inner.get(..name.len())?;
        let width = text.len() - inner.len() + name.len();
        found.eq_ignore_ascii_case(name).then_some((*c, width))
    })
}
