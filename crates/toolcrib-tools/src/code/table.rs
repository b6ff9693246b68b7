//! `[[tool]]` of the kind `code`.

use std::path::{Path, PathBuf};

use toolcrib_capabilities::process::{Sandbox, SandboxTier};
use toolcrib_config::{Spot, Table};
use toolcrib_core::Tool;

use super::CodeTool;
use crate::{
    Declaration, DeclaredKind, Reach, ToolErrors,
    command::{ArgItem, CommandToolSpec, DeclaredCommand},
    terminal::table::{default_tier, shell_command},
};

/// The keys that only this kind has. It has those of `command`, except for the program, its arguments,
/// its input and its exit codes.
pub const KEYS: &[&str] = &[];

/// A tool of the toolset as read from a table.
#[derive(Debug, Clone)]
pub struct DeclaredCode {
    tool: CodeTool,
    command: DeclaredCommand,
    /// Whether `inherit_env` is written.
    inherits: bool,
}

impl DeclaredCode {
    /// Reads the keys of this kind, for all its tools; problems are recorded.
    pub fn read_all(table: &Table<'_>) -> Vec<Self> {
        let command = shell_command(table, "sh".to_owned());
        let inherits = table.has("inherit_env");
        let of = |tool| Self { tool, command: command.clone(), inherits };
        CodeTool::ALL.map(of).into()
    }

    /// Which tool it is.
    pub fn tool(&self) -> CodeTool {
        self.tool
    }

    /// The shell, as a program.
    pub fn command(&self) -> &DeclaredCommand {
        &self.command
    }

    /// Sets the sandbox `files`, unless one is written or the project has a stricter default.
    pub fn default_tier(&mut self, of_project: SandboxTier, at: &Spot) {
        default_tier(&mut self.command, of_project, at);
    }

    /// [`DeclaredCommand::default_stray_children`] of its program.
    pub fn default_stray_children(&mut self, of_project: bool) {
        self.command.default_stray_children(of_project);
    }

    /// Its declaration, as [`CodeTool::declaration`].
    pub fn declaration(&self, base: &Declaration, prefix: Option<&str>) -> Declaration {
        self.tool.declaration(base, prefix)
    }

    /// As [`CodeTool::build`].
    ///
    /// # Errors
    /// As there.
    pub fn build(
        &self,
        declaration: Declaration,
        base_dir: &Path,
        working_dir: PathBuf,
        sandbox: Sandbox,
    ) -> Result<Tool, ToolErrors> {
        let spec = self.command.complete(declaration, base_dir, working_dir, sandbox);
        self.tool.build(CommandToolSpec { args: vec![ArgItem::from("-c")], ..spec })
    }
}

impl DeclaredKind for DeclaredCode {
    fn reaches(&self) -> Vec<Reach<'_>> {
        let mut reaches = self.command.reaches();
        for reach in &mut reaches {
            if let Reach::Program { command, inherit_env, .. } = reach {
                command.extend(["-c", "the linter, the compiler or the tests of the code"]);
                if !self.inherits {
                    *inherit_env = &[];
                }
            }
        }
        reaches
    }

    fn secret_texts(&self) -> Vec<(String, &str)> {
        self.command.secret_texts()
    }
}
