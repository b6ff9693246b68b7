//! What is looked over.

use serde_json::Value;
use toolcrib_core::ToolDefinition;

/// A tool as a model is told of it. Unlike a [`ToolDefinition`] it may be wrong in every way.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LintTool {
    /// Its name.
    pub name: String,
    /// Its description; empty where there is none.
    pub description: String,
    /// JSON Schema of the arguments; absent where there is none.
    pub input_schema: Option<Value>,
    /// What people are shown in place of the name.
    pub title: Option<String>,
    /// JSON Schema of the structured results.
    pub output_schema: Option<Value>,
    /// Where it is declared, for messages: `toolcrib.toml:12`, `mcp:git`.
    pub origin: Option<String>,
    /// The source that lists it, such as `mcp:git`; absent for tools of one's own. Texts of one
    /// source that speak of a tool of another are suspicious, those of one's own are not.
    pub source: Option<String>,
    /// Whether Toolcrib itself made the tool, such as `read_skill`: how it is worded is not up to
    /// whoever reads the report, what skills put into it is.
    pub framework: bool,
}

impl LintTool {
    /// A tool of a name, a description and a schema of arguments.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        input_schema: Value,
    ) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            input_schema: Some(input_schema),
            ..Self::default()
        }
    }

    /// As one that a source lists.
    #[must_use]
    pub fn from_source(mut self, source: impl Into<String>) -> Self {
        self.source = Some(source.into());
        self
    }
}

impl From<&ToolDefinition> for LintTool {
    fn from(tool: &ToolDefinition) -> Self {
        Self {
            name: tool.name().as_str().to_owned(),
            description: tool.description().to_owned(),
            input_schema: Some(tool.input_schema().clone()),
            title: tool.title().map(str::to_owned),
            output_schema: tool.output_schema().cloned(),
            origin: Some(tool.origin().to_owned()),
            source: None,
            framework: tool.is_framework(),
        }
    }
}

/// What is known of a source of tools: an MCP server, a hub.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceFacts {
    /// What it is called: `mcp:git`, `hub:registry`.
    pub name: String,
    /// Whether somebody else runs it, so that its tools can change without notice.
    pub remote: bool,
    /// Whether its list is kept for ever once it was fetched.
    pub ttl_forever: bool,
    /// Why it could not be listed, if it could not: its tools are not among those looked over.
    pub failure: Option<String>,
}
