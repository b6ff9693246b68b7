//! `[[tool]]`.

use std::{sync::Arc, time::Duration};

use toolcrib_config::{Located, Spot, Table, Value};
use toolcrib_core::{Annotations, ToolName};

use super::params::Params;

/// The highest limit on characters of results.
pub(super) const MAX_CHARS: usize = 10_000_000;
/// The highest limit on rows of a result.
const MAX_ROWS: usize = 1_000_000;

/// A declared tool of the kind `sql`.
#[derive(Debug)]
pub(crate) struct ToolSection {
    pub(crate) at: Spot,
    /// Whether the kind is known; of a tool of another kind there is only its name.
    pub(crate) is_sql: bool,
    pub(crate) name: Option<Located<ToolName>>,
    pub(crate) description: Option<Arc<str>>,
    pub(crate) toolset: Option<Arc<str>>,
    pub(crate) annotations: Annotations,
    pub(crate) untrusted: Option<bool>,
    pub(crate) always_include: Option<bool>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_result_chars: Option<usize>,
    pub(crate) max_rows: Option<usize>,
    pub(crate) database: Option<Located<Arc<str>>>,
    pub(crate) input: Input,
    pub(crate) statements: Vec<StatementSection>,
}

/// Where the schema of a tool's arguments stands.
#[derive(Debug)]
pub(crate) enum Input {
    /// Nowhere: it takes none.
    None,
    /// In the project file.
    Params(Params),
    /// In a file of its own.
    File(Located<Arc<str>>),
    /// Somewhere, but it is of no use; the problem is recorded.
    Broken,
}

/// A statement of an SQL tool.
#[derive(Debug)]
pub(crate) struct StatementSection {
    pub(crate) sql: Located<Arc<str>>,
    /// Where its first character stands, if the file holds the text as it is.
    pub(crate) text_start: Option<Spot>,
    pub(crate) on_empty: Option<Arc<str>>,
}

impl ToolSection {
    /// Reads a tool. Of one whose kind is unknown only the name is read: it keeps other sections
    /// that name the tool from raising false alarms.
    pub(super) fn read(table: &Table<'_>) -> Self {
        let is_sql = table
            .required("kind", "\"sql\"")
            .is_none_or(|kind| kind.word(&[("sql", ())]).is_some());
        let mut tool = Self {
            at: table.at().clone(),
            is_sql,
            name: table.required("name", "\"list_charges\"").and_then(|name| tool_name(&name)),
            description: None,
            toolset: table.text("toolset").map(|toolset| toolset.value),
            annotations: Annotations::default(),
            untrusted: None,
            always_include: None,
            timeout: None,
            max_result_chars: None,
            max_rows: None,
            database: None,
            input: Input::Broken,
            statements: Vec::new(),
        };
        if is_sql {
            tool.read_sql(table);
        } else {
            table.ignore_the_rest();
        }
        tool
    }

    fn read_sql(&mut self, table: &Table<'_>) {
        self.description = table
            .required("description", "\"What it does, and when to use it.\"")
            .and_then(|description| description.text())
            .map(|description| description.value);
        self.annotations = Annotations {
            read_only: table.boolean("read_only").unwrap_or_default(),
            destructive: table.boolean("destructive").unwrap_or_default(),
            idempotent: table.boolean("idempotent").unwrap_or_default(),
        };
        self.untrusted = table.boolean("untrusted");
        self.always_include = table.boolean("always_include");
        self.timeout = table.duration("timeout");
        self.max_result_chars = table.integer("max_result_chars", 1..=MAX_CHARS);
        self.max_rows = table.integer("max_rows", 1..=MAX_ROWS);
        self.database = table.text("database");
        self.input = read_input(table);
        self.statements = table
            .required("statements", "[\"SELECT … WHERE id = :id\"]")
            .map(|statements| read_statements(&statements))
            .unwrap_or_default();
    }
}

fn tool_name(value: &Value<'_>) -> Option<Located<ToolName>> {
    let text = value.text()?;
    match ToolName::new(text.value) {
        Ok(value) => Some(Located { value, at: text.at }),
        Err(error) => {
            value.refuse(error.to_string(), None);
            None
        }
    }
}

fn read_input(table: &Table<'_>) -> Input {
    let (params, file) = (table.value("params"), table.value("schema_file"));
    match (params, file) {
        (None, None) => Input::None,
        (Some(params), None) => Params::read(&params).map_or(Input::Broken, Input::Params),
        (None, Some(file)) => file.text().map_or(Input::Broken, Input::File),
        (Some(_), Some(file)) => {
            let message = "`params` and `schema_file` both describe the arguments";
            file.refuse(message, "keep one of them");
            Input::Broken
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
        return Some(StatementSection {
            sql: item.text()?,
            text_start: item.text_start(),
            on_empty: None,
        });
    }
    item.table("this statement", |table| {
        let sql = table.required("sql", "\"SELECT …\"");
        let on_empty = table.text("on_empty").map(|text| text.value);
        let sql = sql?;
        Some(StatementSection { text_start: sql.text_start(), sql: sql.text()?, on_empty })
    })
    .flatten()
}
