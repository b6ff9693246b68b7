//! The input of a check.

use serde_json::Value;
use toolcrib_core::ToolDefinition;

/// A tool's model-visible definition. Unlike a [`ToolDefinition`] it may be invalid in every way.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LintTool {
    /// Its name.
    pub name: String,
    /// Its description; empty if there is none.
    pub description: String,
    /// JSON Schema of the arguments, if there is one.
    pub input_schema: Option<Value>,
    /// The name for people.
    pub title: Option<String>,
    /// JSON Schema of the structured results.
    pub output_schema: Option<Value>,
    /// Its declaration, for messages: `toolcrib.toml:12`, `mcp:git`.
    pub origin: Option<String>,
    /// The source that lists it, such as `mcp:git`; absent for your own tools. Texts of one source
    /// that mention a tool of another are suspicious, those of your own tools are not.
    pub source: Option<String>,
    /// Whether it is one of Toolcrib's built-in tools, such as `read_skill`: the reader of the
    /// report cannot change its wording, only the content of skills in it.
    pub framework: bool,
    /// Whether a third party worded it. Warnings about its texts become
    /// [notes](crate::Severity::Note), because only that party can improve them.
    pub foreign: bool,
    /// Whether its definition is [deferred](toolcrib_core::ToolDefinition::deferred): no request
    /// contains it until the model finds the tool.
    pub deferred: bool,
}

impl LintTool {
    /// A tool with a name, a description and a schema of arguments.
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

    /// Sets the source that lists it.
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
            foreign: tool.is_foreign_definition(),
            deferred: tool.deferred() == Some(true),
        }
    }
}

/// Facts about a source of tools: an MCP server, a hub.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceFacts {
    /// Its name: `mcp:git`, `hub:registry`.
    pub name: String,
    /// Whether it is operated by others, so that its tools can change without notice.
    pub remote: bool,
    /// Whether its list never expires once it was fetched.
    pub ttl_forever: bool,
    /// Why it could not be listed, if so: its tools are not checked.
    pub failure: Option<String>,
}
