//! The tool that is declared when all tools are gone.

/// Replaces a menu that is empty now and was not before: the vendor refuses a conversation with
/// calls if no tool is declared.
pub(super) const NO_TOOLS: &str = concat!(
    r#"[{"name":"no_tool_is_offered","description":"#,
    r#""Replaces the tools that were called before. No tool can be called now.","#,
    r#""input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}]"#
);
