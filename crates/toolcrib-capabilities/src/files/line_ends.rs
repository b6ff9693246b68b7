//! Line ends of texts: CR LF, LF or CR. They are compared as LF, and written as the file has them.

use std::{borrow::Cow, iter::Peekable, ops::Range};

/// The line ends of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LineEnds {
    /// A text without any.
    None,
    /// Line feeds, as in Unix.
    Lf,
    /// Carriage returns with line feeds, as in Windows.
    CrLf,
    /// Carriage returns alone.
    Cr,
    /// More than one kind.
    Mixed,
}

impl LineEnds {
    /// The line ends of a text.
    pub fn of(text: &str) -> Self {
        if !text.contains('\r') {
            return if text.contains('\n') { Self::Lf } else { Self::None };
        }
        let mut ends = ends(text).map(|(_, end)| end);
        let Some(first) = ends.next() else { return Self::None };
        match first {
            _ if ends.any(|end| end != first) => Self::Mixed,
            "\r\n" => Self::CrLf,
            "\r" => Self::Cr,
            _ => Self::Lf,
        }
    }

    /// The name that editors use.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Lf => "LF",
            Self::CrLf => "CR LF",
            Self::Cr => "CR",
            Self::Mixed => "mixed",
        }
    }

    /// The line end, if all are the same.
    pub(super) fn only(self) -> Option<&'static str> {
        match self {
            Self::Lf => Some("\n"),
            Self::CrLf => Some("\r\n"),
            Self::Cr => Some("\r"),
            Self::None | Self::Mixed => None,
        }
    }
}

/// The line ends of a text with their places.
fn ends(text: &str) -> impl Iterator<Item = (usize, &'static str)> + '_ {
    let bytes = text.as_bytes();
    let is = |at: usize, byte: u8| bytes.get(at) == Some(&byte);
    memchr::memchr2_iter(b'\n', b'\r', bytes).filter_map(move |at| {
        if is(at, b'\r') {
            return Some((at, if is(at + 1, b'\n') { "\r\n" } else { "\r" }));
        }
        let is_second = at.checked_sub(1).is_some_and(|before| is(before, b'\r'));
        (!is_second).then_some((at, "\n"))
    })
}

/// The text with line feeds as line ends.
pub(super) fn with_line_feeds(text: &str) -> Cow<'_, str> {
    match text.contains('\r') {
        true => Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n")),
        false => Cow::Borrowed(text),
    }
}

/// A text with line feeds as line ends, and the way back to the real bytes.
pub(super) struct LineFeedText<'a> {
    pub(super) text: Cow<'a, str>,
    /// The line feeds that are CR LF in the real text, in order.
    shortened: Vec<usize>,
}

impl<'a> LineFeedText<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let all = ends(text).filter(|(_, end)| *end == "\r\n").enumerate();
        let shortened = all.map(|(before, (at, _))| at - before).collect();
        Self { text: with_line_feeds(text), shortened }
    }

    /// The real bytes of a part. A line end at its edges is within the range as a whole, or not at all.
    pub(super) fn real(&self, part: Range<usize>) -> Range<usize> {
        let real = |at: usize| at + self.shortened.partition_point(|shortened| *shortened < at);
        real(part.start)..real(part.end)
    }
}

/// The line ends of the new parts of a text.
pub(super) enum NewLineEnds<'a> {
    /// All are the same: those of the text, or, if it has none, the first of the new parts.
    Same(&'static str),
    /// The text has several kinds: those of the lines around each part.
    Around(LineEndsAround<'a>),
}

impl<'a> NewLineEnds<'a> {
    /// The line ends for new parts in a text, whose line ends were `before`.
    pub(super) fn of(text: &'a str, before: LineEnds, new: &str) -> Self {
        match before {
            LineEnds::Mixed => Self::Around(LineEndsAround::of(text)),
            before => {
                let of_new = || ends(new).next().map(|(_, end)| end);
                Self::Same(before.only().or_else(of_new).unwrap_or("\n"))
            }
        }
    }

    /// A new part, written with line feeds, for a place of the text. The places come in order.
    pub(super) fn of_part<'b>(&mut self, new: &'b str, place: &Range<usize>) -> Cow<'b, str> {
        match self {
            _ if !new.contains('\n') => Cow::Borrowed(new),
            Self::Same("\n") => Cow::Borrowed(new),
            Self::Same(end) => Cow::Owned(new.replace('\n', end)),
            Self::Around(around) => Cow::Owned(around.of_part(new, place)),
        }
    }
}

/// The line ends around places of a text.
pub(super) struct LineEndsAround<'a> {
    text: &'a str,
    following: Peekable<Box<dyn Iterator<Item = (usize, &'static str)> + 'a>>,
    last: &'static str,
}

impl<'a> LineEndsAround<'a> {
    fn of(text: &'a str) -> Self {
        let ends: Box<dyn Iterator<Item = _> + 'a> = Box::new(ends(text));
        Self { text, following: ends.peekable(), last: "\n" }
    }

    /// Lines that are the same at the beginning or at the end of the old part keep their ends. The other
    /// ones have those of the old lines in order, then that of the line before; without one, that of the
    /// line in which the part ends.
    fn of_part(&mut self, new: &str, place: &Range<usize>) -> String {
        while let Some((_, end)) = self.following.next_if(|(at, _)| *at < place.end) {
            self.last = end;
        }
        let mut next = self.following.peek().map_or(self.last, |(_, end)| end);
        let old = self.text.get(place.clone()).unwrap_or_default();
        let old_ends: Vec<_> = ends(old).map(|(_, end)| end).collect();
        let old = with_line_feeds(old);
        let ended = |text: &str| text.matches('\n').count();
        let same = |(one, other): &(&str, &str)| one == other;
        let (old_lines, new_lines) = (old.split_inclusive('\n'), new.split_inclusive('\n'));
        let first = old_lines.clone().zip(new_lines.clone()).take_while(same).count();
        let last = old_lines.rev().zip(new_lines.clone().rev()).take_while(same);
        let last = last.filter(|(line, _)| line.ends_with('\n')).count();
        let (old_count, new_count) = (old_ends.len(), ended(new));
        let last = last.min(old_count.min(new_count).saturating_sub(first));
        let before_part = self.text.get(..place.start).and_then(|text| text.chars().next_back());
        let mut text = String::with_capacity(new.len());
        for (number, line) in new_lines.enumerate() {
            let Some(line) = line.strip_suffix('\n') else {
                text.push_str(line);
                break;
            };
            let of_old = match new_count - number {
                left if left <= last => old_count.checked_sub(left),
                _ if number < old_count.saturating_sub(last) => Some(number),
                _ => None,
            };
            let end = of_old.and_then(|at| old_ends.get(at)).copied();
            next = end.unwrap_or(next);
            let before = text.chars().next_back().or(before_part);
            text.push_str(line);
            // A CR and an LF of two lines would be one line end.
            text.push_str(if line.is_empty() && before == Some('\r') && next == "\n" {
                "\r\n"
            } else {
                next
            });
        }
        if text.ends_with('\r') && self.text.get(place.end..).unwrap_or_default().starts_with('\n')
        {
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{LineEnds, LineFeedText, NewLineEnds, with_line_feeds};

    proptest! {
        #[test]
        fn a_part_with_line_feeds_has_its_real_bytes(text in "[ab\r\n]{0,12}") {
            let found = LineFeedText::of(&text);
            for (start, _) in found.text.char_indices() {
                for end in start..=found.text.len() {
                    let real = found.real(start..end);
                    prop_assert_eq!(with_line_feeds(&text[real]), &found.text[start..end]);
                }
            }
        }

        #[test]
        fn new_lines_end_as_the_text_where_it_is_not_mixed(
            text in "([ab]{0,2}\r\n){1,4}[ab]?", new in "[ab\n]{0,8}",
        ) {
            let mut ends = NewLineEnds::of(&text, LineEnds::of(&text), &new);
            let part = ends.of_part(&new, &(0..0));
            prop_assert_eq!(with_line_feeds(&part), new.as_str());
            prop_assert!(matches!(LineEnds::of(&part), LineEnds::None | LineEnds::CrLf));
        }

        #[test]
        fn new_lines_of_a_mixed_text_have_its_words_and_unchanged_lines_keep_their_ends(
            text in "[ab]\r\n[ab\r\n]{0,12}\n", new in "[ab\n]{0,8}",
        ) {
            let mut ends = NewLineEnds::of(&text, LineEnds::Mixed, &new);
            let part = ends.of_part(&new, &(0..text.len()));
            prop_assert_eq!(with_line_feeds(&part), new.as_str());
            let (first, _) = super::ends(&text).next().unwrap_or_default();
            for place in [0..first, first + 2..text.len(), text.len()..text.len()] {
                let mut ends = NewLineEnds::of(&text, LineEnds::Mixed, &new);
                let part = ends.of_part(&new, &place);
                let patched = [&text[..place.start], &part, &text[place.end..]].concat();
                let shown = [&text[..place.start], &new, &text[place.end..]].map(with_line_feeds);
                prop_assert_eq!(with_line_feeds(&patched), shown.concat());
            }
            let mut ends = NewLineEnds::of(&text, LineEnds::Mixed, &new);
            let line_feeds = with_line_feeds(&text);
            prop_assert_eq!(ends.of_part(&line_feeds, &(0..text.len())), text.as_str());
        }
    }
}
