//! `[[tool]]` of the kind `todo`.

use toolcrib_core::Tool;

use super::TodoTool;
use crate::{Declaration, DeclaredKind, ExternalAccess, ToolErrors};

/// A tool of the toolset as read from a table.
#[derive(Debug, Clone)]
pub struct DeclaredTodo(TodoTool);

impl DeclaredTodo {
    /// All tools of the kind, which has no own keys.
    pub fn all() -> [Self; 5] {
        TodoTool::ALL.map(Self)
    }

    /// Its declaration, as [`TodoTool::declaration`].
    pub fn declaration(&self, base: &Declaration, prefix: Option<&str>) -> Declaration {
        self.0.declaration(base, prefix)
    }

    /// As [`TodoTool::build`].
    ///
    /// # Errors
    /// As there.
    pub fn build(&self, declaration: Declaration) -> Result<Tool, ToolErrors> {
        let usual = self.0.name(None);
        let prefix = declaration.name.strip_suffix(&usual).map(str::to_owned);
        let prefix = prefix.as_deref().and_then(|prefix| prefix.strip_suffix('_'));
        self.0.build(declaration, prefix)
    }
}

impl DeclaredKind for DeclaredTodo {
    fn external_access(&self) -> Vec<ExternalAccess<'_>> {
        Vec::new()
    }

    fn secret_texts(&self) -> Vec<(String, &str)> {
        Vec::new()
    }
}
