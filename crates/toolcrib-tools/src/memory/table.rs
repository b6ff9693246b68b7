//! `[[tool]]` of the kind `memory`.

use toolcrib_config::Table;

use super::{Memory, MemoryScope, MemoryTool};
use crate::{
    BuiltTool, Declaration, DeclaredKind, ExternalAccess, KindForm, KindPorts, KindReader,
    kind::{MemoryParts, boxed, explain_of_agent},
};

pub(crate) const KIND: KindReader = KindReader {
    word: "memory",
    keys: &["scope"],
    form: KindForm::OF_AGENT,
    read: |table| {
        explain_of_agent(table);
        boxed(DeclaredMemory::read_all(table))
    },
};

/// A tool of the toolset as read from a table.
#[derive(Debug)]
struct DeclaredMemory {
    tool: MemoryTool,
    scope: MemoryScope,
}

impl DeclaredMemory {
    fn read_all(table: &Table<'_>) -> [Self; 4] {
        let scope = table.required("scope", "\"principal\"");
        let scope = scope.and_then(|scope| scope.word(&MemoryScope::WORDS));
        let scope = scope.map_or(MemoryScope::Principal, |scope| scope.value);
        MemoryTool::ALL.map(|tool| Self { tool, scope })
    }
}

impl DeclaredKind for DeclaredMemory {
    fn external_access(&self) -> Vec<ExternalAccess<'_>> {
        vec![ExternalAccess::Memory]
    }

    fn declaration(&self, base: &Declaration, prefix: Option<&str>) -> Declaration {
        self.tool.declaration(base, prefix)
    }

    fn build(&self, declaration: Declaration, ports: &dyn KindPorts) -> BuiltTool {
        let MemoryParts { files, sessions } = ports.memory()?;
        let memory = Memory::new(files, self.scope, sessions);
        Some(self.tool.build(declaration, &memory))
    }
}
