//! Keeps a batch of results within its budget of characters (Unicode scalar values).
//!
//! Each call is promised an even share. A result within its share is final at once; what such
//! results leave goes to the larger ones, never above a tool's own cap. The marker of a cut and
//! the fence count inside. What a result's blocks hold is within its cap too, all texts together: a
//! text travels as far as the model reads it.

use std::borrow::Cow;

use serde_json::Value;
use toolcrib_core::{ContentBlock, ErrorCode, SpoolEntry, Tool, ToolOutput, fence_chars};

use super::{
    Ended, Large, Settled,
    spool::{Kept, Rest},
    structured,
};
use crate::parts::Limits;

/// Stands between the beginning and the end of a text whose middle is lost.
const GAP: &str = "\n[…]\n";

/// Stands behind the line of a block that does not come along.
const LEFT_OUT: &str = " (left out)";

/// The even shares of one batch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shares {
    share: usize,
}

impl Shares {
    pub(super) fn of(batch_chars: usize, calls: usize) -> Self {
        Self { share: batch_chars / calls.max(1) }
    }

    /// What a call of this tool is promised.
    pub(super) fn promised(self, tool: &Tool) -> usize {
        self.share.min(own_cap(tool))
    }
}

fn own_cap(tool: &Tool) -> usize {
    tool.max_result_chars().unwrap_or(usize::MAX)
}

/// How a call ended, cut to its cap.
pub(super) struct Cut {
    /// The tool's own text.
    pub(super) body: String,
    /// What stands for the blocks, below it.
    pub(super) below: String,
    /// What says that something is missing.
    pub(super) marker: Option<String>,
    /// The tool's name, when the body is to be sanitised and fenced.
    pub(super) fence: Option<String>,
    pub(super) code: Option<ErrorCode>,
    pub(super) structured: Option<Value>,
    pub(super) blocks: Vec<ContentBlock>,
    /// The block whose text is cut, and what says so, which is not in it yet.
    pub(super) cut_block: Option<(usize, String)>,
    pub(super) cost_usd: Option<f64>,
    pub(super) cause: Option<String>,
    pub(super) abandoned: bool,
    pub(super) artifacts: Vec<SpoolEntry>,
    /// How many characters there were.
    pub(super) produced_chars: u64,
}

impl Cut {
    /// Whether the cap left room for nothing but the marker.
    pub(super) fn is_marker_alone(&self) -> bool {
        self.body.is_empty() && self.below.is_empty() && self.marker.is_some()
    }

    /// All that a model reads, without marker and fence.
    pub(super) fn read(&self) -> Cow<'_, str> {
        if self.below.is_empty() {
            Cow::Borrowed(&self.body)
        } else {
            Cow::Owned(format!("{}{}", self.body, self.below))
        }
    }

    /// A form of the body, with the marker behind it.
    pub(super) fn marked(&self, body: &str) -> String {
        match &self.marker {
            Some(marker) if body.is_empty() => marker.clone(),
            Some(marker) => format!("{body}\n{marker}"),
            None => body.to_owned(),
        }
    }
}

/// A block, and where what stands for it is in what is below the text.
struct Placed {
    block: ContentBlock,
    /// Where its own text begins, behind what we write above it.
    text: usize,
    end: usize,
}

/// What stands for blocks below a text, and the blocks that may come along.
fn place(blocks: Vec<ContentBlock>, text_is_empty: bool, limits: &Limits) -> (String, Vec<Placed>) {
    let mut below = String::new();
    let mut placed = Vec::new();
    let mut bytes_left = limits.result_block_bytes;
    for block in blocks {
        if !(text_is_empty && below.is_empty()) {
            below.push('\n');
        }
        let bytes = block.data().len();
        if placed.len() == limits.result_blocks || bytes > bytes_left {
            below.push_str(&block.reference());
            below.push_str(LEFT_OUT);
            continue;
        }
        bytes_left -= bytes;
        below.push_str(&block.as_read());
        let end = below.len();
        let text = match &block {
            ContentBlock::Text { text, .. } => end - text.len(),
            _ => end,
        };
        placed.push(Placed { block, text, end });
    }
    (below, placed)
}

/// How long what stands for the blocks is, while none is left out.
fn below_chars(output: &ToolOutput) -> usize {
    let lines: usize = output.blocks.iter().map(|block| chars(&block.as_read()) + 1).sum();
    if output.value.is_empty() { lines.saturating_sub(1) } else { lines }
}

impl Ended {
    /// The characters of what a model reads.
    pub(super) fn chars(&self) -> usize {
        match &self.outcome {
            Ok(output) => chars(&output.value) + below_chars(output),
            Err(failure) => chars(&failure.message),
        }
    }

    /// The tool, when its text is somebody else's.
    pub(super) fn fenced_tool(&self) -> Option<&Tool> {
        let by_tool = self.outcome.as_ref().err().is_none_or(|failure| failure.by_tool);
        self.tool.as_ref().filter(|tool| by_tool && tool.untrusted())
    }

    /// What the text needs, fence included.
    pub(super) fn needs(&self) -> usize {
        self.chars() + self.fenced_tool().map_or(0, |tool| fence_chars(tool.name()))
    }

    pub(super) fn own_cap(&self) -> usize {
        self.tool.as_ref().map_or(usize::MAX, own_cap)
    }
}

/// The cap that a result is final under, if it need not wait for what others leave.
pub(super) fn within(shares: Shares, ended: &Ended) -> Option<usize> {
    let own = ended.own_cap();
    (own <= shares.share || ended.needs() <= shares.share).then_some(own.min(shares.share))
}

/// Gives what small results left to the large ones: evenly, and what one of them does not need
/// again to the others.
pub(super) fn spend_the_rest(shares: Shares, settled: Vec<Settled>) -> Vec<(Settled, usize)> {
    let mut left: usize = settled
        .iter()
        .map(|settled| match settled {
            Settled::Done(result) => shares.share.saturating_sub(chars(&result.text)),
            Settled::Large(_) => 0,
        })
        .sum();
    let wish = |large: &Large| large.ended.needs().min(large.ended.own_cap());
    let mut caps = vec![shares.share; settled.len()];
    let mut large: Vec<(usize, usize)> = settled
        .iter()
        .enumerate()
        .filter_map(|(position, settled)| match settled {
            Settled::Large(large) => Some((wish(large), position)),
            Settled::Done(_) => None,
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

/// Cuts a text that is over its cap, and replaces data that is over the same cap once more.
pub(super) fn fit(ended: Ended, cap: usize, limits: &Limits, kept: Kept) -> Cut {
    let fence = ended.fenced_tool().map(|tool| tool.name().to_string());
    let cap = cap.min(ended.own_cap());
    let fence_takes = fence.as_deref().map_or(0, fence_chars);
    let shows_what_is_counted = ended.tool.as_ref().is_some_and(|tool| tool.is_framework());
    let mut made = Cut {
        body: String::new(),
        below: String::new(),
        marker: None,
        fence,
        code: None,
        structured: None,
        blocks: Vec::new(),
        cut_block: None,
        cost_usd: None,
        cause: kept.cause,
        abandoned: false,
        artifacts: kept.artifacts,
        produced_chars: 0,
    };
    let mut placed = Vec::new();
    match ended.outcome {
        Ok(output) => {
            (made.below, placed) = place(output.blocks, output.value.is_empty(), limits);
            made.body = output.value;
            let has_shape = ended.tool.as_ref().is_some_and(|tool| tool.output_schema().is_some());
            made.structured =
                output.structured.map(|data| structured::fit(data, cap, has_shape, &kept.data));
            made.cost_usd = output.cost_usd;
        }
        Err(failure) => {
            made.body = failure.message;
            made.code = Some(failure.code);
            made.cause = failure.cause.or(made.cause);
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

/// Lets blocks come along with the text that was cut: a text and a link as far as the text shows
/// them, what has bytes even where the line that stands for it is cut off.
fn come_along(made: &mut Cut, placed: Vec<Placed>, cap: usize, rest: &Rest) {
    let shown = made.below.len();
    let mut left = cap;
    for Placed { mut block, text: begins, end } in placed {
        let mut marker = None;
        if end > shown {
            match &mut block {
                ContentBlock::Text { text, .. } if shown > begins => {
                    marker = Some(marker_of(chars(text), rest));
                    *text = text.get(..shown - begins).unwrap_or_default().into();
                }
                ContentBlock::Text { .. } | ContentBlock::Link { .. } => continue,
                _ => {}
            }
        }
        let takes = block.chars() + marker.as_deref().map_or(0, |marker| chars(marker) + 1);
        if takes <= left {
            left -= takes;
            made.cut_block =
                made.cut_block.take().or(marker.map(|marker| (made.blocks.len(), marker)));
            made.blocks.push(block);
        }
    }
}

/// What says that something is missing, and how to read it.
pub(super) fn marker_of(total: usize, rest: &Rest) -> String {
    match rest {
        Rest::NotKept(None) => plain_marker_of(total),
        Rest::NotKept(Some(why)) => {
            format!("[truncated — {total} chars total; the rest was not kept: {why}]")
        }
        Rest::Artifact(id) => {
            format!("[truncated — {total} chars total; the rest: artifact_read {id}]")
        }
    }
}

/// The shortest form of it, which fits wherever anything does.
fn plain_marker_of(total: usize) -> String {
    format!("[truncated — {total} chars total; the rest was not kept]")
}

/// Cuts what a model reads to `cap` characters, with the fence and the line of the marker inside; says
/// how many there were.
fn cut(made: &mut Cut, cap: usize, fence_takes: usize, rest: &Rest) -> usize {
    let read = made.read();
    let total = chars(&read);
    let (end, marker) = place_of_cut(&read, total, made.body.len(), cap, fence_takes, rest);
    drop(read);
    // What has no other place shows its end too: that is often what matters.
    let is_lost = matches!(rest, Rest::NotKept(Some(_))) && marker.is_some();
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

/// Of a text that is cut at `end`, where to cut it instead, and where from there on its last part
/// begins that fits too; none where there is no room for both.
fn tail_of(text: &str, end: usize) -> Option<(usize, usize)> {
    let head = text.get(..end)?;
    let room = chars(head).checked_sub(chars(GAP))?;
    let last = room / 3;
    let (head_end, _) = head.char_indices().nth(room - last)?;
    let (tail, _) = text.char_indices().rev().nth(last.checked_sub(1)?)?;
    (tail > end).then(|| (before_escape(text, head_end), tail))
}

/// Where a text of `total` characters is cut of which the first `body` bytes belong together, and the
/// marker if it is. What is no longer than the marker stays as it is.
fn place_of_cut(
    text: &str,
    total: usize,
    body: usize,
    cap: usize,
    fence_takes: usize,
    rest: &Rest,
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

/// Where to cut a JSON text at or before `end`: behind the last whole element, as far out as
/// there is one in the last half, so that no string, number or row is left in pieces.
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

/// Steps back in front of a terminal escape sequence that the cut would leave open.
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

pub(super) fn chars(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// A text of its own, cut, with its marker.
    fn cut_text(text: &str, cap: usize) -> (String, Option<String>) {
        let (end, marker) = place_of_cut(text, chars(text), text.len(), cap, 0, &Rest::default());
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
        // Closing what is open makes it whole again: no row is in pieces.
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
