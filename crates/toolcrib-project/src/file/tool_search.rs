//! `[tool_search]`: the tools that a model searches instead of reading their definitions.

use std::{ops::RangeInclusive, sync::Arc};

use toolcrib_config::{Located, Table};
use toolcrib_engine::{Deferral, Reveal};

use super::ToolDeclarations;

/// More tools than a catalog may have.
const TOOLS: RangeInclusive<usize> = 0..=1_000_000;

/// One search of one need finds up to five; more than these are a catalog again.
const REVEALED: RangeInclusive<usize> = 5..=1_000;

/// `[tool_search]`.
#[derive(Debug, Default)]
pub(crate) struct ToolSearchSection {
    defer_above: Option<usize>,
    defer_toolsets: Vec<Located<Arc<str>>>,
    reveal: Option<Reveal>,
    max_revealed: Option<usize>,
}

/// The `reveal` of a table: how a model calls found tools.
pub(crate) fn reveal(table: &Table<'_>) -> Option<Reveal> {
    let value = table.value("reveal")?;
    Some(value.word(&Reveal::ALL.map(|reveal| (reveal.as_str(), reveal)))?.value)
}

impl ToolSearchSection {
    pub(crate) fn read(table: &Table<'_>) -> Self {
        Self {
            defer_above: table.integer("defer_above", TOOLS),
            defer_toolsets: table.texts("defer_toolsets"),
            reveal: reveal(table),
            max_revealed: table.integer("max_revealed", REVEALED),
        }
    }

    /// Whether tools may be deferred, by the section, their own table, or that of their server or hub.
    pub(crate) fn may_defer<'a>(
        &self,
        parts: impl IntoIterator<Item = &'a ToolDeclarations>,
    ) -> bool {
        let defers = |part: &ToolDeclarations| {
            part.tools.iter().any(|tool| tool.declaration.deferred == Some(true))
                || part.mcp.iter().any(|server| server.settings.defer)
                || part.hubs.iter().any(|hub| hub.defer)
        };
        self.defer_above.is_some()
            || !self.defer_toolsets.is_empty()
            || parts.into_iter().any(defers)
    }

    /// The deferral of the section, and of the servers and hubs of each part.
    pub(crate) fn deferral<'a>(
        &self,
        parts: impl IntoIterator<Item = &'a ToolDeclarations>,
    ) -> Deferral {
        let mut deferral = match self.defer_above {
            Some(tools) => Deferral::new().above(tools),
            None => Deferral::new(),
        };
        if let Some(reveal) = self.reveal {
            deferral = deferral.reveal(reveal);
        }
        if let Some(tools) = self.max_revealed {
            deferral = deferral.max_revealed(tools);
        }
        let toolsets: Vec<_> =
            self.defer_toolsets.iter().map(|toolset| Arc::clone(&toolset.value)).collect();
        if !toolsets.is_empty() {
            deferral = deferral.toolsets(toolsets);
        }
        for part in parts {
            for server in part.mcp.iter().filter(|server| server.settings.defer) {
                deferral = deferral.mcp_servers([Arc::clone(&server.name.value)]);
            }
            for hub in part.hubs.iter().filter(|hub| hub.defer) {
                deferral = deferral.origins([format!("hub:{}", hub.name.value)]);
            }
        }
        deferral
    }
}
