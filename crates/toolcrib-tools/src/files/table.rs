//! `[[tool]]` of the kind `files`.

use std::sync::Arc;

use toolcrib_config::{Located, Table};

use super::FilesTool;
use crate::{
    BuiltTool, Declaration, DeclaredKind, ExternalAccess, KindForm, KindPorts, KindReader,
    kind::boxed,
};

pub(crate) const KIND: KindReader = KindReader {
    word: "files",
    keys: &["files"],
    form: KindForm::TOOLSET,
    read: |table| boxed(DeclaredFiles::read_all(table)),
};

/// A tool of the toolset as read from a table.
#[derive(Debug)]
struct DeclaredFiles {
    tool: FilesTool,
    /// The named folders; none for the only declared one.
    files: Vec<Located<Arc<str>>>,
}

impl DeclaredFiles {
    /// With `read_only = true`, only the tools that read.
    fn read_all(table: &Table<'_>) -> Vec<Self> {
        let files = table.texts("files");
        let reads_only = table.boolean("read_only").unwrap_or_default();
        let tools = FilesTool::ALL.into_iter().filter(|tool| !(reads_only && tool.writes()));
        tools.map(|tool| Self { tool, files: files.clone() }).collect()
    }
}

impl DeclaredKind for DeclaredFiles {
    fn external_access(&self) -> Vec<ExternalAccess<'_>> {
        vec![ExternalAccess::Files { folders: &self.files, writes: self.tool.writes() }]
    }

    fn is_read_only(&self) -> bool {
        !self.tool.writes()
    }

    fn declaration(&self, base: &Declaration, prefix: Option<&str>) -> Declaration {
        let names: Vec<_> = self.files.iter().map(|name| Arc::clone(&name.value)).collect();
        self.tool.declaration(base, prefix, &names)
    }

    fn build(&self, declaration: Declaration, ports: &dyn KindPorts) -> BuiltTool {
        let folders = ports.folders(&self.files)?;
        Some(self.tool.build(declaration, &folders))
    }
}
