//! A file's text as a model reads it, and the way back from that to the real bytes.

use std::ops::Range;

use toolcrib_core::{ChangeKind, TextOrigin};

use super::line_ends::{LineFeedText, with_line_feeds};

/// The places of a text that a model wrote in a file's text: where it is, and, if the file was
/// `shown` by a rule, where the file is shown so. Line ends are compared as LF; of places that differ in
/// them, a text with carriage returns means those that are exactly so. In order, and without overlaps.
/// Of one place that another one of the same text overlaps, both are returned: either could be meant.
pub(super) fn places(text: &str, old: &str, shown: Option<TextOrigin>) -> Vec<Range<usize>> {
    let wanted = with_line_feeds(old);
    let line_feeds = LineFeedText::of(text);
    let real = |at: usize| line_feeds.real(at..at + wanted.len());
    let mut places: Vec<_> = found(&line_feeds.text, &wanted).into_iter().map(real).collect();
    if let Some(shown) = shown.map(|origin| origin.shown(text)).filter(|it| !it.changes.is_empty())
    {
        let real = |at: usize| with_whole_line_end(text, shown.real(at..at + wanted.len()));
        places.extend(found(&shown.text, &wanted).into_iter().map(real));
        places.sort_unstable_by_key(|place| (place.start, place.end));
        places.dedup();
    }
    if old.contains('\r') {
        let is_exact = |place: &Range<usize>| text.get(place.clone()) == Some(old);
        if places.iter().any(is_exact) {
            places.retain(is_exact);
        }
    }
    places
}

/// A place that begins with the line feed of a CR LF also contains the carriage return.
fn with_whole_line_end(text: &str, place: Range<usize>) -> Range<usize> {
    let bytes = text.as_bytes();
    let before = place.start.checked_sub(1).filter(|before| bytes.get(*before) == Some(&b'\r'));
    match before {
        Some(before) if bytes.get(place.start) == Some(&b'\n') => before..place.end,
        _ => place,
    }
}

/// Where a text is in another one; of a single place, also the next one that overlaps it.
fn found(text: &str, part: &str) -> Vec<usize> {
    let mut places: Vec<_> = text.match_indices(part).map(|(at, _)| at).collect();
    if let [at] = places.as_slice() {
        let after = at + part.chars().next().map_or(1, char::len_utf8);
        let overlapping = text.get(after..).and_then(|rest| rest.find(part));
        places.extend(overlapping.map(|next| after + next));
    }
    places
}

/// A part of a new text that looks like a token as it is shown, and not as it is in any file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LookAlike {
    /// As the model wrote it.
    pub(super) written: String,
    /// The characters that are shown so, escaped, since the message must not contain a token.
    pub(super) real: String,
}

impl LookAlike {
    /// The first one in new parts of a text, which the text before the change does not have: a file may
    /// contain look-alikes itself.
    pub(super) fn first(
        text: &str,
        new: &[Range<usize>],
        before: &str,
        origin: TextOrigin,
    ) -> Option<Self> {
        let is_look_alike = |c: char| real_char(c) != c;
        let has_look_alike =
            |range: Range<usize>| text.get(range).is_some_and(|part| part.contains(is_look_alike));
        if !new.iter().any(|range| has_look_alike(range.clone())) {
            return None;
        }
        let is_new = |found: &Range<usize>| {
            let after = new.partition_point(|range| range.end <= found.start);
            let overlapping = new.iter().skip(after).take_while(|range| range.start < found.end);
            overlapping
                .map(|range| range.start.max(found.start)..range.end.min(found.end))
                .any(has_look_alike)
        };
        let found = origin.look_alikes(text).into_iter().filter(is_new);
        let mut written = found.filter_map(|range| text.get(range).map(str::trim));
        let written = written.find(|written| !before.contains(written))?;
        let escaped = |c: char| match real_char(c) {
            real if real == c => c.to_string(),
            real => real.escape_unicode().to_string(),
        };
        let real = written.chars().map(escaped).collect();
        Some(Self { written: written.to_owned(), real })
    }
}

fn real_char(c: char) -> char {
    TextOrigin::replaced_by(c).unwrap_or(c)
}

/// The number of places with characters that the reader of a text does not see.
pub(super) fn unseen(text: &str, shown: Option<TextOrigin>) -> usize {
    let is_left_out = |kind: ChangeKind| matches!(kind, ChangeKind::Hidden | ChangeKind::Escape);
    let changes = shown.map(|origin| origin.shown(text).changes).unwrap_or_default();
    changes.iter().filter(|change| is_left_out(change.kind)).count()
}
