//! The names that a provider may have.

use super::ToolProvider;
use crate::tool::glob::Glob;

/// Whether a provider may have a tool of this name.
pub fn may_have(provider: &dyn ToolProvider, tool: &str) -> bool {
    provider.covers().is_none_or(|pattern| match pattern.strip_suffix('*') {
        // Almost all have this form, and it runs at each call: avoids allocating a pattern.
        Some(prefix) if !prefix.contains(['*', '?']) => tool.starts_with(prefix),
        _ => Glob::new(pattern).matches(tool),
    })
}
