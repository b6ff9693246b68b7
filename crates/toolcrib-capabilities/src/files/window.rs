//! Lines of a file that is too large to be read whole.

use std::io::Read as _;

use encoding_rs::CoderResult;
use tokio_util::sync::CancellationToken;
use toolcrib_core::ToolContext;

use super::{
    decode::{Decoding, decoding},
    error::FileError,
    locate::LocatedEntry,
    part::{EDGE_CHARS, FileLines, FileRange},
    work_progress::{FileWork, WorkProgress},
};

/// The bytes that are read at a time.
const PIECE_BYTES: usize = 64 * 1024;

/// The most bytes of text that are returned, except for the end of a character.
const WINDOW_BYTES: usize = 1 << 20;

/// Reads a file up to the end of the wanted lines, in the memory of a window. The lines before them are
/// counted, and checked to be text.
pub(super) fn window(
    located: &LocatedEntry,
    range: &FileRange,
    cx: &ToolContext,
    cancel: &CancellationToken,
) -> Result<FileLines, FileError> {
    let (mut file, found) = located.open_file()?;
    let work = FileWork::Read { path: &located.written, size: found.len() };
    let progress = WorkProgress::new(cx, work);
    let mut window = Window::new(range);
    let mut piece = vec![0; PIECE_BYTES];
    let mut decoded = String::new();
    let mut decoding: Option<Decoding> = None;
    while !window.is_full {
        if cancel.is_cancelled() {
            return Err(FileError::Cancelled);
        }
        let read = file.read(&mut piece).map_err(|error| located.failed(error))?;
        progress.read(read);
        let mut input = piece.get(..read).unwrap_or_default();
        let decoding = match &mut decoding {
            Some(decoding) => decoding,
            begun => begun.insert(self::decoding(input, range.encoding.as_deref())?),
        };
        loop {
            decoded.clear();
            decoded.reserve(PIECE_BYTES);
            let (result, used, has_errors) =
                decoding.decoder.decode_to_string(input, &mut decoded, read == 0);
            if has_errors {
                let (path, kind) = (located.written.clone(), decoding.not_text);
                return Err(FileError::NotText { path, kind, size: found.len() });
            }
            window.push(&decoded);
            input = input.get(used..).unwrap_or_default();
            if result == CoderResult::InputEmpty || window.is_full {
                break;
            }
        }
        if read == 0 {
            break;
        }
    }
    window.finish(&located.written, found.len())
}

/// The wanted part of a text that comes in pieces.
struct Window<'a> {
    range: &'a FileRange,
    /// The line and the character in it that follow, from 1.
    line: usize,
    column: usize,
    /// The text of the line before the window.
    before: String,
    text: String,
    /// The line breaks in `text`.
    breaks: usize,
    is_full: bool,
}

impl<'a> Window<'a> {
    fn new(range: &'a FileRange) -> Self {
        let (before, text) = (String::new(), String::new());
        Self { range, line: 1, column: 1, before, text, breaks: 0, is_full: false }
    }

    fn push(&mut self, piece: &str) {
        let rest = self.after_skipped(piece);
        for line in rest.split_inclusive('\n') {
            if self.is_full {
                return;
            }
            let room = WINDOW_BYTES.saturating_sub(self.text.len());
            let end = (room..line.len()).find(|at| line.is_char_boundary(*at));
            self.text.push_str(line.get(..end.unwrap_or(line.len())).unwrap_or_default());
            self.breaks += usize::from(self.text.ends_with('\n'));
            self.is_full = self.breaks >= self.range.lines || self.text.len() >= WINDOW_BYTES;
        }
    }

    /// The rest of a piece, after the lines and characters before the window.
    fn after_skipped<'b>(&mut self, mut piece: &'b str) -> &'b str {
        let (first_line, first_column) = (self.range.first_line.max(1), self.range.first_column);
        while self.line < first_line {
            let Some(at) = memchr::memchr(b'\n', piece.as_bytes()) else {
                self.column += piece.len();
                return "";
            };
            piece = piece.get(at + 1..).unwrap_or_default();
            (self.line, self.column) = (self.line + 1, 1);
        }
        if self.text.is_empty() && first_column > 1 {
            for (at, c) in piece.char_indices() {
                if c == '\n' {
                    // There is no such character.
                    self.is_full = true;
                    return "";
                }
                if self.column >= first_column {
                    return piece.get(at..).unwrap_or_default();
                }
                if first_column - self.column <= EDGE_CHARS {
                    self.before.push(c);
                }
                self.column += 1;
            }
            return "";
        }
        piece
    }

    fn finish(mut self, path: &str, size: u64) -> Result<FileLines, FileError> {
        let (first, first_column) = (self.range.first_line.max(1), self.range.first_column.max(1));
        if self.text.is_empty() && (self.line < first || first_column == 1) {
            let lines = self.line - usize::from(self.column == 1);
            return Err(FileError::NoLine { path: path.to_owned(), line: first, lines });
        }
        if self.text.is_empty() {
            let (path, columns) = (path.to_owned(), self.column - 1);
            return Err(FileError::NoColumn { path, line: first, column: first_column, columns });
        }
        let is_broken = |text: &str| !text.ends_with('\n');
        if self.is_full && is_broken(&self.text) && self.breaks > 0 {
            // A window ends at a whole line.
            let end = self.text.rfind('\n').map_or(0, |at| at + 1);
            self.text.truncate(end);
        }
        let count = self.breaks + usize::from(is_broken(&self.text));
        let total = (!self.is_full).then(|| first + count - 1);
        Ok(FileLines {
            text: self.text,
            first,
            first_column,
            before: self.before,
            count,
            total,
            size,
        })
    }
}
