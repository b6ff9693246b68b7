//! `[[tool]]` of the kind `memory`.

use toolcrib_config::Table;
use toolcrib_core::Tool;

use super::{Memory, MemoryScope, MemoryTool};
use crate::{Declaration, DeclaredKind, ExternalAccess, ToolErrors};

/// The keys that only this kind has.
pub const KEYS: &[&str] = &["scope"];

/// A tool of the toolset as read from a table.
#[derive(Debug, Clone)]
pub struct DeclaredMemory {
    tool: MemoryTool,
    scope: MemoryScope,
}

impl DeclaredMemory {
    /// Reads the keys of this kind, for all its tools; problems are recorded.
    pub fn read_all(table: &Table<'_>) -> [Self; 4] {
        let scope = table.required("scope", "\"principal\"");
        let scope = scope.and_then(|scope| scope.word(&MemoryScope::WORDS));
        let scope = scope.map_or(MemoryScope::Principal, |scope| scope.value);
        MemoryTool::ALL.map(|tool| Self { tool, scope })
    }

    /// Who shares it.
    pub fn scope(&self) -> MemoryScope {
        self.scope
    }

    /// Its declaration, as [`MemoryTool::declaration`].
    pub fn declaration(&self, base: &Declaration, prefix: Option<&str>) -> Declaration {
        self.tool.declaration(base, prefix)
    }

    /// As [`MemoryTool::build`].
    ///
    /// # Errors
    /// As there.
    pub fn build(&self, declaration: Declaration, memory: &Memory) -> Result<Tool, ToolErrors> {
        self.tool.build(declaration, memory)
    }
}

impl DeclaredKind for DeclaredMemory {
    fn external_access(&self) -> Vec<ExternalAccess<'_>> {
        Vec::new()
    }

    fn secret_texts(&self) -> Vec<(String, &str)> {
        Vec::new()
    }
}
