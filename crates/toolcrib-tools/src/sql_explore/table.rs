//! `[[tool]]` of the kind `sql_explore`.

use std::sync::Arc;

use toolcrib_config::{Located, Table};

use super::ExploreTool;
use crate::{
    BuiltTool, Declaration, DeclaredKind, ExternalAccess, KindForm, KindPorts, KindReader,
    kind::boxed,
    sql::{DEFAULT_MAX_ROWS, MAX_ROWS},
};

pub(crate) const KIND: KindReader = KindReader {
    word: "sql_explore",
    keys: &[],
    form: KindForm::Toolset { needs_name: true, has_untrusted: true },
    read: |table| boxed(DeclaredExplore::read_all(table)),
};

/// A tool of the toolset as read from a table.
#[derive(Debug)]
struct DeclaredExplore {
    tool: ExploreTool,
    max_rows: usize,
    database: Option<Located<Arc<str>>>,
}

impl DeclaredExplore {
    fn read_all(table: &Table<'_>) -> [Self; 3] {
        table.explain("read_only", "a tool of the kind `sql_explore` always is");
        let database = table.text("database");
        let max_rows = table.integer("max_rows", 1..=MAX_ROWS).unwrap_or(DEFAULT_MAX_ROWS);
        ExploreTool::ALL.map(|tool| Self { tool, max_rows, database: database.clone() })
    }
}

impl DeclaredKind for DeclaredExplore {
    fn external_access(&self) -> Vec<ExternalAccess<'_>> {
        vec![ExternalAccess::Database(self.database.as_ref())]
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn declaration(&self, base: &Declaration, prefix: Option<&str>) -> Declaration {
        self.tool.declaration(base, prefix.unwrap_or_default())
    }

    fn build(&self, declaration: Declaration, ports: &dyn KindPorts) -> BuiltTool {
        let database = ports.database(self.database.as_ref())?;
        Some(self.tool.build(declaration, database, self.max_rows))
    }
}
