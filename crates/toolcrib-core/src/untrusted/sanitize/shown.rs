//! A text as a model reads it, with the places where it differs from the real one.

use std::{borrow::Cow, ops::Range};

use super::{
    change::{ChangeKind, TextChange},
    folded::{FoldedText, Reading, is_plain, look_alike, replaced_by, resolved},
    strip::{Kept, StrippedText},
    tokens::Tokens,
};
use crate::tool::text_origin::TextOrigin;

/// The most lines that a text about changes lists.
const MOST_LISTED: usize = 20;

/// A text as a model reads it. All of it that no change names is the same as in the real text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShownText<'a> {
    /// The text; borrowed if unchanged. It never has more characters than the real one.
    pub text: Cow<'a, str>,
    /// The differences, in order.
    pub changes: Vec<TextChange>,
}

impl TextOrigin {
    /// The text as a model reads it. Showing it again changes nothing.
    pub fn shown(self, text: &str) -> ShownText<'_> {
        let Some(tokens) = Tokens::of(self) else {
            // A pattern that did not compile must not let everything through.
            let change = TextChange { shown: 0..0, real: 0..text.len(), kind: ChangeKind::Hidden };
            return ShownText { text: Cow::Borrowed(""), changes: vec![change] };
        };
        // Most results need no folding: their tokens appear literally.
        if is_plain(text) && !tokens.may_be_in(text) {
            return ShownText { text: Cow::Borrowed(text), changes: Vec::new() };
        }
        let kept = match self {
            Self::Foreign => Kept::Needed,
            Self::Project => Kept::OfCode,
        };
        let stripped = StrippedText::of(text, kept);
        let folded = FoldedText::of(&stripped.text, Reading::Folded);
        let found = tokens.find_in(&folded, &stripped.text, Reading::Folded);
        let replaced = found.into_iter().flat_map(|token| defused(&stripped.text, token));
        let shown = with_replaced(&stripped, replaced);
        if shown.changes.is_empty() {
            return ShownText { text: Cow::Borrowed(text), changes: Vec::new() };
        }
        shown
    }

    /// The text that a model reads: [`shown`](Self::shown) without its changes.
    pub fn harmless(self, text: &str) -> Cow<'_, str> {
        self.shown(text).text
    }

    /// The character that a look-alike replaces in a shown text.
    pub fn replaced_by(look_alike: char) -> Option<char> {
        replaced_by(look_alike)
    }

    /// The parts of a text that would be tokens if their look-alikes were the characters that they
    /// replace in a shown text.
    pub fn look_alikes(self, text: &str) -> Vec<Range<usize>> {
        let is_look_alike = |c: char| replaced_by(c).is_some();
        let Some(tokens) = Tokens::of(self).filter(|_| text.contains(is_look_alike)) else {
            return Vec::new();
        };
        let folded = FoldedText::of(text, Reading::Undone);
        let mut found = tokens.find_in(&folded, text, Reading::Undone);
        found.retain(|range| {
            text.get(range.clone()).is_some_and(|part| part.contains(is_look_alike))
        });
        found
    }
}

/// A text without terminal escape sequences and without any invisible character, to search in it
/// what they could split. Borrowed if it has none.
pub fn without_invisible(text: &str) -> ShownText<'_> {
    let stripped = StrippedText::of(text, Kept::Nothing);
    match stripped.changes.is_empty() {
        true => ShownText { text: Cow::Borrowed(text), changes: Vec::new() },
        false => ShownText { text: Cow::Owned(stripped.text), changes: stripped.changes },
    }
}

/// The characters of a token that are replaced, each with its range: an entity becomes the
/// look-alike directly, and invisible characters inside go.
fn defused(
    text: &str,
    token: Range<usize>,
) -> impl Iterator<Item = (Range<usize>, Option<char>)> + '_ {
    let part = text.get(token.clone()).unwrap_or_default();
    let mut end = 0;
    resolved(part, Reading::Folded).flat_map(move |(c, start, stop)| {
        let place = |range: Range<usize>| token.start + range.start..token.start + range.end;
        let skipped = (end < start).then(|| (place(end..start), None));
        end = stop;
        let alike = look_alike(c);
        let is_same = part.get(start..stop).is_some_and(|was| was.chars().eq([alike]));
        let replaced = (!is_same).then(|| (place(start..stop), Some(alike)));
        [skipped, replaced].into_iter().flatten()
    })
}

/// A stripped text with replaced characters, and all changes in the real text.
fn with_replaced(
    stripped: &StrippedText,
    replaced: impl Iterator<Item = (Range<usize>, Option<char>)>,
) -> ShownText<'static> {
    let mut shown = ShownText {
        text: Cow::Owned(String::with_capacity(stripped.text.len())),
        changes: Vec::new(),
    };
    let text = shown.text.to_mut();
    let mut earlier = stripped.changes.iter().peekable();
    // The end of what is copied, and the bytes that are missing before it.
    let (mut copied, mut missing) = (0, 0);
    for (range, c) in replaced {
        while let Some(change) = earlier.next_if(|change| change.shown.start <= range.start) {
            let at = text.len() + (change.shown.start - copied);
            let shown_at = at..at + change.shown.len();
            shown.changes.push(TextChange { shown: shown_at, ..change.clone() });
            missing += change.real.len() - change.shown.len();
        }
        text.push_str(stripped.text.get(copied..range.start).unwrap_or_default());
        let real_start = range.start + missing;
        // What was left out within an entity belongs to its look-alike.
        while let Some(change) = earlier.next_if(|change| change.shown.start < range.end) {
            missing += change.real.len() - change.shown.len();
        }
        let at = text.len();
        text.extend(c);
        let kind = if c.is_some() { ChangeKind::Token } else { ChangeKind::Hidden };
        let real = real_start..range.end + missing;
        shown.changes.push(TextChange { shown: at..text.len(), real, kind });
        copied = range.end;
    }
    for change in earlier {
        let at = text.len() + (change.shown.start - copied);
        let shown_at = at..at + change.shown.len();
        shown.changes.push(TextChange { shown: shown_at, ..change.clone() });
    }
    text.push_str(stripped.text.get(copied..).unwrap_or_default());
    shown
}

impl ShownText<'_> {
    /// The real bytes of a part of the shown text, without those that are left out at its ends.
    pub fn real(&self, shown: Range<usize>) -> Range<usize> {
        let real = |changes: usize, at: usize| {
            let last = changes.checked_sub(1).and_then(|last| self.changes.get(last));
            last.map_or(at, |last| last.real.end + (at - last.shown.end))
        };
        let before = self.changes.partition_point(|change| change.shown.end <= shown.start);
        let within = self.changes.partition_point(|change| {
            change.shown.end < shown.end
                || (change.shown.end == shown.end && change.shown.start < shown.end)
        });
        real(before, shown.start)..real(within, shown.end)
    }

    /// The lines of the real text that are not shown as they are; the first line has this number. In at
    /// most `room` characters: fewer numbers, or none, where all have no room. `None` without changes
    /// of these kinds.
    pub fn about(
        &self,
        real: &str,
        first: usize,
        kinds: &[ChangeKind],
        room: usize,
    ) -> Option<String> {
        let lines = |kind: &ChangeKind| (*kind, self.lines(real, first, *kind));
        let changed: Vec<_> =
            kinds.iter().map(lines).filter(|(_, lines)| !lines.is_empty()).collect();
        if changed.is_empty() {
            return None;
        }
        let about = |most: usize| {
            let part = |(kind, lines): &(ChangeKind, Vec<usize>)| {
                let (listed, rest) = lines.split_at(most.min(lines.len()));
                let listed: Vec<_> = listed.iter().map(usize::to_string).collect();
                let word = if lines.len() == 1 { "line" } else { "lines" };
                let place = match (listed.as_slice(), rest.len()) {
                    ([], count) => format!("{count} {word}"),
                    (listed, 0) => format!("{word} {}", listed.join(", ")),
                    (listed, more) => format!("{word} {} and {more} more", listed.join(", ")),
                };
                format!("{place}: {}", kind.about())
            };
            changed.iter().map(part).collect::<Vec<_>>().join("; ")
        };
        (0..=MOST_LISTED).rev().map(about).find(|about| about.chars().count() <= room)
    }

    /// The lines of the real text with changes of a kind, the first of which has this number.
    fn lines(&self, real: &str, first: usize, kind: ChangeKind) -> Vec<usize> {
        let (mut line, mut counted) = (first, 0);
        let mut lines = Vec::new();
        for change in self.changes.iter().filter(|change| change.kind == kind) {
            let passed = real.get(counted..change.real.start).unwrap_or_default();
            line += passed.bytes().filter(|byte| *byte == b'\n').count();
            counted = change.real.start;
            if lines.last() != Some(&line) {
                lines.push(line);
            }
        }
        lines
    }
}
