//! `[[tool]]` of the kind `code`.

use toolcrib_config::Table;
use toolcrib_core::Tool;

use super::CodeTool;
use crate::{
    Declaration, DeclaredKind, ExternalAccess, ToolErrors, command::CommandToolSpec,
    terminal::DeclaredShell,
};

/// The keys that only this kind has. It has those of `command`, except for the program, its arguments,
/// its input and its exit codes.
pub const KEYS: &[&str] = &[];

/// A tool of the toolset as read from a table.
#[derive(Debug, Clone)]
pub struct DeclaredCode {
    tool: CodeTool,
    shell: DeclaredShell,
}

impl DeclaredCode {
    /// Reads the keys of this kind, for all its tools; problems are recorded.
    pub fn read_all(table: &Table<'_>) -> Vec<Self> {
        let shell = DeclaredShell::read(table, "sh".to_owned());
        CodeTool::ALL.map(|tool| Self { tool, shell: shell.clone() }).into()
    }

    /// The shell that runs the programs.
    pub fn shell(&self) -> &DeclaredShell {
        &self.shell
    }

    /// Its declaration, as [`CodeTool::declaration`].
    pub fn declaration(&self, base: &Declaration, prefix: Option<&str>) -> Declaration {
        self.tool.declaration(base, prefix)
    }

    /// As [`CodeTool::build`].
    ///
    /// # Errors
    /// As there.
    pub fn build(&self, spec: CommandToolSpec) -> Result<Tool, ToolErrors> {
        self.tool.build(spec)
    }
}

impl DeclaredKind for DeclaredCode {
    fn external_access(&self) -> Vec<ExternalAccess<'_>> {
        self.shell.external_access("the linter, the compiler or the tests of the code")
    }

    fn secret_texts(&self) -> Vec<(String, &str)> {
        self.shell.command.secret_texts()
    }
}
