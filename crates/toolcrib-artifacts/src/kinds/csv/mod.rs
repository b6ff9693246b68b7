//! The kinds `csv`, `tsv` and `csv-semicolon`: records of fields with a header.

mod table;

use csv::{ByteRecord, ReaderBuilder, WriterBuilder};
use serde::Deserialize;
use serde_json::{Number, Value, json};
use toolcrib_core::{CancellationToken, ToolError};

use self::table::{LazyRows, Table, broken};
use super::{
    arguments::{arguments, no_arguments},
    condition::{OPS, Op},
    kind::{ArtifactKind, ContentHead, Index, Query, QueryRequest},
    limit_properties,
};
use crate::{
    content::Content,
    page::{Answer, Items},
};

/// The default number of rows per page.
const ROWS: u64 = 100;

/// The number of records at the start that must have the same length.
const ALIKE: usize = 20;

/// Tables with a separator between fields, quoted as in RFC 4180.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Csv {
    name: &'static str,
    delimiter: u8,
}

impl Csv {
    /// The kind `csv`, whose columns are separated by commas.
    pub fn commas() -> Self {
        Self { name: "csv", delimiter: b',' }
    }

    /// The kind `tsv`, whose columns are separated by tabs.
    pub fn tabs() -> Self {
        Self { name: "tsv", delimiter: b'\t' }
    }

    /// `csv-semicolon`, for locales with decimal commas.
    pub fn semicolons() -> Self {
        Self { name: "csv-semicolon", delimiter: b';' }
    }
}

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
    value: Option<Value>,
}

impl ArtifactKind for Csv {
    fn name(&self) -> &'static str {
        self.name
    }

    fn family(&self) -> &'static str {
        "csv"
    }

    fn detect(&self, start: &ContentHead<'_>) -> bool {
        let text = start.text();
        let whole = if start.is_complete() { text.len() } else { text.rfind('\n').unwrap_or(0) };
        let text = text.get(..whole).unwrap_or_default();
        let mut reader = ReaderBuilder::new()
            .delimiter(self.delimiter)
            .has_headers(false)
            .from_reader(text.as_bytes());
        let (mut records, mut fields) = (0, 0);
        // The reader reports a record with another number of fields as an error.
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
            Query::new("row_count", "The number of rows, without the header."),
            Query::new("rows", "Rows from `start` (0 is the first) to `end`, exclusive.")
                .takes(json!({
                    "start": { "type": "integer", "minimum": 0, "default": 0 },
                    "end": { "type": "integer", "minimum": 0 },
                }))
                .paged(),
            Query::new("select", "Some columns of the rows whose column matches a comparison.")
                .takes(json!({
                    "columns": {
                        "type": "array", "items": { "type": "string" }, "maxItems": 64,
                        "description": "Names. Default: all of them.",
                    },
                    "where": {
                        "type": "object",
                        "properties": {
                            "column": { "type": "string" },
                            "op": { "enum": OPS },
                            "value": {
                                "type": ["string", "number", "boolean"],
                                "description": "A number is compared with fields as numbers. Needed by \
                                                all but `exists`.",
                            },
                        },
                        "required": ["column", "op"],
                        "additionalProperties": false,
                    },
                }))
                .takes(limit_properties())
                .paged(),
        ]
    }

    fn index(&self, _: &Content, _: &CancellationToken) -> Result<Index, ToolError> {
        Ok(Index::new(LazyRows::new()))
    }

    fn query(&self, asked: &QueryRequest<'_>) -> Result<Answer, ToolError> {
        match asked.query {
            "columns" => {
                no_arguments(asked)?;
                let mut items = Items::new(asked.page, u64::MAX);
                for (number, name) in self.table(asked)?.columns.iter().enumerate() {
                    items.push(&format!("{number}: {name}"));
                }
                Ok(items.answer("columns"))
            }
            "row_count" => {
                no_arguments(asked)?;
                let rows = Table::rows(asked, self.delimiter)?;
                Ok(Answer::text(rows.count.to_string()))
            }
            "rows" => {
                let Rows { start, end } = arguments(asked)?;
                let mut table = self.table(asked)?;
                let shown_before = asked.page.from();
                table.forward(asked, start.saturating_add(shown_before))?;
                let part = Part { columns: &[], end, limit: ROWS, shown_before };
                self.show(asked, table, &part, |_| true)
            }
            "select" => {
                let Select { columns, condition, limit } = arguments(asked)?;
                let table = self.table(asked)?;
                let numbers =
                    columns.iter().map(|name| table.number(name)).collect::<Result<Vec<_>, _>>()?;
                let condition = condition
                    .map(|condition| {
                        let Condition { column, op, value } = condition;
                        let value = op.operand("where.value", value)?;
                        Ok::<_, ToolError>((table.number(&column)?, Comparison { op, value }))
                    })
                    .transpose()?;
                let limit = limit.unwrap_or(ROWS);
                let part = Part { columns: &numbers, end: None, limit, shown_before: 0 };
                self.show(asked, table, &part, |row| {
                    condition
                        .as_ref()
                        .is_none_or(|(number, compared)| compared.holds(row.get(*number)))
                })
            }
            _ => Err(asked.unknown()),
        }
    }
}

/// A comparison of a column's fields.
struct Comparison {
    op: Op,
    value: Value,
}

/// The part of a table to show.
struct Part<'n> {
    /// The column indexes; all columns if empty.
    columns: &'n [usize],
    /// The row after the last.
    end: Option<u64>,
    /// The maximum number of rows per page.
    limit: u64,
    /// The number of rows of the part before the table's position.
    shown_before: u64,
}

impl Csv {
    fn table<'a>(&self, asked: &QueryRequest<'a>) -> Result<Table<'a>, ToolError> {
        Table::of(asked, self.delimiter)
    }

    /// The selected rows, after their header.
    fn show<'a>(
        &self,
        asked: &QueryRequest<'a>,
        mut table: Table<'a>,
        part: &Part<'_>,
        keep: impl Fn(&ByteRecord) -> bool,
    ) -> Result<Answer, ToolError> {
        let columns = part.columns;
        let header: Vec<_> = match columns {
            [] => table.columns.iter().map(String::as_bytes).collect(),
            _ => columns
                .iter()
                .filter_map(|number| table.columns.get(*number).map(String::as_bytes))
                .collect(),
        };
        let header = self.line(header.into_iter())?;
        let length = header.chars().count();
        if length > asked.page.room() / 2 {
            return Err(ToolError::input_invalid(
                "the names of the columns do not fit; show some columns with `select`, and list \
                 the names with `columns`",
            ));
        }
        let page = asked.page.less(length + 1);
        let mut items = Items::new(page, part.limit);
        items.skip(part.shown_before);
        let end = part.end.unwrap_or(u64::MAX);
        while !items.is_full() && table.number < end && table.next(asked)? {
            if !keep(&table.row) {
                continue;
            }
            if !items.wants_next() {
                items.skip(1);
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

impl Comparison {
    fn holds(&self, field: Option<&[u8]>) -> bool {
        let field = field.map(String::from_utf8_lossy);
        let found = field.map(|field| match self.value {
            Value::Number(_) => number(&field).unwrap_or(Value::Null),
            _ => field.into(),
        });
        self.op.matches(found.as_ref(), &self.value)
    }
}

/// A field as a number.
fn number(field: &str) -> Option<Value> {
    let field = field.trim();
    let whole = field.parse::<i64>().ok().map(Number::from);
    whole.or_else(|| Number::from_f64(field.parse().ok()?)).map(Value::Number)
}
