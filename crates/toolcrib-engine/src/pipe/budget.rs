//! Keeps a batch of results within its budget of characters (Unicode scalar values).
//!
//! Each call is promised an equal share. A result within its share is final at once. The room that
//! such results leave goes to the larger ones, never above a tool's own cap. The truncation marker
//! and the fence count toward it. The texts of a result's blocks count toward its cap too, all
//! together: a text is passed on as far as the model reads it.

use std::fmt::Write as _;

use serde_json::{Map, Value};
use toolcrib_core::{__internal::fence_chars, ContentBlock, TextOrigin, Tool};

use super::{
    call::{OversizedResult, RawResult, ResultState, chars, own_cap},
    cut::CutResult,
    sanitize::needs_note,
    stored_parts::{Remainder, StoredParts, marker_of, plain_marker_of},
    structured,
};
use crate::parts::Limits;

/// Marks the gap between the beginning and the end of a text whose middle is lost.
const GAP: &str = "\n[…]\n";

/// The most characters of the note about what is not shown as it is; it may take a quarter of the cap.
const NOTE_CHARS: usize = 240;

/// Suffix of the line of an omitted block.
const LEFT_OUT: &str = " (left out)";

/// The equal shares of one batch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shares {
    share: usize,
}

impl Shares {
    pub(super) fn of(batch_chars: usize, calls: usize) -> Self {
        Self { share: batch_chars / calls.max(1) }
    }

    /// The share that is promised to a call of this tool.
    pub(super) fn promised(self, tool: &Tool) -> usize {
        self.share.min(own_cap(tool))
    }
}

/// A block, and the position of its line below the text.
struct PlacedBlock {
    block: ContentBlock,
    /// The start of the block's text, after Toolcrib's line above it.
    text: usize,
    end: usize,
}

/// The lines that replace blocks below a text, and the blocks that may be passed on.
fn place(
    blocks: Vec<ContentBlock>,
    text_is_empty: bool,
    limits: &Limits,
) -> (String, Vec<PlacedBlock>) {
    let mut below = String::new();
    let mut placed = Vec::new();
    let mut bytes_left = limits.result_block_bytes;
    let mut passed_on = 0;
    for block in blocks {
        if !(text_is_empty && below.is_empty()) {
            below.push('\n');
        }
        let bytes = block.data().len();
        if passed_on == limits.result_blocks || bytes > bytes_left {
            let begins = below.len();
            below.push_str(&block.reference());
            below.push_str(LEFT_OUT);
            let line = below.get(begins..).unwrap_or_default();
            let block = ContentBlock::paragraph(line);
            placed.push(PlacedBlock { block, text: begins, end: below.len() });
            continue;
        }
        passed_on += 1;
        bytes_left -= bytes;
        below.push_str(&block.as_read());
        let end = below.len();
        let text = match &block {
            ContentBlock::Text { text, .. } | ContentBlock::Paragraph { text, .. } => {
                end - text.len()
            }
            _ => end,
        };
        placed.push(PlacedBlock { block, text, end });
    }
    (below, placed)
}

/// The cap under which a result is final, if it does not wait for room that others leave.
pub(super) fn within(shares: Shares, ended: &RawResult) -> Option<usize> {
    let own = ended.own_cap();
    (own <= shares.share || ended.needs() <= shares.share).then_some(own.min(shares.share))
}

/// Distributes the room that small results leave among the large ones: equally, and room that one
/// of them does not need goes to the others.
pub(super) fn spend_the_rest(
    shares: Shares,
    settled: Vec<ResultState>,
) -> Vec<(ResultState, usize)> {
    let mut left: usize = settled
        .iter()
        .map(|settled| match settled {
            ResultState::Done(result) => shares.share.saturating_sub(chars(&result.text)),
            ResultState::Large(_) => 0,
        })
        .sum();
    let wish = |large: &OversizedResult| large.ended.needs().min(large.ended.own_cap());
    let mut caps = vec![shares.share; settled.len()];
    let mut large: Vec<(usize, usize)> = settled
        .iter()
        .enumerate()
        .filter_map(|(position, settled)| match settled {
            ResultState::Large(large) => Some((wish(large), position)),
            ResultState::Done(_) => None,
        })
        .collect();
    large.sort_unstable();
    let mut waiting = large.len();
    for (wish, position) in large {
        let extra = (left / waiting.max(1)).min(wish.saturating_sub(shares.share));
        left -= extra;
        waiting -= 1;
        if let Some(cap) = caps.get_mut(position) {
            *cap += extra;
        }
    }
    settled.into_iter().zip(caps).collect()
}

/// Cuts a text above its cap, and replaces data above the same cap, counted separately.
pub(super) fn fit(ended: RawResult, cap: usize, limits: &Limits, kept: StoredParts) -> CutResult {
    let fence = ended.fenced_tool().map(|tool| tool.name().to_string());
    let origin = ended.text_origin();
    let cap = cap.min(ended.own_cap());
    let fence_takes = fence.as_deref().map_or(0, fence_chars);
    let shows_what_is_counted = ended.tool.as_ref().is_some_and(|tool| tool.is_framework());
    let mut made = CutResult {
        fence,
        origin,
        cause: kept.cause,
        artifacts: kept.artifacts,
        ..CutResult::default()
    };
    let mut placed = Vec::new();
    match ended.outcome {
        Ok(output) => {
            (made.below, placed) = place(output.blocks, output.value.is_empty(), limits);
            made.body = output.value;
            let has_shape = ended.tool.as_ref().is_some_and(|tool| tool.output_schema().is_some());
            if let Some(data) = output.structured {
                let (data, marker) = structured::fit(data, cap, has_shape, &kept.data);
                made.structured = Some(data);
                if let Some(marker) = marker {
                    let _ = write!(made.body, "\n\nThe lists of the data: {marker}");
                }
            }
            made.meta = output.meta.filter(|meta| fits(meta, cap));
            made.cost_usd = output.cost_usd;
        }
        Err(failure) => {
            made.body = failure.message;
            made.code = Some(failure.code);
            made.cause = failure.cause.or(made.cause);
            if let Some(details) = failure.details {
                (made.below, placed) = place(details.blocks, made.body.is_empty(), limits);
                let data = details.structured;
                made.structured = data.map(|data| structured::fit(data, cap, false, &kept.data).0);
                made.meta = details.meta.filter(|meta| fits(meta, cap));
            }
            made.abandoned = failure.abandoned;
            made.cost_usd = failure.cost_usd;
        }
    }
    let total = cut(&mut made, cap, fence_takes, &kept.text);
    if !shows_what_is_counted {
        made.produced_chars = kept.stands_for_chars.unwrap_or(total as u64);
    }
    come_along(&mut made, placed, cap, &kept.text);
    made
}

/// Whether metadata is within the cap, counted separately.
fn fits(meta: &Map<String, Value>, cap: usize) -> bool {
    let size = |(key, value): (&String, &Value)| chars(key) + structured::json_chars(value);
    meta.iter().map(size).sum::<usize>() <= cap
}

/// Passes blocks on with the text that was cut: a text and a link as far as the text shows them, a
/// block with bytes even if its line is cut off. The marker comes where texts are missing. Further
/// fields are within the cap separately, so that they displace no text.
fn come_along(made: &mut CutResult, placed: Vec<PlacedBlock>, cap: usize, rest: &Remainder) {
    let shown = made.below.len();
    let (mut left, mut fields_left) = (cap, cap);
    let mut missing = None;
    for PlacedBlock { mut block, text: begins, end } in placed {
        let mut marker = None;
        if end > shown {
            match &mut block {
                ContentBlock::Text { text, .. } | ContentBlock::Paragraph { text, .. }
                    if shown > begins =>
                {
                    marker = Some(marker_of(chars(text), rest));
                    *text = text.get(..shown - begins).unwrap_or_default().into();
                }
                ContentBlock::Paragraph { .. }
                | ContentBlock::Text { .. }
                | ContentBlock::Link { .. } => {
                    missing.get_or_insert(made.blocks.len());
                    continue;
                }
                _ => {}
            }
        }
        let plain = block.clone().with_fields(Map::new());
        let (texts, all) = (plain.chars(), block.chars());
        if all - texts <= fields_left {
            fields_left -= all - texts;
        } else {
            block = plain;
        }
        let takes = texts + marker.as_deref().map_or(0, |marker| chars(marker) + 1);
        if takes <= left {
            left -= takes;
            made.cut_block =
                made.cut_block.take().or(marker.map(|marker| (made.blocks.len(), marker)));
            made.blocks.push(block);
        }
    }
    // Otherwise it is with the text before the blocks.
    if made.cut_block.is_none()
        && shown > 0
        && let Some(marker) = made.marker.clone()
        && chars(&marker) <= left
    {
        let position = missing.unwrap_or(made.blocks.len());
        made.blocks.insert(position, ContentBlock::paragraph(""));
        made.cut_block = Some((position, marker));
    }
}

/// Cuts the model's text to `cap` characters, including the fence and the marker's line; returns
/// how many characters there were.
fn cut(made: &mut CutResult, cap: usize, fence_takes: usize, rest: &Remainder) -> usize {
    let read = made.read();
    let total = chars(&read);
    let (mut fence_takes, mut note_room) = (fence_takes, 0);
    let (mut end, mut marker) = place_of_cut(&read, total, made.body.len(), cap, fence_takes, rest);
    if made.fence.is_some() && has_note(made.origin, &read, end, marker.is_some()) {
        note_room = NOTE_CHARS.min(cap / 4);
        // The line and its line feed.
        fence_takes += note_room + 1;
        (end, marker) = place_of_cut(&read, total, made.body.len(), cap, fence_takes, rest);
    }
    drop(read);
    made.note_room = note_room;
    // A text that is not stored elsewhere shows its end too, which is often the part that matters.
    let is_lost = matches!(rest, Remainder::NotKept(Some(_))) && marker.is_some();
    let tail = if is_lost && made.below.is_empty() { tail_of(&made.body, end) } else { None };
    made.below.truncate(end.saturating_sub(made.body.len()));
    match tail {
        Some((end, tail)) => {
            let tail = made.body.split_off(tail);
            made.body.truncate(end);
            made.body.push_str(GAP);
            made.body.push_str(&tail);
        }
        None => made.body.truncate(end),
    }
    made.marker = marker;
    total
}

/// Whether the part of a text that may be shown will have a note about what is not shown as it is.
fn has_note(origin: TextOrigin, text: &str, end: usize, is_cut: bool) -> bool {
    let head = text.get(..end).unwrap_or_default();
    // The last part, if it is shown, is not longer.
    let from = text.len().saturating_sub(head.len());
    let tail = (from..=end).find_map(|at| text.get(at..)).filter(|_| is_cut);
    let tail = tail.or_else(|| text.get(end..)).filter(|_| is_cut).unwrap_or_default();
    needs_note(origin, head) || needs_note(origin, tail)
}

/// For a text cut at `end`: where to cut instead, and the start of its last part that also fits;
/// `None` without room for both.
fn tail_of(text: &str, end: usize) -> Option<(usize, usize)> {
    let head = text.get(..end)?;
    let room = chars(head).checked_sub(chars(GAP))?;
    let last = room / 3;
    let (head_end, _) = head.char_indices().nth(room - last)?;
    let (tail, _) = text.char_indices().rev().nth(last.checked_sub(1)?)?;
    (tail > end).then(|| (before_escape(text, head_end), tail))
}

/// Where to cut a text of `total` characters whose first `body` bytes belong together, and the
/// marker if it is cut. A text no longer than the marker is not cut.
fn place_of_cut(
    text: &str,
    total: usize,
    body: usize,
    cap: usize,
    fence_takes: usize,
    rest: &Remainder,
) -> (usize, Option<String>) {
    if total + fence_takes <= cap {
        return (text.len(), None);
    }
    let mut marker = marker_of(total, rest);
    if chars(&marker) > cap {
        marker = plain_marker_of(total);
    }
    if total + fence_takes <= chars(&marker) {
        return (text.len(), None);
    }
    let head = cap.saturating_sub(fence_takes + chars(&marker) + 1);
    let end = text.char_indices().nth(head).map_or(text.len(), |(at, _)| at);
    let inside = text.get(..body).filter(|_| end < body).and_then(|body| whole_json(body, end));
    (inside.unwrap_or_else(|| before_escape(text, end)), Some(marker))
}

/// Where to cut a JSON text at or before `end`: after the last whole element, at the lowest nesting
/// level that ends in the last half. Never splits a string, number or row.
fn whole_json(text: &str, end: usize) -> Option<usize> {
    if !text.starts_with(['{', '[']) || serde_json::from_str::<serde::de::IgnoredAny>(text).is_err()
    {
        return None;
    }
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    let mut best: Option<(usize, usize)> = None;
    for (at, byte) in text.bytes().enumerate().take(end) {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' if best.is_none_or(|(outer, last)| depth <= outer || last < end / 2) => {
                best = Some((depth, at));
            }
            _ => {}
        }
    }
    Some(best.map_or(0, |(_, at)| at))
}

/// Moves a cut before a terminal escape sequence that it would split.
fn before_escape(text: &str, end: usize) -> usize {
    const LONGEST_SEQUENCE: usize = 32;
    let Some(head) = text.get(..end) else {
        return end;
    };
    let Some(escape) = head.rfind('\u{1b}') else {
        return end;
    };
    let sequence = head.get(escape..).unwrap_or_default();
    let closed = sequence.chars().skip(2).any(|c| ('\u{40}'..='\u{7e}').contains(&c));
    if closed || sequence.len() > LONGEST_SEQUENCE { end } else { escape }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    /// Cuts a separate text, with its marker.
    fn cut_text(text: &str, cap: usize) -> (String, Option<String>) {
        let (end, marker) =
            place_of_cut(text, chars(text), text.len(), cap, 0, &Remainder::default());
        (text[..end].to_owned(), marker)
    }

    #[test]
    fn rows_are_cut_between_rows() {
        let rows: Vec<_> = (0..40).map(|n| json!({ "id": n, "note": "a, \"b\" {c}" })).collect();
        let text = json!({ "rows": rows, "changed": 0 }).to_string();
        let total = chars(&text);
        let (body, marker) = cut_text(&text, 400);
        assert_eq!(
            marker.unwrap(),
            format!("[truncated — {total} chars total; the rest was not kept]")
        );
        assert!(text.starts_with(&body));
        // Closing the open brackets makes it valid again: no row is split.
        let repaired: Value = serde_json::from_str(&format!("{body}]}}")).unwrap();
        assert!(repaired["rows"].as_array().unwrap().len() > 5);
    }

    #[test]
    fn an_escape_sequence_is_not_left_open() {
        let text = format!("{}\u{1b}[31mred\u{1b}[0m{}", "x".repeat(46), "y".repeat(200));
        let (body, _) = cut_text(&text, 100);
        assert_eq!(body, "x".repeat(46));
    }

    proptest! {
        #[test]
        fn what_is_cut_keeps_within_its_room(text in "\\PC{0,300}", room in 60_usize..400) {
            let total = chars(&text);
            let (body, marker) = cut_text(&text, room);
            prop_assert!(text.starts_with(&body));
            let whole = chars(&body) + marker.as_deref().map_or(0, |m| chars(m) + 1);
            prop_assert!(whole <= room);
            prop_assert_eq!(marker.is_none(), total <= room);
            prop_assert!(marker.is_some() || body == text);
        }
    }
}
