//! A toolset that lets a model explore a database: it lists the tables, describes one, and runs one
//! statement of the model that reads.
//!
//! The database decides, while it prepares and runs a statement, whether it is permitted; its text
//! is never read for that: see
//! [`Database::exploring`](toolcrib_capabilities::database::Database::exploring) for SQLite, and
//! [`PostgresDatabase::exploring`](toolcrib_capabilities::database::postgres::PostgresDatabase::exploring).
//! All limits apply to each call: rows, about [`MAX_ROWS_BYTES`](crate::sql::MAX_ROWS_BYTES) of
//! rows, and the tool's timeout, at which the database ends the statement.
//!
//! # Result
//! `{"rows":[{"column":value}]}`, with cells as those of [`sql`](crate::sql) tools, and `"more":true`
//! if rows were cut.

mod run;
mod table;

use serde_json::{Value, json};
use toolcrib_core::{Annotations, Tool};

use self::run::Body;
pub(crate) use self::table::KIND;
use crate::{
    Declaration, ToolErrors,
    declaration::{Parameters, closed},
    findings::{Field, Findings},
    sql::{SqlDatabase, unless_withheld},
};

/// The parameter with the statement of the model.
const SQL: &str = "sql";

/// The parameter with the name of a table.
const TABLE: &str = "table";

/// A tool of the toolset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExploreTool {
    /// Lists the tables and views.
    ListTables,
    /// Describes one table or view.
    DescribeTable,
    /// Runs one statement that reads.
    Query,
}

impl ExploreTool {
    /// Every tool of the set.
    pub const ALL: [Self; 3] = [Self::ListTables, Self::DescribeTable, Self::Query];

    /// Its name: the prefix, and what it does.
    pub fn name(self, prefix: &str) -> String {
        let does = match self {
            Self::ListTables => "list_tables",
            Self::DescribeTable => "describe_table",
            Self::Query => "query",
        };
        format!("{prefix}_{does}")
    }

    /// Its declaration: its name, description and parameters, and all else as in `base`. The
    /// description of `base` says what the database contains; it may be empty.
    pub fn declaration(self, base: &Declaration, prefix: &str) -> Declaration {
        let [list, describe] = [Self::ListTables, Self::DescribeTable].map(|one| one.name(prefix));
        let text = |about: &str| json!({ "type": "string", "description": about });
        let (does, parameters) = match self {
            Self::ListTables => (
                "Lists the tables and views of a database. Use it first, to learn which exist."
                    .to_owned(),
                Parameters::default(),
            ),
            Self::DescribeTable => (
                format!(
                    "Describes the columns, types and keys of one table or view. Use it after {list}, \
                     and before you write SQL about that table."
                ),
                (vec![TABLE], vec![(TABLE, text(&format!("A name from {list}.")))]),
            ),
            Self::Query => (
                format!(
                    "Runs one SQL statement that reads, such as SELECT, and returns its rows. Use \
                     {describe} first for the names of columns."
                ),
                (vec![SQL], vec![(SQL, text("One statement."))]),
            ),
        };
        let about = &base.description;
        let description =
            if about.is_empty() { does } else { format!("{does} The database: {about}") };
        Declaration {
            name: self.name(prefix),
            description,
            annotations: Annotations {
                read_only: true,
                idempotent: true,
                ..Annotations::default()
            },
            input_schema: closed(parameters),
            ..base.clone()
        }
    }

    /// Makes the tool, of its [`declaration`](Self::declaration). `max_rows` is the limit of rows of
    /// a result.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn build(
        self,
        declaration: Declaration,
        database: impl Into<SqlDatabase>,
        max_rows: usize,
    ) -> Result<Tool, ToolErrors> {
        let database = database.into();
        let mut found = Findings::of(&declaration);
        // Once for the toolset.
        if let (Self::Query, Err(error)) = (self, database.check_exploring()) {
            found.wrong(&Field::new("", ""), None, error);
        }
        let found = found.finish();
        let name = declaration.name.clone();
        let timeout = declaration.timeout;
        let body = Body { tool: self, database: database.exploring(), max_rows, timeout };
        // The handle cannot write.
        let builder = declaration.into_builder().dry_run();
        let made = builder.handler(move |args: Value, cx| body.clone().call(args, cx));
        found.or_tool(name, made).map(|tool| unless_withheld(tool, &database))
    }
}
