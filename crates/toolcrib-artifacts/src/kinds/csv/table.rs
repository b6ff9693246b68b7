//! Iteration over a table, and an index of its rows.

use std::{
    io::{self, Read},
    sync::OnceLock,
};

use csv::{ByteRecord, Reader, ReaderBuilder};
use toolcrib_core::ToolError;

use crate::{content::ContentStream, kinds::kind::QueryRequest};

/// The maximum length of a row, in bytes: an unclosed quote would make a row of the whole rest.
const LONGEST_ROW: usize = 16 * 1024 * 1024;

/// The initial distance between indexed rows. Rows nearer to the start are reached by reading.
const NEAR: u64 = 1_024;

/// The maximum number of indexed rows; beyond it, every other one is removed.
const MOST_MARKS: usize = 4_096;

/// A sparse index of row offsets, so that a distant row is found without reading all before it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rows {
    /// The offsets of rows 0, `every`, 2 × `every`, …
    marks: Vec<u64>,
    every: u64,
    pub(super) count: u64,
}

/// The index, built on first use: that takes reading the whole table.
pub(super) type LazyRows = OnceLock<Rows>;

impl Rows {
    fn new() -> Self {
        Self { marks: Vec::new(), every: NEAR, count: 0 }
    }

    /// Adds the start of the next row.
    fn push(&mut self, offset: u64) {
        if self.count.is_multiple_of(self.every) && self.marks.len() == MOST_MARKS {
            let mut is_odd = true;
            self.marks.retain(|_| {
                is_odd = !is_odd;
                !is_odd
            });
            self.every *= 2;
        }
        if self.count.is_multiple_of(self.every) {
            self.marks.push(offset);
        }
        self.count += 1;
    }

    /// The nearest indexed row at or before this one, and its offset.
    fn before(&self, row: u64) -> Option<(u64, u64)> {
        let last = self.marks.len().checked_sub(1)?;
        let at = usize::try_from(row / self.every).unwrap_or(last).min(last);
        self.marks.get(at).map(|offset| (at as u64 * self.every, *offset))
    }
}

/// A table iterator.
pub(super) struct Table<'a> {
    reader: Reader<RowLimitedStream<'a>>,
    delimiter: u8,
    pub(super) columns: Vec<String>,
    pub(super) row: ByteRecord,
    /// The number of rows read.
    pub(super) number: u64,
}

impl<'a> Table<'a> {
    /// A table with this separator, starting at its first row.
    pub(super) fn of(asked: &QueryRequest<'a>, delimiter: u8) -> Result<Self, ToolError> {
        let mut reader = reader(asked, delimiter, 0, true);
        let columns = reader.byte_headers().map_err(|error| broken(&error))?;
        let columns =
            columns.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        Ok(Self { reader, delimiter, columns, row: ByteRecord::new(), number: 0 })
    }

    /// Reads the next row. Returns whether there was one.
    pub(super) fn next(&mut self, asked: &QueryRequest<'a>) -> Result<bool, ToolError> {
        if self.number.is_multiple_of(1_024) {
            asked.check_cancelled()?;
        }
        self.reader.get_mut().left = LONGEST_ROW;
        let found = self.reader.read_byte_record(&mut self.row).map_err(|error| broken(&error))?;
        self.number += u64::from(found);
        Ok(found)
    }

    /// Advances until a row is the next, or to the end.
    pub(super) fn forward(&mut self, asked: &QueryRequest<'a>, row: u64) -> Result<(), ToolError> {
        if row > NEAR
            && let Some((number, offset)) = Self::rows(asked, self.delimiter)?.before(row)
        {
            self.reader = reader(asked, self.delimiter, offset, false);
            self.number = number;
        }
        while self.number < row && self.next(asked)? {}
        Ok(())
    }

    /// The index of a column.
    pub(super) fn number(&self, column: &str) -> Result<usize, ToolError> {
        self.columns
            .iter()
            .position(|name| name == column)
            .ok_or_else(|| ToolError::input_invalid("unknown column; `columns` lists the names"))
    }

    /// The row index; built on first use.
    pub(super) fn rows<'i>(asked: &QueryRequest<'i>, delimiter: u8) -> Result<&'i Rows, ToolError> {
        let Some(rows) = asked.index.get::<LazyRows>() else { return Err(asked.unknown()) };
        if let Some(rows) = rows.get() {
            return Ok(rows);
        }
        let mut found = Rows::new();
        let mut table = Table::of(asked, delimiter)?;
        loop {
            let offset = table.reader.position().byte();
            if !table.next(asked)? {
                break;
            }
            found.push(offset);
        }
        // Concurrent builders find the same.
        Ok(rows.get_or_init(|| found))
    }
}

/// A reader of rows from an offset on.
fn reader<'a>(
    asked: &QueryRequest<'a>,
    delimiter: u8,
    offset: u64,
    has_headers: bool,
) -> Reader<RowLimitedStream<'a>> {
    let stream = asked.content.stream(offset..asked.content.bytes());
    ReaderBuilder::new()
        .delimiter(delimiter)
        .flexible(true)
        .has_headers(has_headers)
        .from_reader(RowLimitedStream { stream, left: LONGEST_ROW })
}

/// A stream with bounded rows, so that no row exceeds memory.
struct RowLimitedStream<'a> {
    stream: ContentStream<'a>,
    left: usize,
}

impl Read for RowLimitedStream<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::Error::other(format!(
                "a row is longer than {LONGEST_ROW} bytes; perhaps a quote is not closed"
            )));
        }
        let count = self.stream.read(into)?;
        self.left = self.left.saturating_sub(count);
        Ok(count)
    }
}

/// The problem of a table, for the model.
pub(super) fn broken(error: &::csv::Error) -> ToolError {
    ToolError::failed(format!(
        "it cannot be read as a table: {error}; use artifact_read or artifact_search instead"
    ))
}
