//! `[[tool]]` of the kind `clarify`.

use crate::{
    BuiltTool, Declaration, DeclaredKind, ExternalAccess, KindForm, KindPorts, KindReader,
    kind::{boxed, explain_of_agent},
};

pub(crate) const KIND: KindReader = KindReader {
    word: "clarify",
    keys: &[],
    form: KindForm::OF_AGENT,
    read: |table| {
        explain_of_agent(table);
        boxed([DeclaredClarify])
    },
};

/// The tool as read from a table. The kind has no own keys.
#[derive(Debug)]
struct DeclaredClarify;

impl DeclaredKind for DeclaredClarify {
    fn external_access(&self) -> Vec<ExternalAccess<'_>> {
        Vec::new()
    }

    fn declaration(&self, base: &Declaration, prefix: Option<&str>) -> Declaration {
        super::declaration(base, prefix)
    }

    fn build(&self, declaration: Declaration, _: &dyn KindPorts) -> BuiltTool {
        Some(super::build(declaration))
    }
}
