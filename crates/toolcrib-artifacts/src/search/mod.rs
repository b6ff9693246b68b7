//! The lines of an artifact that a pattern matches.

mod pattern;
mod scan;

use std::{collections::VecDeque, fmt::Write as _, ops::ControlFlow};

use toolcrib_core::{CancellationToken, SpoolError, ToolError};

pub(crate) use self::pattern::{LONGEST_PATTERN, Pattern};
use self::scan::{Hit, scan};
use crate::{
    content::{Content, Line, Lines},
    page::{Answer, Page, counted},
};

/// How many characters of a line are shown.
const LINE_ROOM: usize = 400;

/// How many bytes of a line are read at most to show it, with a CR and a LF.
const LINE_BYTES: usize = LINE_ROOM * 4 + 2;

/// How many characters in front of a match are shown, in a line that is longer.
const LEAD: u64 = 100;

/// What is looked for.
pub(crate) struct Search {
    pub(crate) pattern: Pattern,
    /// How many lines in front of and behind each match are shown.
    pub(crate) context: u64,
    /// How many matching lines are shown at most.
    pub(crate) most: usize,
    /// Whether lines are shown with their numbers.
    pub(crate) numbers: bool,
}

impl Search {
    /// The lines that match, from the page's offset on, each with its number from 1: `12:` before a
    /// match, `13-` before a line beside one.
    pub(crate) fn run(
        &self,
        content: &Content,
        page: &Page,
        cancellation: &CancellationToken,
    ) -> Result<Answer, ToolError> {
        let mut shown = Shown::new(self, content, page);
        let mut failed = None;
        // One hit is looked ahead of, because its line may be beside the one before.
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
                toolcrib_core::ErrorCode::Cancelled,
                "the search was stopped before it was through",
            ));
        }
        Ok(shown.answer())
    }
}

/// The lines that are shown.
struct Shown<'s> {
    search: &'s Search,
    content: &'s Content,
    room: usize,
    text: String,
    hits: usize,
    /// The line behind the last that is shown.
    next_line: u64,
    /// Where to go on when there is no room.
    next: Option<u64>,
    last_hit: u64,
}

impl<'s> Shown<'s> {
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

    /// Shows a line that matches, with those beside it.
    fn add(&mut self, hit: Hit, following: Option<Hit>) -> Result<ControlFlow<()>, SpoolError> {
        let context = self.search.context;
        let mut block = String::new();
        let first = hit.line.saturating_sub(context).max(self.next_line);
        if self.hits > 0 && context > 0 && first > self.next_line {
            block.push_str("--\n");
        }
        // What is beside a line that matches too is shown with that one.
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

    /// A line that matches, from in front of the match on if it is long.
    fn write_hit(&self, into: &mut String, hit: Hit) -> Result<(), SpoolError> {
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
        let is_whole = end.is_some() || from + bytes.len() as u64 == self.content.bytes();
        write_cut(into, bytes, from > hit.start, !is_whole);
        Ok(())
    }

    fn write_line(&self, into: &mut String, line: &Line) {
        if self.search.numbers {
            let _ = write!(into, "{}-", line.number + 1);
        }
        write_cut(into, &line.bytes, false, !line.is_whole());
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

fn skip(lines: &mut Lines<'_>) -> Result<(), SpoolError> {
    lines.next(0).map(|_| ())
}

/// A line of at most [`LINE_ROOM`] characters, with `…` where something is left out.
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
