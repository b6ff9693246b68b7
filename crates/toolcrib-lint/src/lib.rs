//! Checks a catalog of tools from the point of view of a model: names and descriptions that are
//! easily confused, schemas that cannot be satisfied, invisible text, text that manipulates the
//! model, and the cost of all of it in every request.
//!
//! This crate reads no files and opens no connections: the caller passes the tools, as
//! [`LintTool`]s made from a [`Tool`](toolcrib_core::Tool), or [parsed](parse) from the JSON that a
//! vendor or an MCP server uses.
//!
//! ```
//! use toolcrib_lint::{LintTool, lint};
//!
//! let tools = [LintTool::new("find", "", serde_json::json!({ "type": "object" }))];
//! let report = lint(&tools);
//! assert_eq!(report.findings[0].rule, "missing-description");
//! assert_eq!(report.findings[0].message, "`find` has no description");
//! ```
//!
//! Findings are hints, not proof: a description that passes may still be bad, and a deceptive one
//! may be worded so that no pattern matches. `docs/lint.md` lists the rules, with their thresholds
//! and the sources of these.
//!
//! # Layers
//!
//! - `formats`: catalogs in the formats of vendors and MCP servers.
//! - `linter`: selects and runs the rules.
//! - `rules`: the rules.
//! - `report`: findings and reports.
//! - `catalog`: a catalog, indexed for the rules.
//! - `parameters`: the parameters that a schema describes.
//! - `text`: displays and compares texts.
//! - `tool`: the input of a check.

mod catalog;
mod formats;
mod linter;
mod parameters;
mod report;
mod rules;
mod text;
mod tool;

pub use self::{
    catalog::{LintCatalog, Subject, TextPosition, estimated_tokens},
    formats::{Format, FormatError, ParsedCatalog, parse},
    linter::{DEFAULT_MAX_TOKENS, Linter, UnknownRuleError, lint},
    parameters::Parameter,
    report::{Finding, Findings, Report, Severity, ToolSize, Totals},
    rules::Rule,
    tool::{LintTool, SourceFacts},
};
