//! Reads files, and records what was read.

use std::{io::Read as _, sync::Arc, time::SystemTime};

use cap_std::fs::Metadata;
use toolcrib_core::{__internal::image_type, Digest, FileRead, ImageInfo, ToolContext, ToolError};

use super::{
    FilesHandle, decode,
    error::FileError,
    locate::{LocatedEntry, Purpose},
    part::{EDGE_CHARS, FileLines, FileRange},
    path::RelativePath,
    window::window,
    work_progress::{FileWork, WorkProgress},
};

/// A file that another program writes is read again this often before the read fails.
const ATTEMPTS: usize = 3;

/// The bytes that are read at a time.
const PIECE_BYTES: u64 = 1024 * 1024;

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

impl FileContent {
    pub(super) fn of(bytes: Vec<u8>) -> Self {
        Self { digest: Digest::of(&bytes), bytes, modified: None }
    }
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
            let size = content.bytes.len() as u64;
            let text = decode::text(content.bytes, Some("utf-8"), &written)?;
            lines_of((text, size), &written, first, count)
        };
        self.read_recorded(cx, path, lines).await
    }

    /// As [`read_lines`](Self::read_lines), or a whole image: PNG, JPEG, GIF or WebP.
    ///
    /// Of a text file over the limit of the folder, at most 1 MiB from the first line is returned, without
    /// the rest in memory. It is not recorded as read.
    ///
    /// # Errors
    /// As [`read_lines`](Self::read_lines); [`FileError::Encoding`], [`FileError::NoColumn`];
    /// [`FileError::Image`] for a damaged image.
    pub async fn read_part(
        &self,
        cx: &ToolContext,
        path: &str,
        range: FileRange,
    ) -> Result<FilePart, ToolError> {
        let path = RelativePath::parse(path).map_err(FileError::into_tool_error)?;
        self.run(cx, move |handle, cx, cancel| {
            let located = handle.top().locate(&path, Purpose::Read)?;
            let limit = handle.limits().max_file_bytes;
            if located.found.as_ref().is_some_and(|found| found.is_file() && found.len() > limit) {
                return window(&located, &range, cx, cancel).map(FilePart::Lines);
            }
            recorded(cx, located, limit, |content| {
                let bytes = content.bytes;
                if range.encoding.is_none() && image_type(&bytes).is_some() {
                    match ImageInfo::read(&bytes) {
                        Ok(info) => return Ok(FilePart::Image { info, bytes }),
                        // A text may begin like an image.
                        Err(_) if str::from_utf8(&bytes).is_ok() => {}
                        Err(error) => {
                            return Err(FileError::Image {
                                path: path.written().to_owned(),
                                error,
                            });
                        }
                    }
                }
                let size = bytes.len() as u64;
                let text = decode::text(bytes, range.encoding.as_deref(), path.written())?;
                let lines = lines_of((text, size), path.written(), range.first_line, range.lines)?;
                from_column(lines, path.written(), range.first_column).map(FilePart::Lines)
            })
        })
        .await
    }

    /// Reads, converts and records, outside the async runtime.
    async fn read_recorded<T: Send + 'static>(
        &self,
        cx: &ToolContext,
        path: &str,
        convert: impl FnOnce(FileContent) -> Result<T, FileError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let path = RelativePath::parse(path).map_err(FileError::into_tool_error)?;
        self.run(cx, move |handle, cx, _| {
            let located = handle.top().locate(&path, Purpose::Read)?;
            recorded(cx, located, handle.limits().max_file_bytes, convert)
        })
        .await
    }
}

/// Reads, converts and records a file. A content that cannot be converted is not recorded: its reader does
/// not know it.
fn recorded<T>(
    cx: &ToolContext,
    located: LocatedEntry,
    limit: u64,
    convert: impl FnOnce(FileContent) -> Result<T, FileError>,
) -> Result<T, FileError> {
    if located.found.is_none()
        && let Some(reads) = cx.reads()
    {
        // It may be created from now on.
        reads.forget(&located.path);
    }
    let content = read_file(cx, &located, limit)?;
    let read = record_of(cx, &content);
    let converted = convert(content)?;
    if let Some(reads) = cx.reads() {
        reads.record(located.path, read);
    }
    Ok(converted)
}

/// The record of a content that the call knows.
pub(super) fn record_of(cx: &ToolContext, content: &FileContent) -> FileRead {
    FileRead {
        digest: content.digest,
        size: content.bytes.len() as u64,
        modified: content.modified,
        turn_id: Arc::clone(cx.turn_id()),
        iteration: cx.iteration(),
    }
}

/// The content of a located file. One that changes while it is read is read again.
pub(super) fn read_file(
    cx: &ToolContext,
    located: &LocatedEntry,
    limit: u64,
) -> Result<FileContent, FileError> {
    for _ in 0..ATTEMPTS {
        let (file, before) = located.open_file()?;
        if before.len() > limit {
            return Err(FileError::TooLarge { path: located.written.clone(), limit });
        }
        // One byte more than expected shows that it grew, without another allocation.
        let most = before.len() + 1;
        let mut bytes = Vec::with_capacity(usize::try_from(most).unwrap_or_default());
        let progress =
            WorkProgress::new(cx, FileWork::Read { path: &located.written, size: before.len() });
        let mut rest = (&file).take(most);
        while let read @ 1.. = (&mut rest)
            .take(PIECE_BYTES)
            .read_to_end(&mut bytes)
            .map_err(|error| located.failed(error))?
        {
            progress.read(read);
        }
        let size = bytes.len();
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

fn lines_of(
    (mut text, size): (String, u64),
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
    Ok(FileLines {
        text,
        first,
        first_column: 1,
        before: String::new(),
        count,
        total: Some(total),
        size,
    })
}

/// The lines without the beginning of the first one.
fn from_column(mut lines: FileLines, path: &str, column: usize) -> Result<FileLines, FileError> {
    let first = lines.text.split('\n').next().unwrap_or_default();
    let Some(skipped) = column.checked_sub(1).filter(|skipped| *skipped > 0) else {
        return Ok(lines);
    };
    match first.char_indices().nth(skipped) {
        Some((at, _)) => {
            let edge = first.char_indices().nth(skipped.saturating_sub(EDGE_CHARS));
            let edge = edge.map_or(0, |(edge, _)| edge);
            let before = lines.text.drain(..at).as_str().get(edge..).unwrap_or_default().to_owned();
            Ok(FileLines { first_column: column, before, ..lines })
        }
        None => Err(FileError::NoColumn {
            path: path.to_owned(),
            line: lines.first,
            column,
            columns: first.chars().count(),
        }),
    }
}
