//! The kinds `csv`, `tsv` and `csv-semicolon`: records of fields, of which the first names the columns.

use std::io::{self, Read};

use ::csv::{ByteRecord, ReaderBuilder, WriterBuilder};
use serde::Deserialize;
use serde_json::{Value, json};
use toolcrib_core::ToolError;

use super::{ArtifactKind, Asked, Query, Start, arguments, limit_properties};
use crate::{
    content::ContentStream,
    page::{Answer, Items},
};

/// How many rows one page shows, if nobody says.
const ROWS: u64 = 100;

/// How long one row may be, in bytes: a quote that is never closed makes a row of all the rest.
const LONGEST_ROW: usize = 16 * 1024 * 1024;

/// How many records at the start have to be alike.
const ALIKE: usize = 20;

/// Tables whose fields are separated by a character, as RFC 4180 quotes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Csv {
    name: &'static str,
    delimiter: u8,
}

impl Csv {
    /// `csv`.
    pub fn commas() -> Self {
        Self { name: "csv", delimiter: b',' }
    }

    /// `tsv`.
    pub fn tabs() -> Self {
        Self { name: "tsv", delimiter: b'\t' }
    }

    /// `csv-semicolon`, as it is written where the comma is in numbers.
    pub fn semicolons() -> Self {
        Self { name: "csv-semicolon", delimiter: b';' }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rows {
    #[serde(default)]
    start: u64,
    end: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Select {
    #[serde(default)]
    columns: Vec<String>,
    #[serde(rename = "where")]
    condition: Option<Condition>,
    limit: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Condition {
    column: String,
    op: Op,
    value: Value,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Op {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Contains,
}

impl ArtifactKind for Csv {
    fn name(&self) -> &'static str {
        self.name
    }

    fn family(&self) -> &'static str {
        "csv"
    }

    fn detect(&self, start: &Start<'_>) -> bool {
        let text = start.text();
        let whole = if start.is_whole() { text.len() } else { text.rfind('\n').unwrap_or(0) };
        let text = text.get(..whole).unwrap_or_default();
        let mut reader = ReaderBuilder::new()
            .delimiter(self.delimiter)
            .has_headers(false)
            .from_reader(text.as_bytes());
        let (mut records, mut fields) = (0, 0);
        // A record with another number of fields is an error of this reader.
        for record in reader.byte_records().take(ALIKE) {
            let Ok(record) = record else { return false };
            records += 1;
            fields = record.len();
        }
        records >= 2 && fields >= 2
    }

    fn queries(&self) -> Vec<Query> {
        vec![
            Query::new("columns", "The names of the columns, each with its number from 0."),
            Query::new("row_count", "How many rows there are, without the names of the columns."),
            Query::new("rows", "Rows from `start` (0 is the first) up to, and without, `end`.")
                .takes(json!({
                    "start": { "type": "integer", "minimum": 0, "default": 0 },
                    "end": { "type": "integer", "minimum": 0 },
                }))
                .paged(),
            Query::new("select", "Some columns of the rows of which a column compares as said.")
                .takes(json!({
                    "columns": {
                        "type": "array", "items": { "type": "string" }, "maxItems": 64,
                        "description": "Names. Default: all of them.",
                    },
                    "where": {
                        "type": "object",
                        "properties": {
                            "column": { "type": "string" },
                            "op": { "enum": ["eq", "ne", "lt", "le", "gt", "ge", "contains"] },
                            "value": {
                                "type": ["string", "number"],
                                "description": "A number is compared with fields as numbers.",
                            },
                        },
                        "required": ["column", "op", "value"],
                        "additionalProperties": false,
                    },
                }))
                .takes(limit_properties())
                .paged(),
        ]
    }

    fn query(&self, asked: &Asked<'_>) -> Result<Answer, ToolError> {
        match asked.query {
            "columns" => {
                let Nothing {} = arguments(asked)?;
                let mut items = Items::new(asked.page, u64::MAX);
                for (number, name) in self.table(asked)?.columns.iter().enumerate() {
                    items.push(&format!("{number}: {name}"));
                }
                Ok(items.answer("columns"))
            }
            "row_count" => {
                let Nothing {} = arguments(asked)?;
                let mut table = self.table(asked)?;
                let mut count = 0_u64;
                while table.next(asked)? {
                    count += 1;
                }
                Ok(Answer::text(count.to_string()))
            }
            "rows" => {
                let Rows { start, end } = arguments(asked)?;
                let range = start..end.unwrap_or(u64::MAX).max(start);
                self.show(asked, &[], ROWS, |number, _| range.contains(&number), range.end)
            }
            "select" => {
                let Select { columns, condition, limit } = arguments(asked)?;
                let table = self.table(asked)?;
                let numbers =
                    columns.iter().map(|name| table.number(name)).collect::<Result<Vec<_>, _>>()?;
                let condition = condition
                    .map(|condition| {
                        Ok::<_, ToolError>((table.number(&condition.column)?, condition))
                    })
                    .transpose()?;
                let keep = |_: u64, row: &ByteRecord| {
                    condition.as_ref().is_none_or(|(number, condition)| {
                        row.get(*number).is_some_and(|field| condition.holds(field))
                    })
                };
                self.show(asked, &numbers, limit.unwrap_or(ROWS), keep, u64::MAX)
            }
            _ => Err(asked.unknown()),
        }
    }
}

impl Csv {
    fn table<'a>(&self, asked: &Asked<'a>) -> Result<Table<'a>, ToolError> {
        let stream = asked.content.stream(0..asked.content.bytes());
        let mut reader = ReaderBuilder::new()
            .delimiter(self.delimiter)
            .flexible(true)
            .from_reader(RowBounded { stream, left: LONGEST_ROW });
        let columns = reader.byte_headers().map_err(|error| broken(&error))?;
        let columns =
            columns.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        Ok(Table { reader, columns, row: ByteRecord::new(), number: 0 })
    }

    /// The rows that are kept, below the names of their columns.
    fn show(
        &self,
        asked: &Asked<'_>,
        columns: &[usize],
        limit: u64,
        keep: impl Fn(u64, &ByteRecord) -> bool,
        end: u64,
    ) -> Result<Answer, ToolError> {
        let mut table = self.table(asked)?;
        let header: Vec<_> = match columns {
            [] => table.columns.iter().map(String::as_bytes).collect(),
            _ => columns
                .iter()
                .filter_map(|number| table.columns.get(*number).map(String::as_bytes))
                .collect(),
        };
        let header = self.line(header.into_iter())?;
        let page = asked.page.less(header.chars().count() + 1);
        let mut items = Items::new(page, limit);
        while !items.is_full() && table.number < end && table.next(asked)? {
            let number = table.number - 1;
            if !keep(number, &table.row) {
                continue;
            }
            if !items.wants_next() {
                items.skip();
                continue;
            }
            let line = match columns {
                [] => self.line(table.row.iter())?,
                _ => self.line(
                    columns.iter().map(|number| table.row.get(*number).unwrap_or_default()),
                )?,
            };
            items.push(&line);
        }
        let shown = items.shown();
        let mut answer = items.answer("rows");
        answer.text = if shown == 0 { header } else { format!("{header}\n{}", answer.text) };
        Ok(answer)
    }

    fn line<'f>(&self, fields: impl Iterator<Item = &'f [u8]>) -> Result<String, ToolError> {
        let mut writer = WriterBuilder::new().delimiter(self.delimiter).from_writer(Vec::new());
        writer.write_record(fields).map_err(|error| broken(&error))?;
        let mut line = writer.into_inner().map_err(|error| ToolError::failed(error.to_string()))?;
        line.pop();
        Ok(String::from_utf8_lossy(&line).into_owned())
    }
}

/// A table that is gone through.
struct Table<'a> {
    reader: ::csv::Reader<RowBounded<'a>>,
    columns: Vec<String>,
    row: ByteRecord,
    /// How many rows there were.
    number: u64,
}

/// A stream of which one row cannot take more than memory has room for.
struct RowBounded<'a> {
    stream: ContentStream<'a>,
    left: usize,
}

impl Read for RowBounded<'_> {
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

impl Table<'_> {
    fn next(&mut self, asked: &Asked<'_>) -> Result<bool, ToolError> {
        if self.number.is_multiple_of(1_024) {
            asked.unless_cancelled()?;
        }
        self.reader.get_mut().left = LONGEST_ROW;
        let found = self.reader.read_byte_record(&mut self.row).map_err(|error| broken(&error))?;
        self.number += u64::from(found);
        Ok(found)
    }

    fn number(&self, column: &str) -> Result<usize, ToolError> {
        self.columns.iter().position(|name| name == column).ok_or_else(|| {
            ToolError::input_invalid("there is no such column; `columns` has their names")
        })
    }
}

impl Condition {
    fn holds(&self, field: &[u8]) -> bool {
        let field = String::from_utf8_lossy(field);
        let order = match &self.value {
            Value::Number(number) => {
                let (Ok(field), Some(number)) = (field.trim().parse::<f64>(), number.as_f64())
                else {
                    return matches!(self.op, Op::Ne);
                };
                field.partial_cmp(&number)
            }
            Value::String(text) => match self.op {
                Op::Contains => return field.contains(text.as_str()),
                _ => Some((*field).cmp(text)),
            },
            _ => None,
        };
        order.is_some_and(|order| match self.op {
            Op::Eq => order.is_eq(),
            Op::Ne => order.is_ne(),
            Op::Lt => order.is_lt(),
            Op::Le => order.is_le(),
            Op::Gt => order.is_gt(),
            Op::Ge => order.is_ge(),
            Op::Contains => false,
        })
    }
}

fn broken(error: &::csv::Error) -> ToolError {
    ToolError::failed(format!(
        "it cannot be read as a table: {error}; artifact_read and artifact_search work all the same"
    ))
}
