//! `[[tool]]` of the kind `sql_explore`.

use std::sync::Arc;

use toolcrib_config::{Located, Table};
use toolcrib_core::Tool;

use super::ExploreTool;
use crate::{
    Declaration, DeclaredKind, ExternalAccess, ToolErrors,
    sql::{DEFAULT_MAX_ROWS, MAX_ROWS, SqlDatabase},
};

/// A tool of the toolset as read from a table.
#[derive(Debug, Clone)]
pub struct DeclaredExplore {
    tool: ExploreTool,
    max_rows: usize,
    database: Option<Located<Arc<str>>>,
}

impl DeclaredExplore {
    /// Reads the keys of this kind, for all its tools; problems are recorded.
    pub fn read_all(table: &Table<'_>) -> [Self; 3] {
        let database = table.text("database");
        let max_rows = table.integer("max_rows", 1..=MAX_ROWS).unwrap_or(DEFAULT_MAX_ROWS);
        ExploreTool::ALL.map(|tool| Self { tool, max_rows, database: database.clone() })
    }

    /// Which tool it is.
    pub fn tool(&self) -> ExploreTool {
        self.tool
    }

    /// As [`ExploreTool::build`].
    ///
    /// # Errors
    /// As there.
    pub fn build(
        &self,
        declaration: Declaration,
        database: &SqlDatabase,
    ) -> Result<Tool, ToolErrors> {
        self.tool.build(declaration, database, self.max_rows)
    }
}

impl DeclaredKind for DeclaredExplore {
    fn external_access(&self) -> Vec<ExternalAccess<'_>> {
        vec![ExternalAccess::Database(self.database.as_ref())]
    }

    fn secret_texts(&self) -> Vec<(String, &str)> {
        Vec::new()
    }

    fn is_read_only(&self) -> bool {
        true
    }
}
