//! The result of a call, as JSON.

use serde_json::{Map, Number, Value, json};
use toolcrib_capabilities::database::{
    postgres::StatementResult,
    rusqlite::{self, Row, Statement, types::ValueRef},
};

/// About how many bytes of rows a result contains, before any budget of text: 1 MiB, counting names
/// of columns and texts as they are, and every other cell as 24 bytes.
pub const MAX_ROWS_BYTES: usize = 1024 * 1024;

/// The size that a cell other than text counts for.
const OTHER_CELL_BYTES: usize = 24;

/// The note if parts of documents of JSON are text.
const JSON_AS_TEXT: &str = "Numbers in json with more digits than a JSON number keeps here, and \
    documents with repeated names, are given as text, exactly.";

/// The rows of one statement, as far as they are kept.
#[derive(Default)]
pub(crate) struct Rows {
    rows: Vec<Value>,
    more: bool,
    /// Whether they end before a row that is too large by itself.
    too_large: bool,
    /// Whether parts of documents of JSON are text.
    has_json_as_text: bool,
}

impl Rows {
    /// Runs a statement that has its values, and keeps its rows within the limits.
    pub(crate) fn collect(
        statement: &mut Statement<'_>,
        max_rows: usize,
    ) -> rusqlite::Result<Self> {
        let names = (0..statement.column_count()).map(|at| statement.column_name(at));
        let columns: Vec<_> =
            names.map(|name| name.map(str::to_owned)).collect::<Result<_, _>>()?;
        let writes = !statement.readonly();
        let mut kept = Self::default();
        let mut bytes = 0;
        let mut cursor = statement.raw_query();
        while let Some(row) = cursor.next()? {
            if !kept.more {
                let of_row = row_bytes(&columns, row)?;
                bytes += of_row;
                let full = kept.rows.len() == max_rows;
                kept.more = full || bytes > MAX_ROWS_BYTES;
                kept.too_large = !full && of_row > MAX_ROWS_BYTES;
            }
            if !kept.more {
                kept.rows.push(row_json(&columns, row)?);
            } else if !writes {
                break;
            }
            // A statement that writes runs to its end, however many rows are kept.
        }
        Ok(kept)
    }

    /// Whether the statement gave no row at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty() && !self.more
    }
}

impl From<StatementResult> for Rows {
    fn from(ran: StatementResult) -> Self {
        let StatementResult { rows, more, too_large, has_json_as_text, .. } = ran;
        Self { rows, more, too_large, has_json_as_text }
    }
}

/// The result of a call.
pub(super) enum Outcome {
    /// All statements ran.
    Done { rows: Rows, changed: u64 },
    /// A statement came up empty that says what that means.
    Empty { note: String },
}

impl Rows {
    /// The rows as JSON; `changed` is left out for a statement that can only read.
    pub(crate) fn into_json(self, changed: Option<u64>) -> Value {
        let mut json = Map::new();
        json.insert("rows".into(), self.rows.into());
        if let Some(changed) = changed {
            json.insert("changed".into(), changed.into());
        }
        if self.more {
            json.insert("more".into(), true.into());
        }
        let mut notes = Vec::new();
        if self.too_large {
            let most = MAX_ROWS_BYTES / 1024 / 1024;
            notes.push(format!(
                "A row is larger than {most} MiB; it and those after it were left out."
            ));
        }
        if self.has_json_as_text {
            notes.push(JSON_AS_TEXT.to_owned());
        }
        if !notes.is_empty() {
            json.insert("note".into(), notes.join(" ").into());
        }
        json.into()
    }
}

impl From<Outcome> for Value {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done { rows, changed } => rows.into_json(Some(changed)),
            Outcome::Empty { note } => json!({ "rows": [], "changed": 0, "note": note }),
        }
    }
}

fn row_bytes(columns: &[String], row: &Row<'_>) -> rusqlite::Result<usize> {
    let mut bytes = 0;
    for (position, column) in columns.iter().enumerate() {
        bytes += column.len();
        bytes += match row.get_ref(position)? {
            ValueRef::Text(text) => text.len(),
            _ => OTHER_CELL_BYTES,
        };
    }
    Ok(bytes)
}

fn row_json(columns: &[String], row: &Row<'_>) -> rusqlite::Result<Value> {
    let mut cells = Map::with_capacity(columns.len());
    for (position, column) in columns.iter().enumerate() {
        cells.insert(column.clone(), cell_json(row.get_ref(position)?));
    }
    Ok(Value::Object(cells))
}

fn cell_json(cell: ValueRef<'_>) -> Value {
    match cell {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(integer) => integer.into(),
        ValueRef::Real(real) => Number::from_f64(real).map_or_else(
            || if real > 0.0 { "Infinity".into() } else { "-Infinity".into() },
            Value::Number,
        ),
        // SQLite permits texts that are not UTF-8, which JSON cannot contain.
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => match (cell, str::from_utf8(bytes)) {
            (ValueRef::Text(_), Ok(text)) => text.into(),
            _ => json!({ "bytes": bytes.len() }),
        },
    }
}
