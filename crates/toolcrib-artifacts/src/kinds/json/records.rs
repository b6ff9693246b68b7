//! Reading of documents and records, and their errors.

use std::io::{self, Read};

use toolcrib_core::{ArtifactStoreError, CancellationToken, ToolError};

use crate::{
    content::{BYTE_ORDER_MARK, Content, ContentStream},
    kinds::kind::QueryRequest,
    page::Answer,
};

/// The maximum length of a line of `jsonl`, in bytes.
const LONGEST_RECORD: usize = 16 * 1024 * 1024;

/// The lines of a `jsonl` that are invalid JSON.
#[derive(Default)]
pub(super) struct InvalidLines {
    count: u64,
    first: Option<String>,
}

impl InvalidLines {
    pub(super) fn add(&mut self, line: u64, error: &serde_json::Error) {
        self.count += 1;
        self.first.get_or_insert_with(|| format!("line {}: {}", line + 1, reason(error)));
    }

    pub(super) fn tell(self, answer: &mut Answer) {
        if let Some(first) = self.first {
            add(answer, format!("skipped as invalid JSON: {}, the first is {first}", self.count));
        }
    }
}

pub(super) fn add(answer: &mut Answer, what: String) {
    answer.status = Some(match answer.status.take() {
        Some(status) => format!("{status}; {what}"),
        None => what,
    });
}

/// Calls back with each record and its line, from 0, until the callback returns that it has enough.
pub(super) fn each_record(
    asked: &QueryRequest<'_>,
    mut record: impl FnMut(u64, &[u8]) -> Result<bool, ToolError>,
) -> Result<(), ToolError> {
    let content: &Content = asked.content;
    let mut lines = content.lines_from(0)?;
    while let Some(line) = lines.next(LONGEST_RECORD)? {
        asked.check_cancelled()?;
        if !line.is_complete() {
            return Err(ToolError::input_invalid(format!(
                "line {} is longer than {LONGEST_RECORD} bytes; read it with artifact_read",
                line.number + 1
            )));
        }
        let bytes = line.behind_mark(&line.bytes);
        if bytes.trim_ascii().is_empty() {
            continue;
        }
        if !record(line.number, bytes)? {
            break;
        }
    }
    Ok(())
}

/// The problem of a document that begins at a line, from 0, for the model.
pub(super) fn broken(error: &serde_json::Error, line: u64) -> ToolError {
    ToolError::failed(format!(
        "{}, at line {}, column {}; use artifact_read or artifact_search instead",
        reason(error),
        line + error.line() as u64,
        error.column()
    ))
}

fn reason(error: &serde_json::Error) -> String {
    let said = error.to_string();
    if error.is_eof() {
        "it is cut off: the JSON ends in the middle".to_owned()
    } else if said.starts_with("recursion limit") {
        format!("it nests deeper than {} levels", toolcrib_core::__internal::DEEPEST_JSON)
    } else if said.starts_with("number out of range") {
        "a number in it is too large to be read as one".to_owned()
    } else if said.starts_with("trailing characters") {
        "there is content after the JSON document".to_owned()
    } else {
        let what = said.split(" at line ").next().unwrap_or_default();
        format!("it is not valid JSON: {what}")
    }
}

/// A stream that fails after the call was cancelled.
pub(super) struct CancellableStream<'a> {
    stream: ContentStream<'a>,
    cancellation: &'a CancellationToken,
    read: u32,
}

impl<'a> CancellableStream<'a> {
    pub(super) fn new(asked: &QueryRequest<'a>) -> Result<Self, ArtifactStoreError> {
        let content = asked.content;
        let mark = BYTE_ORDER_MARK.len() as u64;
        let start = if content.read(0..mark)? == BYTE_ORDER_MARK { mark } else { 0 };
        let stream = content.stream(start..content.bytes());
        Ok(Self { stream, cancellation: asked.cancellation, read: 0 })
    }
}

impl Read for CancellableStream<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        // Checked at intervals: bytes are read one at a time.
        self.read = self.read.wrapping_add(1);
        if self.read.is_multiple_of(1 << 16) && self.cancellation.is_cancelled() {
            return Err(io::Error::other("the call was cancelled"));
        }
        self.stream.read(into)
    }
}
