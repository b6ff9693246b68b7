//! The bytes of an artifact, read in bounded pieces.

use std::{
    io::{self, Read},
    ops::Range,
};

use memchr::{memchr, memchr_iter};
use toolcrib_core::{SpoolEntry, SpoolError, Spooled};

/// What some programs put in front of a text to say that it is UTF-8. It is no part of the text.
pub(crate) const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// How much is read at once where something is looked for.
pub(crate) const PIECE: usize = 64 * 1024;

/// The content of an artifact: what an [`ArtifactKind`](crate::ArtifactKind) reads. It may be larger
/// than memory, so everything here takes a range or goes through it piece by piece. Lines are counted
/// from 0.
#[derive(Debug, Clone)]
pub struct Content(Spooled);

impl Content {
    /// What was kept.
    pub fn new(spooled: Spooled) -> Self {
        Self(spooled)
    }

    /// What is known of it.
    pub fn entry(&self) -> &SpoolEntry {
        &self.0.entry
    }

    /// How many bytes there are.
    pub fn bytes(&self) -> u64 {
        self.0.lines.bytes()
    }

    /// How many lines there are: none in nothing, and one more behind a last LF, which is empty.
    pub fn lines(&self) -> u64 {
        self.0.lines.lines()
    }

    /// So many of the last lines, of which the empty one behind a last LF is none: who asks for the end
    /// of a log means what was written there.
    ///
    /// # Errors
    /// [`SpoolError`] when the end cannot be read.
    pub(crate) fn last_lines(&self, count: u64) -> Result<Range<u64>, SpoolError> {
        let last = self.read(self.bytes().saturating_sub(1)..self.bytes())?;
        let end = self.lines() - u64::from(last == b"\n");
        Ok(end.saturating_sub(count)..end)
    }

    /// The bytes of a range, as far as they are there. All of them come into memory.
    ///
    /// # Errors
    /// [`SpoolError`] when they cannot be read.
    pub fn read(&self, range: Range<u64>) -> Result<Vec<u8>, SpoolError> {
        let range = self.clamped(range);
        let length = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let mut bytes = vec![0; length];
        let count = self.0.reader.read_at(range.start, &mut bytes)?;
        if count < length {
            return Err(SpoolError::Gone { source: io::ErrorKind::UnexpectedEof.into() });
        }
        Ok(bytes)
    }

    /// Fills a buffer from an offset on; fewer bytes only at the end.
    pub(crate) fn read_into(&self, offset: u64, into: &mut [u8]) -> Result<usize, SpoolError> {
        self.0.reader.read_at(offset, into)
    }

    /// A range as a stream, buffered.
    pub fn stream(&self, range: Range<u64>) -> ContentStream<'_> {
        let range = self.clamped(range);
        ContentStream { content: self, range, buffer: Vec::new(), at: 0 }
    }

    /// Where a line begins; one behind the last begins where the content ends. Reads 64 KiB.
    ///
    /// # Errors
    /// [`SpoolError`] when they cannot be read.
    pub fn line_start(&self, line: u64) -> Result<u64, SpoolError> {
        let Some((block, feeds)) = self.0.lines.place_of_line(line) else {
            return Ok(self.bytes());
        };
        let Some(skip) = usize::try_from(feeds).ok().and_then(|feeds| feeds.checked_sub(1)) else {
            return Ok(block);
        };
        let bytes = self.read(block..block + PIECE as u64)?;
        let feed = memchr_iter(b'\n', &bytes).nth(skip);
        feed.map(|at| block + at as u64 + 1)
            .ok_or_else(|| SpoolError::Gone { source: io::ErrorKind::InvalidData.into() })
    }

    /// The bytes of lines, without the LF that ends the last of them.
    ///
    /// # Errors
    /// [`SpoolError`] when they cannot be read.
    pub fn line_range(&self, lines: Range<u64>) -> Result<Range<u64>, SpoolError> {
        let start = self.line_start(lines.start)?;
        if lines.end <= lines.start {
            return Ok(start..start);
        }
        let end = self.line_start(lines.end)?;
        let feed_behind = lines.end < self.lines();
        Ok(start..end - u64::from(feed_behind))
    }

    /// The line that a byte is in. Reads 64 KiB.
    ///
    /// # Errors
    /// [`SpoolError`] when they cannot be read.
    pub fn line_of(&self, offset: u64) -> Result<u64, SpoolError> {
        let offset = offset.min(self.bytes());
        let (block, before) = self.0.lines.block_of(offset);
        let bytes = self.read(block..offset)?;
        Ok(before + memchr_iter(b'\n', &bytes).count() as u64)
    }

    /// Goes through the lines, from one on.
    ///
    /// # Errors
    /// [`SpoolError`] when its start cannot be found.
    pub fn lines_from(&self, line: u64) -> Result<Lines<'_>, SpoolError> {
        let start = self.line_start(line)?;
        let mut stream = self.stream(start..self.bytes());
        stream.buffer.reserve_exact(PIECE);
        Ok(Lines { stream, next: line, start })
    }

    fn clamped(&self, range: Range<u64>) -> Range<u64> {
        let end = range.end.min(self.bytes());
        range.start.min(end)..end
    }
}

/// A range of a [`Content`], read through a buffer of 64 KiB.
pub struct ContentStream<'c> {
    content: &'c Content,
    /// What is not in the buffer yet.
    range: Range<u64>,
    buffer: Vec<u8>,
    at: usize,
}

impl ContentStream<'_> {
    /// What is in the buffer and not taken yet; filled if there is nothing. Empty at the end.
    fn fill(&mut self) -> Result<&[u8], SpoolError> {
        if self.at >= self.buffer.len() {
            let end = self.range.end.min(self.range.start + PIECE as u64);
            let length = usize::try_from(end - self.range.start).unwrap_or(PIECE);
            self.buffer.resize(length, 0);
            self.at = 0;
            let count = self.content.read_into(self.range.start, &mut self.buffer)?;
            if count < length {
                return Err(SpoolError::Gone { source: io::ErrorKind::UnexpectedEof.into() });
            }
            self.range.start = end;
        }
        Ok(self.buffer.get(self.at..).unwrap_or_default())
    }

    fn advance(&mut self, count: usize) {
        self.at += count;
    }
}

impl Read for ContentStream<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let there = self.fill().map_err(io::Error::other)?;
        let count = there.len().min(into.len());
        if let (Some(to), Some(from)) = (into.get_mut(..count), there.get(..count)) {
            to.copy_from_slice(from);
        }
        self.advance(count);
        Ok(count)
    }
}

/// The lines of a [`Content`], one after the other, each as far as whoever asks has room for it.
pub struct Lines<'c> {
    stream: ContentStream<'c>,
    next: u64,
    start: u64,
}

/// One line, or its beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Which, from 0.
    pub number: u64,
    /// Where it begins.
    pub start: u64,
    /// How many bytes it has, without the LF.
    pub length: u64,
    /// Its first bytes: all of them, or as many as were asked for.
    pub bytes: Vec<u8>,
}

impl Line {
    /// Whether `bytes` is all of it.
    pub fn is_whole(&self) -> bool {
        self.bytes.len() as u64 == self.length
    }

    /// The line as text, without a CR at its end, and the first without a byte order mark. Bytes that
    /// are no UTF-8 become U+FFFD.
    pub fn text(&self) -> String {
        let bytes = self.bytes.strip_suffix(b"\r").unwrap_or(&self.bytes);
        String::from_utf8_lossy(self.behind_mark(bytes)).into_owned()
    }

    /// Bytes of this line, without a byte order mark if it is the first.
    pub(crate) fn behind_mark<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        let behind = bytes.strip_prefix(BYTE_ORDER_MARK).filter(|_| self.number == 0);
        behind.unwrap_or(bytes)
    }
}

impl Lines<'_> {
    /// The next line, with at most `room` of its bytes. `None` behind the last.
    ///
    /// # Errors
    /// [`SpoolError`] when it cannot be read.
    pub fn next(&mut self, room: usize) -> Result<Option<Line>, SpoolError> {
        let content = self.stream.content;
        if self.next >= content.lines() {
            return Ok(None);
        }
        let mut line = Line { number: self.next, start: self.start, length: 0, bytes: Vec::new() };
        self.next += 1;
        loop {
            let there = self.stream.fill()?;
            if there.is_empty() {
                break;
            }
            let feed = memchr(b'\n', there);
            let part = there.get(..feed.unwrap_or(there.len())).unwrap_or_default();
            let wanted = room.saturating_sub(line.bytes.len()).min(part.len());
            line.bytes.extend_from_slice(part.get(..wanted).unwrap_or_default());
            line.length += part.len() as u64;
            let taken = part.len() + usize::from(feed.is_some());
            self.stream.advance(taken);
            if feed.is_some() {
                break;
            }
            if line.length > 4 * PIECE as u64 && line.bytes.len() >= room {
                // A long way to its end: the index knows it.
                let end = content.line_range(line.number..self.next)?.end;
                line.length = end - line.start;
                self.stream = content.stream(end + 1..content.bytes());
                break;
            }
        }
        self.start = line.start + line.length + 1;
        Ok(Some(line))
    }
}
