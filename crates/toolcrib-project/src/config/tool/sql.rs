//! `[[tool]]` of the kind `sql`.

use std::sync::Arc;

use toolcrib_config::{Located, Table, Value};

use crate::config::text::Text;

/// The keys that only this kind has.
pub(super) const KEYS: &[&str] = &["database", "max_rows", "statements"];

/// The highest limit on rows of a result.
const MAX_ROWS: usize = 1_000_000;

/// What an SQL tool runs.
#[derive(Debug)]
pub(crate) struct SqlSection {
    pub(crate) database: Option<Located<Arc<str>>>,
    pub(crate) max_rows: Option<usize>,
    pub(crate) statements: Vec<StatementSection>,
}

/// A statement of an SQL tool.
#[derive(Debug)]
pub(crate) struct StatementSection {
    pub(crate) sql: Text,
    pub(crate) on_empty: Option<Arc<str>>,
}

impl SqlSection {
    pub(super) fn read(table: &Table<'_>) -> Self {
        Self {
            database: table.text("database"),
            max_rows: table.integer("max_rows", 1..=MAX_ROWS),
            statements: table
                .required("statements", "[\"SELECT … WHERE id = :id\"]")
                .map(|statements| read_statements(&statements))
                .unwrap_or_default(),
        }
    }
}

fn read_statements(value: &Value<'_>) -> Vec<StatementSection> {
    let Some(items) = value.items() else {
        return Vec::new();
    };
    if items.is_empty() {
        let help = "write at least one statement in the list";
        value.refuse("`statements` is an empty list", help);
    }
    items.iter().filter_map(read_statement).collect()
}

fn read_statement(item: &Value<'_>) -> Option<StatementSection> {
    if !item.is_table() {
        return Some(StatementSection { sql: Text::read(item)?, on_empty: None });
    }
    item.table("this statement", |table| {
        let sql = table.required("sql", "\"SELECT …\"");
        let on_empty = table.text("on_empty").map(|text| text.value);
        Some(StatementSection { sql: Text::read(&sql?)?, on_empty })
    })
    .flatten()
}
