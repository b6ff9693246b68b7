//! A support desk in a temporary folder.

use serde_json::{Map, Value, json};
use tempfile::TempDir;
use toolcrib_capabilities::database::{Database, DatabaseSpec, Seed};
use toolcrib_core::{CancellationToken, Tool, ToolContext, ToolContextParts, ToolError};
use toolcrib_tools::{
    Declaration, ToolErrors,
    sql::{SqlStatement, SqlToolSpec},
};

const SEED: &str = "
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT NOT NULL);
CREATE TABLE charges (id INTEGER PRIMARY KEY, order_id INTEGER NOT NULL REFERENCES orders,
                      amount INTEGER NOT NULL);
CREATE TABLE refunds (order_id INTEGER NOT NULL UNIQUE REFERENCES orders, amount INTEGER NOT NULL);
CREATE TABLE audit (what TEXT NOT NULL);
CREATE TABLE anything (value);
INSERT INTO orders VALUES (1, 'Ada'), (2, 'Brook'), (3, 'Cleo');
INSERT INTO charges VALUES (11, 1, 500), (12, 1, 500), (13, 2, 900);
";

pub(crate) struct Desk {
    _folder: TempDir,
    pub(crate) spec: DatabaseSpec,
    pub(crate) database: Database,
}

impl Desk {
    pub(crate) fn new() -> Self {
        Self::with(SEED)
    }

    /// A database of another seed.
    pub(crate) fn with(seed: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let spec = DatabaseSpec {
            name: "desk".into(),
            file: folder.path().join("desk.db"),
            seed: Seed { name: "seed.sql".into(), sql: seed.into() },
        };
        let database = Database::open(&spec, &CancellationToken::new()).unwrap();
        Self { _folder: folder, spec, database }
    }

    pub(crate) fn build(&self, spec: SqlToolSpec) -> Result<Tool, ToolErrors> {
        spec.build(&self.database)
    }

    /// Builds the tool and calls it.
    pub(crate) async fn call(&self, spec: SqlToolSpec, args: Value) -> Result<Value, ToolError> {
        call(&self.build(spec).unwrap(), args).await
    }

    pub(crate) async fn count(&self, table: &str) -> Value {
        let sql = format!("SELECT count(*) AS n FROM {table}");
        let counted = self.call(reads(&[&sql], json!({})), json!({})).await.unwrap();
        counted["rows"][0]["n"].clone()
    }
}

/// A call outside any engine; text and data must be one and the same.
pub(crate) async fn call(tool: &Tool, args: Value) -> Result<Value, ToolError> {
    call_in(tool, args, ToolContextParts::detached().into()).await
}

pub(crate) async fn call_in(tool: &Tool, args: Value, cx: ToolContext) -> Result<Value, ToolError> {
    let output = tool.call(args, cx).await?;
    let structured = output.structured.unwrap();
    assert_eq!(output.value, structured.to_string());
    Ok(structured)
}

/// A tool that reads, with these statements and properties.
pub(crate) fn reads(statements: &[&str], properties: Value) -> SqlToolSpec {
    let mut spec = writes(statements, properties);
    spec.declaration.annotations.read_only = true;
    spec
}

/// A tool that writes, with these statements and properties.
#[allow(clippy::needless_pass_by_value, reason = "read as it is written: json!")]
pub(crate) fn writes(statements: &[&str], properties: Value) -> SqlToolSpec {
    let required: Vec<&String> = properties.as_object().iter().flat_map(|p| p.keys()).collect();
    let statements = statements.iter().map(|sql| SqlStatement::from(*sql));
    let declaration = Declaration {
        input_schema: json!({
            "type": "object", "required": required, "properties": properties,
        }),
        ..Declaration::new("tool", "Does something.")
    };
    SqlToolSpec::new(declaration, statements)
}

/// Properties without a word about their type.
pub(crate) fn any(names: &[&str]) -> Value {
    names.iter().map(|name| ((*name).to_owned(), json!({}))).collect::<Map<_, _>>().into()
}

pub(crate) fn or_else(sql: &str, on_empty: &str) -> SqlStatement {
    SqlStatement { sql: sql.to_owned(), on_empty: Some(on_empty.to_owned()) }
}
