//! A text as a chat template might read it.

use std::ops::Range;

use crate::hidden::plain_letter;

/// A text in lower case, with full-width forms, look-alike letters and entities resolved, and
/// unusual spaces as spaces. Each byte is mapped to its source range.
pub(super) struct FoldedText {
    pub(super) text: String,
    /// For each byte of `text`, the start of its source character.
    starts: Vec<usize>,
    /// For each byte of `text`, the end of its source character.
    ends: Vec<usize>,
}

impl FoldedText {
    pub(super) fn of(text: &str) -> Self {
        let mut this =
            Self { text: String::with_capacity(text.len()), starts: vec![], ends: vec![] };
        for (c, start, end) in resolved(text) {
            this.text.push(plain_letter(c).to_ascii_lowercase());
            this.starts.resize(this.text.len(), start);
            this.ends.resize(this.text.len(), end);
        }
        this
    }

    /// The source range of a range of folded bytes.
    pub(super) fn original(&self, range: &Range<usize>) -> Option<Range<usize>> {
        Some(*self.starts.get(range.start)?..*self.ends.get(range.end.checked_sub(1)?)?)
    }
}

/// The characters of a text as a template might read them, each with its byte range.
pub(super) fn resolved(text: &str) -> impl Iterator<Item = (char, usize, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.get(at..)?;
        let first = rest.chars().next()?;
        let (c, width) = entity(rest).unwrap_or_else(|| (plain_form(first), first.len_utf8()));
        let start = at;
        at += width;
        Some((c, start, at))
    })
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
