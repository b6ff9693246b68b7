//! A tool made from SQL statements over a declared database: SQLite, or PostgreSQL.
//!
//! All statements of a call run in one transaction, with the arguments bound by name and never
//! spliced into the text. A tool whose annotations say `read_only` gets a connection that cannot
//! write; only the others get one that can.
//!
//! # Arguments
//! `:order_id` in a statement is the property `order_id` of the input schema; both sets must be
//! equal. Numbers and strings are bound as such (a whole number as an integer where the schema says
//! `integer`), booleans as 0 and 1, arrays and objects as JSON text, `null` and absent ones as NULL.
//!
//! # Result
//! Compact JSON, as text and as data: `{"rows":[{"column":value}],"changed":n}`. `rows` are those
//! of the last statement that gives columns; `changed` counts the rows that all statements
//! inserted, updated and deleted, those of triggers and of cascading foreign keys included. A blob
//! is `{"bytes":n}`, and an infinite number is `"Infinity"` or `"-Infinity"`. If the rows were cut, at
//! [`max_rows`](SqlToolSpec::max_rows) or at about [`MAX_ROWS_BYTES`], `"more":true` follows, and a
//! `"note"` where one row alone is larger than that; whatever the statements write is written all
//! the same. A text, a blob or a row that is larger than
//! [`MAX_VALUE_BYTES`](toolcrib_capabilities::database::MAX_VALUE_BYTES) fails the call.
//!
//! A statement with [`on_empty`](SqlStatement::on_empty) that gives no row and changes none ends the
//! call: the rest is skipped, all is rolled back, and the result, a success, is
//! `{"rows":[],"changed":0,"note":"…"}`.
//!
//! # PostgreSQL
//! Arguments are passed as text, which the server reads as the type of the parameter. Cells of the
//! type `numeric` are text, exactly; times are text as in ISO 8601; `json` is JSON, in which a number
//! that a JSON value here would round is text. A floating-point number may also be `"NaN"`. A type
//! without a form in JSON is the server's text. `changed` counts the rows of statements that begin with `INSERT`, `UPDATE`, `DELETE` or `MERGE`. Whether a statement with rows
//! writes is not known before the call: a read-only transaction refuses it there.

mod arguments;
mod check;
mod outcome;
mod run;
mod table;

use toolcrib_core::Tool;

pub use self::outcome::MAX_ROWS_BYTES;
pub(crate) use self::{
    check::unless_withheld,
    outcome::Rows,
    run::{limits, tool_error},
    table::{KIND, MAX_ROWS},
};
pub use crate::kind::database::SqlDatabase;
pub(crate) use crate::kind::database::SqlHandle;
use crate::{Declaration, ToolErrors};

/// The maximum number of rows of a result unless a tool sets another.
pub const DEFAULT_MAX_ROWS: usize = 200;

/// One statement of an SQL tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlStatement {
    /// The statement, exactly one.
    pub sql: String,
    /// The model's text when the statement gives no row and changes none; the call then ends
    /// there and nothing is written. Without it such a statement is like any other.
    pub on_empty: Option<String>,
}

impl From<&str> for SqlStatement {
    fn from(sql: &str) -> Self {
        Self { sql: sql.to_owned(), on_empty: None }
    }
}

/// An SQL tool: what every declared tool has, and what it runs. Start from [`new`](Self::new), set
/// fields, and [`build`](Self::build) it.
#[derive(Debug, Clone, PartialEq)]
pub struct SqlToolSpec {
    /// The part that all kinds have. `annotations.read_only` decides which connection the tool
    /// gets.
    pub declaration: Declaration,
    /// The statements, run in order in one transaction; at least one.
    pub statements: Vec<SqlStatement>,
    /// The maximum number of rows of a result; [`DEFAULT_MAX_ROWS`] unless set.
    pub max_rows: usize,
}

impl SqlToolSpec {
    /// A tool that runs these statements and shows [`DEFAULT_MAX_ROWS`] rows.
    pub fn new(
        declaration: Declaration,
        statements: impl IntoIterator<Item = SqlStatement>,
    ) -> Self {
        Self {
            declaration,
            statements: statements.into_iter().collect(),
            max_rows: DEFAULT_MAX_ROWS,
        }
    }

    /// Prepares every statement against the database's schema as it is, and makes the tool. Blocks
    /// shortly.
    ///
    /// Over a database that is only inspected the tool can be listed; a call answers
    /// `not_available`.
    ///
    /// # Errors
    /// All that is wrong with it, not only the first.
    pub fn build(self, database: impl Into<SqlDatabase>) -> Result<Tool, ToolErrors> {
        check::build(self, &database.into())
    }
}
