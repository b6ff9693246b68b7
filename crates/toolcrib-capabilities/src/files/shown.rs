//! A file's text as a model reads it, and the way back from that to the real bytes.

use std::ops::Range;

use toolcrib_core::{ChangeKind, TextOrigin};

/// The places of a text that a model wrote in a file's text: where it is, and, if the file was
/// `shown` by a rule, where the file is shown so. In order, and without overlaps. Of one place that
/// another one of the same text overlaps, both are returned: either could be meant.
pub(super) fn places(text: &str, old: &str, shown: Option<TextOrigin>) -> Vec<Range<usize>> {
    let mut places: Vec<Range<usize>> =
        found(text, old).into_iter().map(|at| at..at + old.len()).collect();
    if let Some(shown) = shown.map(|origin| origin.shown(text)).filter(|it| !it.changes.is_empty())
    {
        let real = found(&shown.text, old).into_iter().map(|at| shown.real(at..at + old.len()));
        // The line ends of a place are written by the model, so they are those of the file.
        let has_its_line_ends = |place: &Range<usize>| {
            old.contains('\r') || !text.get(place.clone()).is_some_and(|real| real.contains('\r'))
        };
        places.extend(real.filter(has_its_line_ends));
        places.sort_unstable_by_key(|place| (place.start, place.end));
        places.dedup();
    }
    places
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
