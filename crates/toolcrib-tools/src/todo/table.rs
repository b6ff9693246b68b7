//! `[[tool]]` of the kind `todo`.

use super::TodoTool;
use crate::{
    BuiltTool, Declaration, DeclaredKind, ExternalAccess, KindForm, KindPorts, KindReader,
    kind::{boxed, explain_of_agent},
};

pub(crate) const KIND: KindReader = KindReader {
    word: "todo",
    keys: &[],
    form: KindForm::OF_AGENT,
    read: |table| {
        explain_of_agent(table);
        boxed(TodoTool::ALL.map(DeclaredTodo))
    },
};

/// A tool of the toolset as read from a table. The kind has no own keys.
#[derive(Debug)]
struct DeclaredTodo(TodoTool);

impl DeclaredKind for DeclaredTodo {
    fn external_access(&self) -> Vec<ExternalAccess<'_>> {
        Vec::new()
    }

    fn declaration(&self, base: &Declaration, prefix: Option<&str>) -> Declaration {
        self.0.declaration(base, prefix)
    }

    fn build(&self, declaration: Declaration, _: &dyn KindPorts) -> BuiltTool {
        let usual = self.0.name(None);
        let prefix = declaration.name.strip_suffix(&usual).map(str::to_owned);
        let prefix = prefix.as_deref().and_then(|prefix| prefix.strip_suffix('_'));
        Some(self.0.build(declaration, prefix))
    }
}
