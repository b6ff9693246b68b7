//! Patterns for names and labels.

use std::{fmt, sync::Arc};

use serde_json::Value;
use wildmatch::WildMatch;

use super::definition::ToolDefinition;
use crate::names::mcp_names::MCP_OWN_NAME;

/// A pattern for names and labels: `*` matches any characters, `?` matches one.
#[derive(Clone)]
pub struct Glob {
    text: Arc<str>,
    kind: Kind,
}

/// The comparison method. Most patterns need no general matching, and a menu of thousands of tools
/// is compared with all of them.
#[derive(Clone)]
enum Kind {
    Literal,
    /// Only `*`.
    All,
    /// A text followed by `*`.
    Prefix,
    /// A text, one `*` and a text; the length of the first in bytes.
    Around(usize),
    /// The length of the literal prefix in bytes, and the whole pattern.
    Other(usize, WildMatch),
}

impl Glob {
    /// A pattern; every text is valid.
    pub fn new(pattern: impl Into<Arc<str>>) -> Self {
        let text = pattern.into();
        let wild = |text: &str| text.contains(['*', '?']);
        let kind = match text.find(['*', '?']) {
            None => Kind::Literal,
            Some(start) => match text.get(start..).and_then(|rest| rest.strip_prefix('*')) {
                Some("") if start == 0 => Kind::All,
                Some("") => Kind::Prefix,
                Some(end) if !wild(end) => Kind::Around(start),
                _ => Kind::Other(start, WildMatch::new(&text)),
            },
        };
        Self { text, kind }
    }

    /// Whether a text matches; case-sensitive.
    pub fn matches(&self, text: &str) -> bool {
        match &self.kind {
            Kind::Literal => *self.text == *text,
            Kind::All => true,
            Kind::Prefix => self
                .text
                .as_bytes()
                .split_last()
                .is_some_and(|(_, prefix)| text.as_bytes().starts_with(prefix)),
            Kind::Around(at) => match (self.text.get(..*at), self.text.get(at + 1..)) {
                (Some(start), Some(end)) => {
                    text.strip_prefix(start).is_some_and(|rest| rest.ends_with(end))
                }
                _ => false,
            },
            Kind::Other(start, pattern) => {
                self.text.get(..*start).is_some_and(|start| text.starts_with(start))
                    && pattern.matches(text)
            }
        }
    }

    /// Whether it matches a tool's name. A framework tool must be named literally. A tool whose name on
    /// its MCP server is not a valid name here is matched by `mcp__SERVER__` and that name too.
    pub fn matches_tool(&self, tool: &ToolDefinition) -> bool {
        (self.matches(tool.name()) || self.matches_own_name(tool))
            && (self.is_literal() || !tool.is_framework())
    }

    fn matches_own_name(&self, tool: &ToolDefinition) -> bool {
        let own = tool.meta().get(MCP_OWN_NAME).and_then(Value::as_str);
        own.zip(tool.mcp_server())
            .is_some_and(|(own, server)| self.matches(&format!("mcp__{server}__{own}")))
    }

    /// Whether it matches only one text.
    pub fn is_literal(&self) -> bool {
        matches!(self.kind, Kind::Literal)
    }

    /// The pattern as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_pattern_matches_what_it_says() {
        for (pattern, text, matches) in [
            ("", "", true),
            ("", "a", false),
            ("a", "a", true),
            ("a", "A", false),
            ("a", "ab", false),
            ("*", "", true),
            ("*", "anything", true),
            ("a*", "a", true),
            ("a*", "abc", true),
            ("a*", "ba", false),
            ("a*", "Abc", false),
            ("ä*", "äb", true),
            ("*a", "ba", true),
            ("*a", "ab", false),
            ("a*c", "abbc", true),
            ("a*c", "abb", false),
            ("a*c", "ac", true),
            ("ab*ba", "aba", false),
            ("ab*ba", "abba", true),
            ("ä*ö", "äxö", true),
            ("ä*ö", "ä", false),
            ("a*b*c", "abxc", true),
            ("a*b*c", "axc", false),
            ("x?y*", "ay", false),
            ("a?", "ab", true),
            ("a?", "a", false),
            ("a?*", "ab", true),
            ("a?*", "a", false),
            ("**", "a", true),
            ("a**", "ab", true),
            ("a**", "b", false),
        ] {
            assert_eq!(Glob::new(pattern).matches(text), matches, "{pattern:?} on {text:?}");
        }
    }

    #[test]
    fn only_a_text_without_wildcards_is_literal() {
        for (pattern, literal) in
            [("", true), ("a", true), ("*", false), ("a*", false), ("?", false), ("a?b", false)]
        {
            assert_eq!(Glob::new(pattern).is_literal(), literal, "{pattern:?}");
        }
        assert_eq!(Glob::new("a*").as_str(), "a*");
    }
}
