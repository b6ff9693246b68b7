//! The body: one call, one statement.

use std::{borrow::Cow, collections::HashSet, time::Duration};

use serde_json::Value;
use toolcrib_capabilities::database::{
    DatabaseError, DatabaseHandle, StatementError, TransactionEnd,
    postgres::PostgresHandle,
    rusqlite::{self, Connection, ErrorCode as SqliteCode},
};
use toolcrib_core::{ToolContext, ToolError, ToolOutput};

use super::{ExploreTool, SQL, TABLE};
use crate::{
    arguments::text,
    sql::{Rows, SqlHandle, limits, tool_error},
};

/// The limit of a list of tables, where that of rows is lower.
const MAX_TABLES: usize = 1000;

const LIST_TABLES: &str = "SELECT name, type FROM sqlite_schema WHERE type IN ('table', 'view') \
    AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name";

/// The statements that created a table, its indexes and its triggers.
const DESCRIBE_TABLE: &str = "SELECT type, name, sql FROM sqlite_schema \
    WHERE tbl_name = ? COLLATE NOCASE AND sql IS NOT NULL ORDER BY type IN ('table', 'view') DESC";

/// The tables that the role may read, outside the system's schemas.
const LIST_SERVER_TABLES: &str = "
SELECT n.nspname AS schema, c.relname AS name,
       CASE c.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view'
                      WHEN 'f' THEN 'foreign table' ELSE 'table' END AS type,
       pg_catalog.obj_description(c.oid, 'pg_class') AS comment
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
  AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\\_%'
  AND pg_catalog.has_schema_privilege(n.oid, 'USAGE')
  AND pg_catalog.has_any_column_privilege(c.oid, 'SELECT')
ORDER BY 1, 2";

/// The columns, constraints and indexes of a table, by its name with or without its schema.
const DESCRIBE_SERVER_TABLE: &str = "
WITH named AS (
    SELECT c.oid, n.nspname AS schema
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
      AND :table::text IN (c.relname::text, n.nspname || '.' || c.relname)
      AND pg_catalog.has_schema_privilege(n.oid, 'USAGE')
)
(SELECT t.schema, 'column' AS type, a.attname AS name,
        pg_catalog.format_type(a.atttypid, a.atttypmod)
          || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END
          || coalesce(' DEFAULT ' || pg_catalog.pg_get_expr(d.adbin, d.adrelid), '') AS sql,
        pg_catalog.col_description(a.attrelid, a.attnum) AS comment
 FROM named t JOIN pg_catalog.pg_attribute a ON a.attrelid = t.oid
 LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
 WHERE a.attnum > 0 AND NOT a.attisdropped ORDER BY t.schema, a.attnum)
UNION ALL
SELECT t.schema, 'constraint', k.conname, pg_catalog.pg_get_constraintdef(k.oid), NULL
FROM named t JOIN pg_catalog.pg_constraint k ON k.conrelid = t.oid
UNION ALL
SELECT t.schema, 'index', i.relname, pg_catalog.pg_get_indexdef(i.oid), NULL
FROM named t JOIN pg_catalog.pg_index x ON x.indrelid = t.oid
JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid";

/// The handler of a tool.
#[derive(Clone)]
pub(super) struct Body {
    pub(super) tool: ExploreTool,
    pub(super) database: SqlHandle,
    pub(super) max_rows: usize,
    pub(super) timeout: Option<Duration>,
}

impl Body {
    pub(super) async fn call(self, args: Value, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        let rows = match &self.database {
            SqlHandle::Sqlite(database) => self.of_file(database, &args, &cx).await,
            SqlHandle::Postgres(database) => self.of_server(database, &args, &cx).await,
        };
        let rows = rows?;
        if self.tool == ExploreTool::DescribeTable && rows.is_empty() {
            return Err(ToolError::input_invalid(format!(
                "there is no table or view `{}`; list the tables for their names",
                text(&args, TABLE).unwrap_or_default()
            )));
        }
        Ok(ToolOutput::json(rows.into_json(None)))
    }

    fn max_rows(&self) -> usize {
        match self.tool {
            ExploreTool::ListTables | ExploreTool::DescribeTable => self.max_rows.max(MAX_TABLES),
            ExploreTool::Query => self.max_rows,
        }
    }

    async fn of_file(
        &self,
        database: &DatabaseHandle,
        args: &Value,
        cx: &ToolContext,
    ) -> Result<Rows, ToolError> {
        let argument = |name| text(args, name).map(Cow::into_owned);
        let (sql, parameter) = match self.tool {
            ExploreTool::ListTables => (LIST_TABLES.to_owned(), None),
            ExploreTool::DescribeTable => (DESCRIBE_TABLE.to_owned(), argument(TABLE)),
            ExploreTool::Query => (argument(SQL).unwrap_or_default(), None),
        };
        let max_rows = self.max_rows();
        let work = move |connection: &Connection| {
            query(connection, &sql, parameter, max_rows).map(TransactionEnd::RollBack)
        };
        let rows = database.transaction(cx.cancellation(), work).await.map_err(explained)?;
        rows.map_err(ToolError::input_invalid)
    }

    async fn of_server(
        &self,
        database: &PostgresHandle,
        args: &Value,
        cx: &ToolContext,
    ) -> Result<Rows, ToolError> {
        let (limits, cancel) = (limits(self.max_rows(), self.timeout), cx.cancellation());
        let fixed = match self.tool {
            ExploreTool::ListTables => LIST_SERVER_TABLES,
            ExploreTool::DescribeTable => DESCRIBE_SERVER_TABLE,
            ExploreTool::Query => {
                let sql = text(args, SQL).unwrap_or_default();
                let ran = database.query(&sql, limits, cancel).await;
                return ran.map(Rows::from).map_err(explained);
            }
        };
        let ran = database.run(&[fixed], args, limits, cancel, |_, _| false).await;
        let ran = ran.map_err(tool_error)?.pop();
        Ok(ran.unwrap_or_default().into())
    }
}

/// The rows; or why the statement makes no sense, for the model.
fn query(
    connection: &Connection,
    sql: &str,
    parameter: Option<String>,
    max_rows: usize,
) -> rusqlite::Result<Result<Rows, String>> {
    let mut statement = connection.prepare(sql)?;
    if statement.column_count() == 0 {
        return Ok(Err("the statement returns no rows; write a SELECT".to_owned()));
    }
    let mut columns = HashSet::new();
    for column in statement.column_names() {
        if !columns.insert(column) {
            return Ok(Err(format!("two columns are named `{column}`; rename one with AS")));
        }
    }
    if let Some(parameter) = parameter {
        statement.raw_bind_parameter(1, parameter)?;
    }
    Rows::collect(&mut statement, max_rows).map(Ok)
}

/// An error of the model's statement is one of its arguments.
fn explained(error: DatabaseError) -> ToolError {
    let message = match &error {
        DatabaseError::Refused { source: StatementError::Writes, .. } => {
            "the statement writes, and this tool only reads".to_owned()
        }
        DatabaseError::Refused { source, .. } => source.to_string(),
        DatabaseError::TooLarge { .. } => {
            "a value is larger than 1 MiB; select a part of it with substr, or leave it out"
                .to_owned()
        }
        DatabaseError::Sql { source: rusqlite::Error::MultipleStatement, .. } => {
            "pass one statement only".to_owned()
        }
        DatabaseError::Postgres { message, .. } => message.clone(),
        DatabaseError::Limit { problem, .. } => (*problem).clone(),
        DatabaseError::Sql { source, .. } if is_of_statement(source) => error.to_string(),
        _ => return tool_error(error),
    };
    ToolError::input_invalid(message).caused_by(error)
}

fn is_of_statement(error: &rusqlite::Error) -> bool {
    match error {
        rusqlite::Error::SqlInputError { .. } => true,
        error => matches!(
            error.sqlite_error_code(),
            Some(SqliteCode::Unknown | SqliteCode::TypeMismatch | SqliteCode::OutOfMemory)
        ),
    }
}
