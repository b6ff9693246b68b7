//! Searches for the lines of an artifact that match a pattern.

mod pattern;
mod scan;

use std::{collections::VecDeque, fmt::Write as _, ops::ControlFlow};

use toolcrib_core::{
    __internal::counted, ArtifactStoreError, CancellationToken, ErrorCode, ToolError,
};

pub(crate) use self::pattern::{LONGEST_PATTERN, Pattern};
use self::scan::{Hit, scan};
use crate::{
    content::{Content, Line, Lines},
    page::{Answer, Page},
};

/// The maximum number of characters shown of a line.
const LINE_ROOM: usize = 400;

/// The maximum number of bytes read to show a line, with a CR and a LF.
const LINE_BYTES: usize = LINE_ROOM * 4 + 2;

/// The number of characters shown before a match in a longer line.
const LEAD: u64 = 100;

/// A search request.
pub(crate) struct Search {
    pub(crate) pattern: Pattern,
    /// The number of lines shown before and after each match.
    pub(crate) context: u64,
    /// The maximum number of matching lines.
    pub(crate) most: usize,
    /// Whether lines are shown with their numbers.
    pub(crate) numbers: bool,
}

impl Search {
    /// The matching lines from the page's offset on, with numbers from 1: `12:` before a match,
    /// `13-` before a context line.
    pub(crate) fn run(
        &self,
        content: &Content,
        page: &Page,
        cancellation: &CancellationToken,
    ) -> Result<Answer, ToolError> {
        let mut shown = SearchOutput::new(self, content, page);
        let mut failed = None;
        // One hit of lookahead, because its line may follow the previous one directly.
        let mut waiting = VecDeque::new();
        scan(content, &self.pattern, page.from(), cancellation, &mut |hit| {
            waiting.push_back(hit);
            if waiting.len() <= usize::from(self.context > 0) {
                return ControlFlow::Continue(());
            }
            let following = waiting.get(1).copied();
            match waiting.pop_front().map(|hit| shown.add(hit, following)) {
                Some(Err(error)) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
                Some(Ok(flow)) => flow,
                None => ControlFlow::Continue(()),
            }
        })?;
        if let Some(error) = failed {
            return Err(error.into());
        }
        while shown.next.is_none()
            && let Some(hit) = waiting.pop_front()
        {
            let following = waiting.front().copied();
            let _ = shown.add(hit, following)?;
        }
        if cancellation.is_cancelled() {
            return Err(ToolError::new(
                ErrorCode::Cancelled,
                "the search was cancelled before it finished",
            ));
        }
        Ok(shown.answer())
    }
}

/// The output of a search.
struct SearchOutput<'s> {
    search: &'s Search,
    content: &'s Content,
    room: usize,
    text: String,
    hits: usize,
    /// The line after the last shown one.
    next_line: u64,
    /// The offset to continue at when the page is full.
    next: Option<u64>,
    last_hit: u64,
}

impl<'s> SearchOutput<'s> {
    fn new(search: &'s Search, content: &'s Content, page: &Page) -> Self {
        Self {
            search,
            content,
            room: page.room(),
            text: String::new(),
            hits: 0,
            next_line: 0,
            next: None,
            last_hit: 0,
        }
    }

    /// Adds a matching line with its context.
    fn add(
        &mut self,
        hit: Hit,
        following: Option<Hit>,
    ) -> Result<ControlFlow<()>, ArtifactStoreError> {
        let context = self.search.context;
        let mut block = String::new();
        let first = hit.line.saturating_sub(context).max(self.next_line);
        if self.hits > 0 && context > 0 && first > self.next_line {
            block.push_str("--\n");
        }
        // Context lines that match too are shown with their own match.
        let last = following.map_or(u64::MAX, |next| next.line);
        let end = (hit.line + 1 + context).min(self.content.lines()).min(last);
        if context == 0 {
            self.write_hit(&mut block, hit)?;
        } else {
            let mut lines = self.content.lines_from(first)?;
            for number in first..end {
                if number == hit.line {
                    self.write_hit(&mut block, hit)?;
                    skip(&mut lines)?;
                } else if let Some(line) = lines.next(LINE_BYTES)? {
                    self.write_line(&mut block, &line);
                }
            }
        }
        let takes = block.chars().count();
        let is_first = self.hits == 0;
        if self.hits >= self.search.most || (takes > self.room && !is_first) {
            self.next = Some(hit.start);
            return Ok(ControlFlow::Break(()));
        }
        if is_first && takes > self.room {
            block = block.chars().take(self.room.saturating_sub(2)).collect();
            block.push_str("…\n");
        }
        self.room = self.room.saturating_sub(takes);
        self.text.push_str(&block);
        self.hits += 1;
        self.last_hit = hit.line;
        self.next_line = end;
        Ok(ControlFlow::Continue(()))
    }

    /// A matching line; if it is long, from before the match on.
    fn write_hit(&self, into: &mut String, hit: Hit) -> Result<(), ArtifactStoreError> {
        if self.search.numbers {
            let _ = write!(into, "{}:", hit.line + 1);
        }
        let from = match hit.found - hit.start {
            before if before > LINE_ROOM as u64 / 2 => hit.found - LEAD,
            _ => hit.start,
        };
        let ahead = self.content.read(from..from + LINE_BYTES as u64)?;
        let end = memchr::memchr(b'\n', &ahead);
        let bytes = ahead.get(..end.unwrap_or(ahead.len())).unwrap_or_default();
        let is_complete = end.is_some() || from + bytes.len() as u64 == self.content.bytes();
        write_cut(into, bytes, from > hit.start, !is_complete);
        Ok(())
    }

    fn write_line(&self, into: &mut String, line: &Line) {
        if self.search.numbers {
            let _ = write!(into, "{}-", line.number + 1);
        }
        write_cut(into, &line.bytes, false, !line.is_complete());
    }

    fn answer(mut self) -> Answer {
        if self.text.ends_with('\n') {
            self.text.pop();
        }
        let status = self.next.map(|_| {
            let (last, lines) = (self.last_hit + 1, self.content.lines());
            let hits = counted(self.hits as u64, "matching line");
            format!("{hits}, up to line {last} of {lines}")
        });
        if self.hits == 0 {
            self.text = "(no line matches)".to_owned();
        }
        Answer { text: self.text, status, next: self.next }
    }
}

fn skip(lines: &mut Lines<'_>) -> Result<(), ArtifactStoreError> {
    lines.next(0).map(|_| ())
}

/// A line of at most [`LINE_ROOM`] characters, with `…` for omitted text.
fn write_cut(into: &mut String, bytes: &[u8], is_cut_before: bool, is_cut_behind: bool) {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_suffix('\r').unwrap_or(&text);
    if is_cut_before {
        into.push('…');
    }
    match text.char_indices().nth(LINE_ROOM) {
        Some((end, _)) => {
            into.push_str(text.get(..end).unwrap_or_default());
            into.push('…');
        }
        None => {
            into.push_str(text);
            if is_cut_behind {
                into.push('…');
            }
        }
    }
    into.push('\n');
}
