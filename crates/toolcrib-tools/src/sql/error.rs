use toolcrib_core::InvalidTool;
use toolcrib_scope::database::StatementError;

use crate::{ToolErrors, making::declare_or_use};

/// All that is wrong with one SQL tool, statement by statement; never empty.
pub type SqlToolErrors = ToolErrors<SqlToolError>;

/// One thing that is wrong with an SQL tool. `statement` counts from 0; texts count from 1.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SqlToolError {
    /// It can be offered to no model.
    #[error(transparent)]
    Definition(#[from] InvalidTool),
    /// It has no statements.
    #[error("it has no statement; write at least one")]
    NoStatement,
    /// It would never show a row.
    #[error("`max_rows` is 0; it must be at least 1")]
    NoRows,
    /// A statement cannot be run on the database.
    #[error("statement {}: {source}", statement + 1)]
    Statement {
        /// Which statement.
        statement: usize,
        /// Why.
        source: StatementError,
    },
    /// A tool that says that it changes nothing has a statement that writes.
    #[error(
        "statement {} writes, and the tool is declared `read_only`; drop one or the other",
        statement + 1
    )]
    Writes {
        /// Which statement.
        statement: usize,
    },
    /// A parameter that is not bound by its name.
    #[error(
        "statement {} has the parameter `{parameter}`; write it as `:name`, with the name of a \
         property of the input schema",
        statement + 1
    )]
    NotByName {
        /// Which statement.
        statement: usize,
        /// The parameter as written; `?` for one without name or number.
        parameter: String,
    },
    /// A `:name` that is no property of the input schema.
    #[error(
        "statement {} uses `:{parameter}`, and there is no parameter of that name; {}",
        statement + 1,
        declare_or_use(declared)
    )]
    UnknownParameter {
        /// Which statement.
        statement: usize,
        /// The name, without its colon.
        parameter: String,
        /// The parameters that there are.
        declared: Vec<String>,
    },
    /// A property of the input schema that no statement uses.
    #[error("no statement uses the parameter `{parameter}`; use it as `:{parameter}` or drop it")]
    UnusedParameter {
        /// The property.
        parameter: String,
    },
    /// Two columns of one name, of which a row could only keep one.
    #[error(
        "statement {} gives two columns named `{column}`; rename one with `AS`",
        statement + 1
    )]
    DuplicateColumn {
        /// Which statement.
        statement: usize,
        /// The name.
        column: String,
    },
}

impl SqlToolError {
    /// The statement that it is about, from 0.
    pub fn statement(&self) -> Option<usize> {
        match self {
            Self::Statement { statement, .. }
            | Self::Writes { statement }
            | Self::NotByName { statement, .. }
            | Self::UnknownParameter { statement, .. }
            | Self::DuplicateColumn { statement, .. } => Some(*statement),
            Self::Definition(_)
            | Self::NoStatement
            | Self::NoRows
            | Self::UnusedParameter { .. } => None,
        }
    }

    /// The byte in the statement's text where it is wrong, from 0, where SQLite says so.
    pub fn offset(&self) -> Option<usize> {
        match self {
            Self::Statement { source: StatementError::Sql { offset, .. }, .. } => *offset,
            _ => None,
        }
    }
}
