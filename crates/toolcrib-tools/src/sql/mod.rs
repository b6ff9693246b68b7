//! A tool made from SQL statements over a declared database.
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
//! is `{"bytes":n}`, a number that is infinite is `null`. If the rows were cut, at
//! [`max_rows`](SqlToolSpec::max_rows) or at about [`MAX_ROWS_BYTES`], `"more":true` follows, and a
//! `"note"` where one row alone is larger than that; whatever the statements write is written all
//! the same. A text, a blob or a row that is larger than
//! [`MAX_VALUE_BYTES`](toolcrib_scope::database::MAX_VALUE_BYTES) fails the call.
//!
//! A statement with [`on_empty`](SqlStatement::on_empty) that gives no row and changes none ends the
//! call: the rest is skipped, all is rolled back, and the result, a success, is
//! `{"rows":[],"changed":0,"note":"…"}`.

mod arguments;
mod check;
mod error;
mod outcome;
mod run;

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use toolcrib_core::{Annotations, Tool};
use toolcrib_scope::database::Database;

pub use self::{
    error::{SqlToolError, SqlToolErrors},
    outcome::MAX_ROWS_BYTES,
};

/// How many rows a result holds unless a tool says otherwise.
pub const DEFAULT_MAX_ROWS: usize = 200;

/// One statement of an SQL tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlStatement {
    /// The statement, exactly one.
    pub sql: String,
    /// What the model is told when the statement gives no row and changes none; the call then ends
    /// there and nothing is written. Without it such a statement is like any other.
    pub on_empty: Option<String>,
}

impl From<&str> for SqlStatement {
    fn from(sql: &str) -> Self {
        Self { sql: sql.to_owned(), on_empty: None }
    }
}

/// What is declared of an SQL tool. Start from [`new`](Self::new), set fields, and
/// [`build`](Self::build) it.
#[derive(Debug, Clone, PartialEq)]
pub struct SqlToolSpec {
    /// The name that the model calls.
    pub name: String,
    /// What the model reads to decide when to call it.
    pub description: String,
    /// The group that it belongs to.
    pub toolset: Option<Arc<str>>,
    /// What it says of its effects. `read_only` decides which connection it gets.
    pub annotations: Annotations,
    /// JSON Schema of an object. It is closed: `additionalProperties` becomes `false`.
    pub input_schema: Value,
    /// What is run, in order, in one transaction; at least one.
    pub statements: Vec<SqlStatement>,
    /// How many rows a result holds at most; [`DEFAULT_MAX_ROWS`] unless set.
    pub max_rows: usize,
    /// Its own cap on a result's text, in characters.
    pub max_result_chars: Option<usize>,
    /// How long one call may take; the engine's default when absent.
    pub timeout: Option<Duration>,
    /// Whether it stays in the menu while a skill narrows it.
    pub always_include: bool,
    /// Whether results are sanitised and fenced; `true` unless set, since tables hold what others
    /// wrote.
    pub untrusted: bool,
    /// Where it is declared, for messages, such as `toolcrib.toml:12`.
    pub origin: Option<Arc<str>>,
}

impl SqlToolSpec {
    /// A tool without parameters that writes; see the fields for the other defaults.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        statements: impl IntoIterator<Item = SqlStatement>,
    ) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            toolset: None,
            annotations: Annotations::default(),
            input_schema: json!({ "type": "object" }),
            statements: statements.into_iter().collect(),
            max_rows: DEFAULT_MAX_ROWS,
            max_result_chars: None,
            timeout: None,
            always_include: false,
            untrusted: true,
            origin: None,
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
    pub fn build(self, database: &Database) -> Result<Tool, SqlToolErrors> {
        check::build(self, database)
    }
}
