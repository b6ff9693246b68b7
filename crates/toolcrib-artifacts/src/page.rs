//! Bounded answers with pages.

use std::{fmt::Write as _, ops::Range};

use toolcrib_core::{ArtifactStoreError, Digest, ToolError};

use crate::content::Content;

/// The text of an empty answer, so that no answer is blank.
pub(crate) const NOTHING: &str = "(nothing)";

/// The minimum room of an answer, in characters, besides the status.
const LEAST_ROOM: usize = 40;

/// The maximum length of the status, in characters.
const STATUS_ROOM: usize = 240;

/// The number of bytes in one line of a hexadecimal dump.
const HEX_ROW: u64 = 16;

/// The requested part of an answer: its maximum size and its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    room: usize,
    from: u64,
}

impl Page {
    /// The first page of an answer with this maximum number of characters in total.
    pub fn first(chars: usize) -> Self {
        Self { room: chars.saturating_sub(STATUS_ROOM).max(LEAST_ROOM), from: 0 }
    }

    /// The page of a cursor from an earlier answer about the same content.
    ///
    /// # Errors
    /// `input_invalid` if the cursor is invalid, or belongs to other content.
    pub(crate) fn at(self, cursor: Option<&str>, content: &Content) -> Result<Self, ToolError> {
        let Some(cursor) = cursor else { return Ok(self) };
        let read = || {
            let (from, digest) = cursor.split_once('@')?;
            Some((from.parse().ok()?, digest))
        };
        let Some((from, digest)) = read() else {
            return Err(ToolError::input_invalid(
                "invalid `cursor`: pass the one of an earlier answer, with the same other \
                 arguments, or leave it out",
            ));
        };
        if digest != mark(&content.entry().digest) {
            return Err(ToolError::input_invalid(
                "`cursor` belongs to other content: omit it to start over",
            ));
        }
        Ok(Self { from, ..self })
    }

    /// The same page with less room, for an answer with other text before.
    #[must_use]
    pub fn less(self, chars: usize) -> Self {
        Self { room: self.room.saturating_sub(chars).max(LEAST_ROOM), ..self }
    }

    /// The maximum number of characters.
    pub fn room(&self) -> usize {
        self.room
    }

    /// The start: 0, or the [`Answer::next`] of the previous page.
    pub fn from(&self) -> u64 {
        self.from
    }
}

/// The digits of a digest in a cursor.
fn mark(digest: &Digest) -> String {
    digest.to_string().chars().take(8).collect()
}

/// An answer about an artifact, or a page of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answer {
    /// The text; at most [`Page::room`] characters.
    pub text: String,
    /// The position, such as `lines 1-20 of 9000`.
    pub status: Option<String>,
    /// The start of the next page, in the query's unit; `None` if the answer is complete.
    pub next: Option<u64>,
}

impl Answer {
    /// A complete answer with this text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// The answer as the model's text.
    pub(crate) fn rendered(self, content: &Content) -> String {
        let mut text = self.text;
        let status = self.status.unwrap_or_default();
        if text.is_empty() && (status.is_empty() || self.next.is_none()) {
            text.push_str(NOTHING);
        }
        match self.next {
            Some(next) => {
                let _ = write!(
                    text,
                    "\n[{status}{}for more, ask the same with cursor \"{next}@{}\"]",
                    if status.is_empty() { "" } else { "; " },
                    mark(&content.entry().digest)
                );
            }
            None if !status.is_empty() => {
                let _ = write!(text, "\n[{status}]");
            }
            None => {}
        }
        text
    }
}

/// Collects items, one per line, as far as they fit.
///
/// Items are added in order from the first on, with their position. Those before the page are
/// skipped, and the first one that does not fit starts the next page.
#[derive(Debug)]
pub struct Items {
    page: Page,
    position: u64,
    limit: u64,
    text: String,
    used: usize,
    shown: u64,
    next: Option<u64>,
}

impl Items {
    /// Empty; with at most `limit` items per page.
    pub fn new(page: Page, limit: u64) -> Self {
        Self { page, position: 0, limit, text: String::new(), used: 0, shown: 0, next: None }
    }

    /// Whether the next item is after the start of the page.
    pub fn wants_next(&self) -> bool {
        self.position >= self.page.from() && self.next.is_none()
    }

    /// Whether the page is full, and more items follow.
    pub fn is_full(&self) -> bool {
        self.next.is_some()
    }

    /// The number of shown items.
    pub fn shown(&self) -> u64 {
        self.shown
    }

    /// Skips items that were not read.
    pub fn skip(&mut self, count: u64) {
        self.position = self.position.saturating_add(count);
    }

    /// Adds an item, unless it is outside the page. An item longer than a whole page is truncated,
    /// with a note.
    pub fn push(&mut self, item: &str) {
        let position = self.position;
        self.position += 1;
        if position < self.page.from() || self.next.is_some() {
            return;
        }
        let (room, takes) = (self.page.room(), item.chars().count());
        let is_first = self.shown == 0;
        // Includes the preceding LF.
        let used = if is_first { takes } else { self.used + 1 + takes };
        if self.shown >= self.limit || (used > room && !is_first) {
            self.next = Some(position);
            return;
        }
        if !is_first {
            self.text.push('\n');
        }
        if used > room {
            let marker = format!("… [cut: {takes} chars]");
            let head = room.saturating_sub(marker.chars().count());
            self.text.extend(item.chars().take(head));
            self.text.push_str(&marker);
            self.used = room;
        } else {
            self.text.push_str(item);
            self.used = used;
        }
        self.shown += 1;
    }

    /// The answer; `name` is the plural noun of the items.
    pub fn answer(self, name: &str) -> Answer {
        let from = self.page.from();
        let status = match self.shown {
            0 => None,
            _ if from == 0 && self.next.is_none() => None,
            shown => Some(format!("{name} {}-{}", from + 1, from + shown)),
        };
        Answer { text: self.text, status, next: self.next }
    }
}

/// Shows a range of bytes from the page's offset on, as text or, if invalid, in hexadecimal.
pub(crate) fn show(
    content: &Content,
    range: Range<u64>,
    page: &Page,
) -> Result<Answer, ArtifactStoreError> {
    let start = page.from().clamp(range.start, range.end);
    let room = page.room();
    // The maximum size of a character, so that one whose end is not read does not fit either.
    let end = range.end.min(start.saturating_add(room as u64 * 4));
    let bytes = content.read(start..end)?;
    let (text, taken) = if memchr::memchr(0, &bytes).is_some() {
        hex(start, &bytes, room)
    } else {
        decoded(&bytes, room, end == range.end)
    };
    let to = start + taken;
    let next = (to < range.end).then_some(to);
    let status = (next.is_some() || start > range.start)
        .then(|| {
            let (first, last) = (content.line_of(start)?, content.line_of(to.saturating_sub(1))?);
            Ok::<_, ArtifactStoreError>(format!(
                "lines {}-{} of {}, bytes {start}-{to} of {}",
                first + 1,
                last + 1,
                content.lines(),
                content.bytes()
            ))
        })
        .transpose()?;
    Ok(Answer { text, status, next })
}

/// The text that fits, and its length in bytes. Truncated text ends after a line if one ends in the
/// second half.
fn decoded(bytes: &[u8], room: usize, is_end: bool) -> (String, u64) {
    let (mut text, mut taken, mut left) = (String::new(), 0, room);
    for chunk in bytes.utf8_chunks() {
        let cut = chunk.valid().char_indices().nth(left).map_or(chunk.valid().len(), |(at, _)| at);
        let shown = chunk.valid().get(..cut).unwrap_or_default();
        text.push_str(shown);
        taken += shown.len();
        left -= shown.chars().count();
        if left == 0 {
            break;
        }
        if !chunk.invalid().is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
            taken += chunk.invalid().len();
            left -= 1;
        }
    }
    if (taken < bytes.len() || !is_end)
        && let Some(feed) = text.rfind('\n').filter(|feed| *feed >= text.len() / 2)
        && let Some(behind) = bytes.get(..taken).and_then(|shown| memchr::memrchr(b'\n', shown))
    {
        text.truncate(feed);
        taken = behind + 1;
    }
    (text, taken as u64)
}

/// Bytes as `offset  hexadecimal  |text|`, as many rows as fit.
fn hex(start: u64, bytes: &[u8], room: usize) -> (String, u64) {
    let (mut text, mut taken) = (String::new(), 0);
    for row in bytes.chunks(usize::try_from(HEX_ROW).unwrap_or(16)) {
        let mut line = format!("{:08x} ", start + taken);
        for byte in row {
            let _ = write!(line, " {byte:02x}");
        }
        line.push_str("  |");
        line.extend(row.iter().map(|byte| match byte {
            b' '..=b'~' => char::from(*byte),
            _ => '.',
        }));
        line.push('|');
        if text.len() + line.len() + 1 > room && !text.is_empty() {
            break;
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&line);
        taken += row.len() as u64;
    }
    (text, taken)
}
