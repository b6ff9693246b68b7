//! `mcpServers` files that a project takes in, and those that are imported beside it.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use toolcrib_config::{Diagnostic, Problems, Severity, Spot};
use toolcrib_mcp::server::{FileServer, Transport, read_servers};

use crate::{
    config::ProjectFile,
    error::LoadError,
    root::{FileError, MAX_TEXT, Root, near},
};

/// The servers of all files, in order.
#[derive(Debug, Default)]
pub(crate) struct McpFiles {
    pub(in crate::build) servers: Vec<Declared>,
}

/// A server of a file.
#[derive(Debug)]
pub(in crate::build) struct Declared {
    pub(in crate::build) server: FileServer,
    /// How it is reached, with `${NAME}` in place of the values of variables.
    written: Option<Transport>,
    /// Why it cannot be used, where that is no error of the project.
    pub(super) unusable: Option<Arc<str>>,
    /// Whether its file is none of the project's.
    pub(super) is_imported: bool,
}

impl McpFiles {
    /// Reads the project's own files, whose programs run in its folder, then the others, whose
    /// programs run where this process does.
    ///
    /// # Errors
    /// [`LoadError::Import`] for a file that is none of the project's and cannot be read.
    pub(crate) fn read(
        file: &ProjectFile,
        root: &Root,
        imports: &[PathBuf],
        problems: &Problems,
    ) -> Result<Self, LoadError> {
        let mut this = Self::default();
        for name in &file.mcp_files {
            if let Some(text) = root.named_text(name, MAX_TEXT, problems) {
                this.take(&name.value, &text, root.path(), false, problems);
            }
        }
        let refuse = |path: &Path, problem| LoadError::Import { path: path.to_owned(), problem };
        for path in imports {
            let here = std::env::current_dir()
                .map_err(|error| refuse(path, format!("this folder is gone: {error}")))?;
            let real = path.canonicalize().map_err(|error| match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => FileError::NotFound,
                _ => FileError::Unreadable(error),
            });
            let text = real.and_then(|real| root.reads().text(&real, MAX_TEXT));
            let text = text.map_err(|error| {
                let folder = path.parent().filter(|folder| *folder != Path::new(""));
                let help = near(&error, folder.unwrap_or(&here), &path.to_string_lossy());
                let help = help.map(|help| format!("; {help}")).unwrap_or_default();
                refuse(path, format!("it {error}{help}"))
            })?;
            this.take(&path.to_string_lossy(), &text, &here, true, problems);
        }
        Ok(this)
    }

    fn take(
        &mut self,
        file: &str,
        text: &str,
        working_dir: &Path,
        is_imported: bool,
        problems: &Problems,
    ) {
        let found = read_servers(file, text, working_dir, &|name| std::env::var(name).ok());
        problems.merge(found.problems);
        // A variable without a value gives way to its default in both.
        let placeholder = |name: &str| {
            let value = std::env::var(name).ok()?;
            Some(if value.is_empty() { value } else { format!("${{{name}}}") })
        };
        let written = read_servers(file, text, working_dir, &placeholder).servers;
        let written = written.into_iter().map(|server| server.transport);
        for (server, written) in found.servers.into_iter().zip(written) {
            if let Some(other) = self.get(&server.name) {
                let message = format!(
                    "there is an MCP server `{}` already, at {}",
                    server.name, other.server.at
                );
                problems.push(Diagnostic::error(&server.at, message).help("rename one of them"));
                continue;
            }
            let unusable = if is_imported {
                unusable(&server, problems)
            } else {
                problems.merge(server.problems.clone());
                None
            };
            self.servers.push(Declared { server, written, unusable, is_imported });
        }
    }

    /// The servers that are reached somehow: name, place, and how they are, with the values of
    /// variables and without.
    pub(crate) fn declared(
        &self,
    ) -> impl Iterator<Item = (&Arc<str>, &Spot, (&Transport, &Transport))> {
        self.servers.iter().filter_map(|declared| {
            let server = &declared.server;
            let both = (server.transport.as_ref()?, declared.written.as_ref()?);
            Some((&server.name, &server.at, both))
        })
    }

    pub(super) fn get(&self, name: &str) -> Option<&Declared> {
        self.servers.iter().find(|declared| *declared.server.name == *name)
    }

    /// The names of the servers, disabled and broken ones included.
    pub(crate) fn names(&self) -> impl Iterator<Item = Arc<str>> {
        self.servers.iter().map(|declared| Arc::clone(&declared.server.name))
    }
}

/// Why a server of an imported file cannot be used. Its file is for another host, and nobody mends
/// it for this one: what is wrong is told, and the others are there all the same.
fn unusable(server: &FileServer, problems: &Problems) -> Option<Arc<str>> {
    server.problems.iter().for_each(|problem| problems.push(softened(problem, &server.name)));
    server.problems.errors().next().map(|error| error.message.as_str().into())
}

/// A problem with a server of an imported file, as a warning.
pub(super) fn softened(problem: &Diagnostic, server: &str) -> Diagnostic {
    let mut softened = problem.clone();
    if problem.severity == Severity::Error {
        softened.severity = Severity::Warning;
        softened.help.get_or_insert_with(|| {
            format!("until that is changed, the MCP server `{server}` cannot be used")
        });
    }
    softened
}
