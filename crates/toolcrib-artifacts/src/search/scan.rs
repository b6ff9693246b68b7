//! Scans a content for matching lines.
//!
//! A window of whole lines is searched at once. A line that is longer than a window is searched in
//! overlapping windows, so that memory and the time until a search can be stopped are bounded for
//! any content.

use std::ops::ControlFlow;

use memchr::{memchr, memchr_iter, memrchr};
use regex_automata::Input;
use toolcrib_core::{ArtifactStoreError, CancellationToken};

use super::pattern::Pattern;
use crate::content::Content;

/// The overlap of windows in a long line, as a divisor of the window: one quarter. In such a line,
/// a longer match may be missed.
const OVERLAP: usize = 4;

/// The number of bytes of lookahead, to detect the end of a word or a line.
const AHEAD: usize = 4;

/// A matching line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hit {
    /// The line's number, from 0.
    pub(crate) line: u64,
    /// The start of the line.
    pub(crate) start: u64,
    /// The start of the match.
    pub(crate) found: u64,
}

/// Calls back for each matching line, in order, starting with the line that begins at `from`.
pub(crate) fn scan(
    content: &Content,
    pattern: &Pattern,
    from: u64,
    cancellation: &CancellationToken,
    hit: &mut dyn FnMut(Hit) -> ControlFlow<()>,
) -> Result<(), ArtifactStoreError> {
    let total = content.bytes();
    let window = usize::try_from(total).unwrap_or(usize::MAX).min(pattern.window());
    let mut buffer = vec![0; window];
    let mut at = from;
    while at < total && !cancellation.is_cancelled() {
        let count = content.read_into(at, &mut buffer)?;
        let read = buffer.get(..count).unwrap_or_default();
        let is_rest = at + count as u64 >= total;
        let lines = match memrchr(b'\n', read) {
            _ if is_rest => read,
            Some(feed) => read.get(..=feed).unwrap_or_default(),
            None => {
                let (line, flow) =
                    scan_long_line(content, pattern, at, &mut buffer, cancellation, hit)?;
                if flow.is_break() {
                    return Ok(());
                }
                at = line;
                continue;
            }
        };
        if scan_lines(content, pattern, at, lines, hit)?.is_break() {
            return Ok(());
        }
        at += lines.len() as u64;
    }
    // The empty line after the last LF.
    let ends_with_feed = content.read(total.saturating_sub(1)..total)? == b"\n";
    if at == total && ends_with_feed && pattern.find(&Input::new("")).is_some() {
        let line = content.lines().saturating_sub(1);
        let _ = hit(Hit { line, start: total, found: total });
    }
    Ok(())
}

fn gone() -> ArtifactStoreError {
    ArtifactStoreError::Gone { source: std::io::ErrorKind::UnexpectedEof.into() }
}

/// Whole lines at an offset. The last may have no LF if it ends the content.
fn scan_lines(
    content: &Content,
    pattern: &Pattern,
    offset: u64,
    lines: &[u8],
    hit: &mut dyn FnMut(Hit) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, ArtifactStoreError> {
    // The position up to which lines were counted, and their number; counted only when a match is
    // found.
    let mut counted: Option<(usize, u64)> = None;
    let mut at = 0;
    while at < lines.len() {
        let Some(found) = pattern.find(&Input::new(lines).range(at..)) else { break };
        let before = lines.get(..found.start).unwrap_or_default();
        let start = memrchr(b'\n', before).map_or(0, |feed| feed + 1);
        if start >= lines.len() {
            // An empty match after the last LF belongs to the next window.
            break;
        }
        let (since, lines_before) = match counted {
            Some(counted) => counted,
            None => (0, content.line_of(offset)?),
        };
        let between = lines.get(since..start).unwrap_or_default();
        let line = lines_before + memchr_iter(b'\n', between).count() as u64;
        counted = Some((start, line));
        let of_found = |at: usize| offset + at as u64;
        if hit(Hit { line, start: of_found(start), found: of_found(found.start) }).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        let behind = lines.get(found.start..).unwrap_or_default();
        at = memchr(b'\n', behind).map_or(lines.len(), |feed| found.start + feed + 1);
    }
    Ok(ControlFlow::Continue(()))
}

/// A line that fills the buffer or more. Returns the start of the next one.
fn scan_long_line(
    content: &Content,
    pattern: &Pattern,
    start: u64,
    buffer: &mut [u8],
    cancellation: &CancellationToken,
    hit: &mut dyn FnMut(Hit) -> ControlFlow<()>,
) -> Result<(u64, ControlFlow<()>), ArtifactStoreError> {
    let line = content.line_of(start)?;
    let end = content.line_range(line..line + 1)?.end;
    let next = end + 1;
    let overlap = buffer.len() / OVERLAP;
    let mut at = start;
    while !cancellation.is_cancelled() {
        let count = content.read_into(at, buffer)?;
        let in_line = usize::try_from(end - at).unwrap_or(count).min(count);
        let window = buffer.get(..in_line).unwrap_or_default();
        let is_last = at + in_line as u64 == end;
        // The first byte of a later window is only used for look-behind.
        let from = usize::from(at > start).min(window.len());
        let to = if is_last { window.len() } else { window.len().saturating_sub(AHEAD) };
        if let Some(found) = pattern.find(&Input::new(window).range(from..to.max(from))) {
            return Ok((next, hit(Hit { line, start, found: at + found.start as u64 })));
        }
        if is_last {
            return Ok((next, ControlFlow::Continue(())));
        }
        if in_line <= overlap {
            return Err(gone());
        }
        at += (in_line - overlap) as u64;
    }
    Ok((next, ControlFlow::Break(())))
}
