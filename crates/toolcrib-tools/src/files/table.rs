//! `[[tool]]` of the kind `files`.

use std::sync::Arc;

use toolcrib_capabilities::files::Files;
use toolcrib_config::{Located, Table};
use toolcrib_core::Tool;

use super::FilesTool;
use crate::{Declaration, DeclaredKind, ExternalAccess, ToolErrors};

/// The keys that only this kind has.
pub const KEYS: &[&str] = &["files"];

/// A tool of the toolset as read from a table.
#[derive(Debug, Clone)]
pub struct DeclaredFiles {
    tool: FilesTool,
    files: Vec<Located<Arc<str>>>,
}

impl DeclaredFiles {
    /// Reads the keys of this kind, for all its tools; problems are recorded. With
    /// `read_only = true`, only the tools that read.
    pub fn read_all(table: &Table<'_>) -> Vec<Self> {
        let files = table.texts("files");
        let reads_only = table.boolean("read_only").unwrap_or_default();
        let tools = FilesTool::ALL.into_iter().filter(|tool| !(reads_only && tool.writes()));
        tools.map(|tool| Self { tool, files: files.clone() }).collect()
    }

    /// Which tool it is.
    pub fn tool(&self) -> FilesTool {
        self.tool
    }

    /// The named folders; none for the only declared one.
    pub fn files(&self) -> &[Located<Arc<str>>] {
        &self.files
    }

    /// Its declaration, as [`FilesTool::declaration`].
    pub fn declaration(&self, base: &Declaration, prefix: Option<&str>) -> Declaration {
        let names: Vec<_> = self.files.iter().map(|name| Arc::clone(&name.value)).collect();
        self.tool.declaration(base, prefix, &names)
    }

    /// As [`FilesTool::build`].
    ///
    /// # Errors
    /// As there.
    pub fn build(&self, declaration: Declaration, folders: &[Files]) -> Result<Tool, ToolErrors> {
        self.tool.build(declaration, folders)
    }
}

impl DeclaredKind for DeclaredFiles {
    fn external_access(&self) -> Vec<ExternalAccess<'_>> {
        vec![ExternalAccess::Files(&self.files)]
    }

    fn secret_texts(&self) -> Vec<(String, &str)> {
        Vec::new()
    }

    fn is_read_only(&self) -> bool {
        !self.tool.writes()
    }
}
