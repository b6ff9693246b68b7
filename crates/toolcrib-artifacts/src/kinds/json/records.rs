//! Documents and records as they are read, and what is wrong with them.

use std::io::{self, Read};

use toolcrib_core::{SpoolError, ToolError};

use crate::{
    content::{BYTE_ORDER_MARK, Content, ContentStream},
    kinds::Asked,
    page::Answer,
};

/// How long a line of `jsonl` may be, in bytes.
const LONGEST_RECORD: usize = 16 * 1024 * 1024;

/// The lines of a `jsonl` that are no JSON.
#[derive(Default)]
pub(super) struct Broken {
    count: u64,
    first: Option<String>,
}

impl Broken {
    pub(super) fn add(&mut self, line: u64, error: &serde_json::Error) {
        self.count += 1;
        self.first.get_or_insert_with(|| format!("line {}: {}", line + 1, reason(error)));
    }

    pub(super) fn tell(self, answer: &mut Answer) {
        if let Some(first) = self.first {
            add(answer, format!("left out as no JSON: {}, the first is {first}", self.count));
        }
    }
}

pub(super) fn add(answer: &mut Answer, what: String) {
    answer.status = Some(match answer.status.take() {
        Some(status) => format!("{status}; {what}"),
        None => what,
    });
}

/// Calls back with each record and its line, from 0, until it says that this is enough.
pub(super) fn each_record(
    asked: &Asked<'_>,
    mut record: impl FnMut(u64, &[u8]) -> Result<bool, ToolError>,
) -> Result<(), ToolError> {
    let content: &Content = asked.content;
    let mut lines = content.lines_from(0)?;
    while let Some(line) = lines.next(LONGEST_RECORD)? {
        asked.unless_cancelled()?;
        if !line.is_whole() {
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

/// What is wrong with a document that begins at a line, from 0, for the model.
pub(super) fn broken(error: &serde_json::Error, line: u64) -> ToolError {
    ToolError::failed(format!(
        "{}, at line {}, column {}; artifact_read and artifact_search work all the same",
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
        format!("it nests deeper than {} levels", toolcrib_core::DEEPEST_JSON)
    } else if said.starts_with("number out of range") {
        "a number in it is too large to be read as one".to_owned()
    } else if said.starts_with("trailing characters") {
        "there is more behind the JSON document".to_owned()
    } else {
        let what = said.split(" at line ").next().unwrap_or_default();
        format!("it is no JSON: {what}")
    }
}

/// A content that cannot be read any more once nobody waits for the answer.
pub(super) struct Watched<'a> {
    stream: ContentStream<'a>,
    cancellation: &'a toolcrib_core::CancellationToken,
    read: u32,
}

impl<'a> Watched<'a> {
    pub(super) fn new(asked: &Asked<'a>) -> Result<Self, SpoolError> {
        let content = asked.content;
        let mark = BYTE_ORDER_MARK.len() as u64;
        let start = if content.read(0..mark)? == BYTE_ORDER_MARK { mark } else { 0 };
        let stream = content.stream(start..content.bytes());
        Ok(Self { stream, cancellation: asked.cancellation, read: 0 })
    }
}

impl Read for Watched<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        // Asked for now and then: bytes are read one at a time.
        self.read = self.read.wrapping_add(1);
        if self.read.is_multiple_of(1 << 16) && self.cancellation.is_cancelled() {
            return Err(io::Error::other("nobody waits for it any more"));
        }
        self.stream.read(into)
    }
}
