//! Reads files, and records what was read.

use std::{io::Read as _, time::SystemTime};

use cap_std::fs::Metadata;
use toolcrib_core::{__internal::image_type, Digest, FileRead, ImageInfo, ToolContext, ToolError};

use super::{
    FilesHandle, decode,
    error::FileError,
    locate::{LocatedEntry, Purpose},
    path::RelativePath,
};

/// A file that another program writes is read again this often before the read fails.
const ATTEMPTS: usize = 3;

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileContent {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Their SHA-256 digest.
    pub digest: Digest,
    /// The time of the last change, where the file system has one.
    pub modified: Option<SystemTime>,
}

/// Some lines of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileLines {
    /// The lines, with their line ends.
    pub text: String,
    /// The number of the first line, from 1.
    pub first: usize,
    /// The number of lines in `text`.
    pub count: usize,
    /// The number of lines in the file.
    pub total: usize,
}

/// The part of a file that a model reads.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FilePart {
    /// Lines of a text.
    Lines(FileLines),
    /// An image.
    #[non_exhaustive]
    Image {
        /// Its media type and dimensions.
        info: ImageInfo,
        /// The content.
        bytes: Vec<u8>,
    },
}

impl FilesHandle {
    /// The content of a file. It is recorded in [`ToolContext::reads`], so that it can be written.
    ///
    /// # Errors
    /// A [`ToolError`] with a [`FileError`] as its cause.
    pub async fn read(&self, cx: &ToolContext, path: &str) -> Result<FileContent, ToolError> {
        self.read_recorded(cx, path, Ok).await
    }

    /// The content of a text file, in UTF-8.
    ///
    /// # Errors
    /// As [`read`](Self::read); [`FileError::NotText`].
    pub async fn read_text(&self, cx: &ToolContext, path: &str) -> Result<String, ToolError> {
        let written = path.to_owned();
        self.read_recorded(cx, path, move |content| {
            decode::text(content.bytes, Some("utf-8"), &written)
        })
        .await
    }

    /// At most `count` lines of a text file, from the line `first`, counted from 1. The whole file is
    /// read and recorded. An empty file has no lines, and its first line may be requested.
    ///
    /// # Errors
    /// As [`read_text`](Self::read_text); [`FileError::NoLine`].
    pub async fn read_lines(
        &self,
        cx: &ToolContext,
        path: &str,
        first: usize,
        count: usize,
    ) -> Result<FileLines, ToolError> {
        let written = path.to_owned();
        let lines = move |content: FileContent| {
            lines_of(decode::text(content.bytes, Some("utf-8"), &written)?, &written, first, count)
        };
        self.read_recorded(cx, path, lines).await
    }

    /// As [`read_lines`](Self::read_lines), or a whole image: PNG, JPEG, GIF or WebP. Text is read in the
    /// encoding with the name of the WHATWG; without one, in that of its byte order mark, else in UTF-8.
    ///
    /// # Errors
    /// As [`read_lines`](Self::read_lines); [`FileError::Encoding`]; [`FileError::Image`] for a damaged
    /// image.
    pub async fn read_part(
        &self,
        cx: &ToolContext,
        path: &str,
        encoding: Option<&str>,
        (first, count): (usize, usize),
    ) -> Result<FilePart, ToolError> {
        let (written, encoding) = (path.to_owned(), encoding.map(str::to_owned));
        self.read_recorded(cx, path, move |content| {
            let bytes = content.bytes;
            if encoding.is_none() && image_type(&bytes).is_some() {
                match ImageInfo::read(&bytes) {
                    Ok(info) => return Ok(FilePart::Image { info, bytes }),
                    // A text may begin like an image.
                    Err(_) if str::from_utf8(&bytes).is_ok() => {}
                    Err(error) => return Err(FileError::Image { path: written, error }),
                }
            }
            let text = decode::text(bytes, encoding.as_deref(), &written)?;
            lines_of(text, &written, first, count).map(FilePart::Lines)
        })
        .await
    }

    /// Reads, converts and records, outside the async runtime. A content that cannot be converted
    /// is not recorded: its reader does not know it.
    async fn read_recorded<T: Send + 'static>(
        &self,
        cx: &ToolContext,
        path: &str,
        convert: impl FnOnce(FileContent) -> Result<T, FileError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let path = RelativePath::parse(path).map_err(FileError::into_tool_error)?;
        self.run(cx, move |handle, cx, _| {
            let located = handle.top().locate(&path, Purpose::Read)?;
            if located.found.is_none()
                && let Some(reads) = cx.reads()
            {
                // It may be created from now on.
                reads.forget(&located.path);
            }
            let content = read_file(&located, handle.limits().max_file_bytes)?;
            let read = record_of(cx, &content);
            let converted = convert(content)?;
            if let Some(reads) = cx.reads() {
                reads.record(located.path, read);
            }
            Ok(converted)
        })
        .await
    }
}

/// The record of a content that the call knows.
pub(super) fn record_of(cx: &ToolContext, content: &FileContent) -> FileRead {
    FileRead {
        digest: content.digest,
        size: content.bytes.len() as u64,
        modified: content.modified,
        turn_id: cx.turn_id().into(),
        iteration: cx.iteration(),
    }
}

/// The content of a located file. One that changes while it is read is read again.
pub(super) fn read_file(located: &LocatedEntry, limit: u64) -> Result<FileContent, FileError> {
    for _ in 0..ATTEMPTS {
        let (file, before) = located.open_file()?;
        if before.len() > limit {
            return Err(FileError::TooLarge { path: located.written.clone(), limit });
        }
        // One byte more than expected shows that it grew, without another allocation.
        let most = before.len() + 1;
        let mut bytes = Vec::with_capacity(usize::try_from(most).unwrap_or_default());
        let read = (&file).take(most).read_to_end(&mut bytes);
        let size = read.map_err(|error| located.failed(error))?;
        let after = file.metadata().map_err(|error| located.failed(error))?;
        if stamp(&before) == stamp(&after) && size as u64 == after.len() {
            let modified = modified(&after);
            return Ok(FileContent { digest: Digest::of(&bytes), bytes, modified });
        }
    }
    Err(FileError::Unsettled { path: located.written.clone() })
}

fn stamp(found: &Metadata) -> (u64, Option<SystemTime>) {
    (found.len(), modified(found))
}

pub(super) fn modified(found: &Metadata) -> Option<SystemTime> {
    found.modified().ok().map(cap_std::time::SystemTime::into_std)
}

/// The text of a content in UTF-8, byte for byte, as an edit needs it.
pub(super) fn text_of(bytes: Vec<u8>, path: &str) -> Result<String, FileError> {
    String::from_utf8(bytes).map_err(|error| FileError::NotText {
        path: path.to_owned(),
        kind: "not text in UTF-8, and so cannot be edited",
        size: error.as_bytes().len() as u64,
    })
}

fn lines_of(
    mut text: String,
    path: &str,
    first: usize,
    count: usize,
) -> Result<FileLines, FileError> {
    let bytes = text.as_bytes();
    let breaks = memchr::memchr_iter(b'\n', bytes).count();
    let total = breaks + usize::from(!matches!(bytes.last(), None | Some(b'\n')));
    let first = first.max(1);
    if first > total.max(1) {
        return Err(FileError::NoLine { path: path.to_owned(), line: first, lines: total });
    }
    // The byte after a line break, from 0, from whichever end is nearer.
    let after = |at: usize| {
        let found = if at < breaks / 2 {
            memchr::memchr_iter(b'\n', bytes).nth(at)
        } else {
            memchr::memrchr_iter(b'\n', bytes).nth(breaks.saturating_sub(at + 1))
        };
        found.map_or(bytes.len(), |found| found + 1)
    };
    let left = total.saturating_sub(first - 1);
    let count = count.min(left);
    let start = if first == 1 { 0 } else { after(first - 2) };
    let end = match count {
        0 => start,
        _ if count == left => bytes.len(),
        _ => after(first + count - 2),
    };
    // In place, since it may be the whole file.
    text.truncate(end);
    drop(text.drain(..start));
    text.shrink_to_fit();
    Ok(FileLines { text, first, count, total })
}
