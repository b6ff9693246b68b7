//! `[[tool]]` of the kind `sql`.

use std::sync::Arc;

use toolcrib_config::{Located, Table, Value};

use super::{DEFAULT_MAX_ROWS, SqlStatement, SqlToolSpec};
use crate::{
    BuiltTool, Declaration, DeclaredKind, ExternalAccess, KindForm, KindPorts, KindReader,
    kind::boxed,
};

pub(crate) const KIND: KindReader = KindReader {
    word: "sql",
    keys: &["database", "max_rows", "statements"],
    form: KindForm::Tool,
    read: |table| boxed([DeclaredSql::read(table)]),
};

/// The highest limit on rows of a result.
pub(crate) const MAX_ROWS: usize = 1_000_000;

/// An SQL tool as read from a table.
#[derive(Debug)]
struct DeclaredSql {
    statements: Vec<SqlStatement>,
    max_rows: usize,
    database: Option<Located<Arc<str>>>,
}

impl DeclaredSql {
    fn read(table: &Table<'_>) -> Self {
        let database = table.text("database");
        let max_rows = table.integer("max_rows", 1..=MAX_ROWS).unwrap_or(DEFAULT_MAX_ROWS);
        let statements = table.required("statements", "[\"SELECT … WHERE id = :id\"]");
        let statements = statements.map(|value| read_statements(&value)).unwrap_or_default();
        Self { statements, max_rows, database }
    }
}

impl DeclaredKind for DeclaredSql {
    fn external_access(&self) -> Vec<ExternalAccess<'_>> {
        vec![ExternalAccess::Database(self.database.as_ref())]
    }

    /// The handle of a read-only tool cannot write.
    fn is_bounded(&self) -> bool {
        true
    }

    /// `None` also without statements, which the reader recorded.
    fn build(&self, declaration: Declaration, ports: &dyn KindPorts) -> BuiltTool {
        let database = ports.database(self.database.as_ref())?;
        let (statements, max_rows) = (self.statements.clone(), self.max_rows);
        let spec = SqlToolSpec { declaration, statements, max_rows };
        (!spec.statements.is_empty()).then(|| spec.build(database))
    }
}

fn read_statements(value: &Value<'_>) -> Vec<SqlStatement> {
    let items = value.items();
    if items.as_ref().is_some_and(Vec::is_empty) {
        let help = "write at least one statement in the list";
        value.refuse("`statements` is an empty list", help);
    }
    items.iter().flatten().map(read_statement).collect()
}

/// The statement; an empty one where it cannot be read.
fn read_statement(item: &Value<'_>) -> SqlStatement {
    let text = |sql: &Value<'_>| sql.text().map(|sql| sql.value.to_string()).unwrap_or_default();
    if !item.is_table() {
        return SqlStatement { sql: text(item), on_empty: None };
    }
    let read = item.table("this statement", |table| {
        let sql = table.required("sql", "\"SELECT …\"");
        let on_empty = table.text("on_empty").map(|text| text.value.to_string());
        SqlStatement { sql: sql.as_ref().map(text).unwrap_or_default(), on_empty }
    });
    read.unwrap_or_else(|| "".into())
}
