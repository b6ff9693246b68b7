//! `[[tool]]` of the kind `code`.

use toolcrib_config::Table;

use super::CodeTool;
use crate::{
    BuiltTool, Declaration, DeclaredKind, ExternalAccess, KindForm, KindPorts, KindReader,
    kind::boxed, terminal::DeclaredShell,
};

/// The kind has the keys of `command`, except for the program, its arguments, its input and its exit codes.
pub(crate) const KIND: KindReader = KindReader {
    word: "code",
    keys: &[],
    form: KindForm::TOOLSET,
    read: |table| boxed(DeclaredCode::read_all(table)),
};

/// A tool of the toolset as read from a table.
#[derive(Debug)]
struct DeclaredCode {
    tool: CodeTool,
    /// The shell that runs the programs.
    shell: DeclaredShell,
}

impl DeclaredCode {
    fn read_all(table: &Table<'_>) -> [Self; 3] {
        let shell = DeclaredShell::read(table, "sh".to_owned());
        CodeTool::ALL.map(|tool| Self { tool, shell: shell.clone() })
    }
}

impl DeclaredKind for DeclaredCode {
    fn external_access(&self) -> Vec<ExternalAccess<'_>> {
        self.shell.external_access("the linter, the compiler or the tests of the code")
    }

    fn secret_texts(&self) -> Vec<(String, &str)> {
        self.shell.secret_texts()
    }

    fn declaration(&self, base: &Declaration, prefix: Option<&str>) -> Declaration {
        self.tool.declaration(base, prefix)
    }

    fn build(&self, declaration: Declaration, ports: &dyn KindPorts) -> BuiltTool {
        Some(self.tool.build(self.shell.complete(declaration, ports)))
    }
}
