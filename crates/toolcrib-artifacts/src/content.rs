//! The bytes of an artifact, read in bounded pieces.

use std::{
    io::{self, Read},
    ops::Range,
};

use memchr::{memchr, memchr_iter};
use toolcrib_core::{ArtifactEntry, ArtifactStoreError, StoredBytes};

/// The UTF-8 byte order mark, which some programs write at the start of a text. Not part of the
/// text.
pub(crate) const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The number of bytes read at once in searches.
pub(crate) const PIECE: usize = 64 * 1024;

/// The content of an artifact, as read by an [`ArtifactKind`](crate::ArtifactKind). It may be
/// larger than memory, so all methods take a range or read it piece by piece. Lines are counted
/// from 0.
#[derive(Debug, Clone)]
pub struct Content(StoredBytes);

impl Content {
    /// The content of a stored artifact.
    pub fn new(stored: StoredBytes) -> Self {
        Self(stored)
    }

    /// The entry of the artifact in its store.
    pub fn entry(&self) -> &ArtifactEntry {
        &self.0.entry
    }

    /// The number of bytes.
    pub fn bytes(&self) -> u64 {
        self.0.lines.bytes()
    }

    /// The number of lines: none if empty, and one more, empty line after a final LF.
    pub fn lines(&self) -> u64 {
        self.0.lines.lines()
    }

    /// The last lines, excluding the empty one after a final LF: a request for the end of a log
    /// means its last written lines.
    ///
    /// # Errors
    /// [`ArtifactStoreError`] if the end cannot be read.
    pub(crate) fn last_lines(&self, count: u64) -> Result<Range<u64>, ArtifactStoreError> {
        let last = self.read(self.bytes().saturating_sub(1)..self.bytes())?;
        let end = self.lines() - u64::from(last == b"\n");
        Ok(end.saturating_sub(count)..end)
    }

    /// The existing bytes of a range, all in memory.
    ///
    /// # Errors
    /// [`ArtifactStoreError`] if they cannot be read.
    pub fn read(&self, range: Range<u64>) -> Result<Vec<u8>, ArtifactStoreError> {
        let range = self.clamped(range);
        let length = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let mut bytes = vec![0; length];
        let count = self.0.reader.read_at(range.start, &mut bytes)?;
        if count < length {
            return Err(ArtifactStoreError::Gone { source: io::ErrorKind::UnexpectedEof.into() });
        }
        Ok(bytes)
    }

    /// Fills a buffer from an offset on; fewer bytes only at the end.
    pub(crate) fn read_into(
        &self,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, ArtifactStoreError> {
        self.0.reader.read_at(offset, into)
    }

    /// A buffered stream of a range.
    pub fn stream(&self, range: Range<u64>) -> ContentStream<'_> {
        let range = self.clamped(range);
        ContentStream { content: self, range, buffer: Vec::new(), at: 0 }
    }

    /// The start offset of a line; after the last line, the end of the content. Reads 64 KiB.
    ///
    /// # Errors
    /// [`ArtifactStoreError`] if they cannot be read.
    pub fn line_start(&self, line: u64) -> Result<u64, ArtifactStoreError> {
        let Some((block, feeds)) = self.0.lines.place_of_line(line) else {
            return Ok(self.bytes());
        };
        let Some(skip) = usize::try_from(feeds).ok().and_then(|feeds| feeds.checked_sub(1)) else {
            return Ok(block);
        };
        let bytes = self.read(block..block + PIECE as u64)?;
        let feed = memchr_iter(b'\n', &bytes).nth(skip);
        feed.map(|at| block + at as u64 + 1)
            .ok_or_else(|| ArtifactStoreError::Gone { source: io::ErrorKind::InvalidData.into() })
    }

    /// The byte range of lines, without the final LF.
    ///
    /// # Errors
    /// [`ArtifactStoreError`] if they cannot be read.
    pub fn line_range(&self, lines: Range<u64>) -> Result<Range<u64>, ArtifactStoreError> {
        let start = self.line_start(lines.start)?;
        if lines.end <= lines.start {
            return Ok(start..start);
        }
        let end = self.line_start(lines.end)?;
        let feed_behind = lines.end < self.lines();
        Ok(start..end - u64::from(feed_behind))
    }

    /// The line that contains a byte. Reads 64 KiB.
    ///
    /// # Errors
    /// [`ArtifactStoreError`] if they cannot be read.
    pub fn line_of(&self, offset: u64) -> Result<u64, ArtifactStoreError> {
        let offset = offset.min(self.bytes());
        let (block, before) = self.0.lines.block_of(offset);
        let bytes = self.read(block..offset)?;
        Ok(before + memchr_iter(b'\n', &bytes).count() as u64)
    }

    /// Iterates over the lines, starting at one.
    ///
    /// # Errors
    /// [`ArtifactStoreError`] if its start cannot be found.
    pub fn lines_from(&self, line: u64) -> Result<Lines<'_>, ArtifactStoreError> {
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
    /// The range that is not in the buffer yet.
    range: Range<u64>,
    buffer: Vec<u8>,
    at: usize,
}

impl ContentStream<'_> {
    /// The unread part of the buffer; refilled if empty. Empty at the end.
    fn fill(&mut self) -> Result<&[u8], ArtifactStoreError> {
        if self.at >= self.buffer.len() {
            let end = self.range.end.min(self.range.start + PIECE as u64);
            let length = usize::try_from(end - self.range.start).unwrap_or(PIECE);
            self.buffer.resize(length, 0);
            self.at = 0;
            let count = self.content.read_into(self.range.start, &mut self.buffer)?;
            if count < length {
                return Err(ArtifactStoreError::Gone {
                    source: io::ErrorKind::UnexpectedEof.into(),
                });
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

/// Iterates over the lines of a [`Content`], each up to a maximum length.
pub struct Lines<'c> {
    stream: ContentStream<'c>,
    next: u64,
    start: u64,
}

/// A line, or its beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The line's number, from 0.
    pub number: u64,
    /// The start offset.
    pub start: u64,
    /// The length in bytes, without the LF.
    pub length: u64,
    /// The first bytes: all, or as many as requested.
    pub bytes: Vec<u8>,
}

impl Line {
    /// Whether `bytes` is the whole line.
    pub fn is_complete(&self) -> bool {
        self.bytes.len() as u64 == self.length
    }

    /// The line as text, without a CR at its end, and the first without a byte order mark. Invalid
    /// UTF-8 becomes U+FFFD.
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
    /// The next line, with at most `room` of its bytes. `None` after the last.
    ///
    /// # Errors
    /// [`ArtifactStoreError`] if it cannot be read.
    pub fn next(&mut self, room: usize) -> Result<Option<Line>, ArtifactStoreError> {
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
                // The end may be far away: the index has it.
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
