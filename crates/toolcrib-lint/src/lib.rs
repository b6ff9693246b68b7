//! Looks over a catalogue of tools as a model would read it: names and descriptions that are easily
//! confused, schemas that nothing can be called by, text that nobody sees or that talks the model into
//! something, and what all of it costs in every request.
//!
//! Nothing is read or dialled here: whoever calls brings the tools, as [`LintTool`]s made from a
//! [`Tool`](toolcrib_core::Tool), or [parsed](parse) from the JSON that a vendor or an MCP server uses.
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
//! What it finds are hints and no proof: a description that passes may still be bad, and one that is
//! meant to deceive may be worded so that no pattern knows it. `docs/lint.md` has the rules, with their
//! thresholds and where these come from.

mod catalogue;
mod formats;
mod linter;
mod parameters;
mod report;
mod rules;
mod text;
mod tool;

pub use self::{
    catalogue::{Catalogue, Place, Subject, estimated_tokens},
    formats::{Format, FormatError, Parsed, parse},
    linter::{DEFAULT_MAX_TOKENS, Linter, UnknownRule, lint},
    parameters::Parameter,
    report::{Finding, Findings, Report, Severity, ToolSize, Totals},
    rules::Rule,
    tool::{LintTool, SourceFacts},
};
