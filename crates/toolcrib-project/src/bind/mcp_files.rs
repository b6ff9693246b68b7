//! `mcpServers` files of a project, and imported ones.

use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use toolcrib_config::{Diagnostic, Problems, Severity, Spot};
use toolcrib_mcp::{
    __internal::with_digest,
    server::{FileServer, Transport, read_servers},
};

use crate::{
    error::LoadError,
    file::{McpSection, ProjectFile, TransportSection},
    read::{
        reads::{Judged, ReadFiles},
        root::{Root, near},
        text_file::{FileError, MAX_TEXT},
    },
};

/// The servers of all files, in order.
#[derive(Debug, Default)]
pub(crate) struct McpFiles {
    pub(crate) servers: Vec<DeclaredServer>,
    /// Whether a file could not be read, so that its servers are missing here.
    pub(crate) is_incomplete: bool,
}

/// A server of a file.
#[derive(Debug)]
pub(crate) struct DeclaredServer {
    pub(crate) server: FileServer,
    /// Its transport, with `${NAME}` placeholders instead of the values of variables.
    written: Option<Transport>,
    /// Why it cannot be used, if that is not an error of the project.
    pub(crate) unusable: Option<Arc<str>>,
    /// Whether its file is not part of the project.
    pub(crate) is_imported: bool,
}

impl McpFiles {
    /// Reads the project's own files, whose programs run in its folder, then the imported ones,
    /// whose programs run in this process's working folder.
    ///
    /// # Errors
    /// [`LoadError::Import`] for an imported file that cannot be read.
    pub(crate) fn read(
        file: &ProjectFile,
        root: &Root,
        imports: &[PathBuf],
        problems: &Problems,
    ) -> Result<Self, LoadError> {
        let mut this = Self::default();
        for name in &file.mcp_files {
            match root.named_text(name, MAX_TEXT, problems) {
                Some(text) => {
                    this.take(&name.value, &text, root.path(), root.reads(), false, problems);
                }
                None => this.is_incomplete = true,
            }
        }
        let refuse = |path: &Path, problem| LoadError::Import { path: path.to_owned(), problem };
        for path in imports {
            let here = std::env::current_dir().map_err(|error| {
                refuse(
                    path,
                    format!(
                        "the current folder no longer exists: \
                    {error}"
                    ),
                )
            })?;
            let real = path.canonicalize().map_err(|error| match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => FileError::NotFound,
                _ => FileError::Unreadable(error),
            });
            let text = real.and_then(|real| root.reads().text(&real, MAX_TEXT, Judged::AsAWhole));
            let text = text.map_err(|error| {
                let folder = path.parent().filter(|folder| *folder != Path::new(""));
                let help = near(&error, folder.unwrap_or(&here), &path.to_string_lossy());
                let help = help.map(|help| format!("; {help}")).unwrap_or_default();
                refuse(path, format!("it {error}{help}"))
            })?;
            this.take(&path.to_string_lossy(), &text, &here, root.reads(), true, problems);
        }
        this.rename_case_variants(&file.declared.mcp, problems);
        Ok(this)
    }

    /// Gives a server another name if its own differs only by case from one that is declared by a
    /// section, or by a file before it: they look alike, and are one file on some file systems.
    fn rename_case_variants(&mut self, sections: &[McpSection], problems: &Problems) {
        let is_declared =
            |section: &&McpSection| !matches!(section.transport, TransportSection::OfFile);
        let declared = sections.iter().filter(is_declared).map(|section| &section.name.value);
        let mut names: HashMap<String, Arc<str>> =
            declared.map(|name| (name.to_ascii_lowercase(), Arc::clone(name))).collect();
        for DeclaredServer { server, .. } in &mut self.servers {
            let first = names
                .entry(server.name.to_ascii_lowercase())
                .or_insert_with(|| Arc::clone(&server.name));
            if *first != server.name {
                let name = with_digest(server.name.to_string(), &server.name);
                let message = format!(
                    "`{}` is named `{name}` here, because it differs from `{first}` only by case",
                    server.name
                );
                problems.push(Diagnostic::warning(&server.at, message));
                server.name = name.into();
            }
        }
    }

    /// Adds the servers of a file.
    fn take(
        &mut self,
        file: &str,
        text: &str,
        working_dir: &Path,
        reads: &ReadFiles,
        is_imported: bool,
        problems: &Problems,
    ) {
        let env_file = |path: &Path| {
            let read = path.canonicalize().map_err(not_found).and_then(|real| {
                match is_imported || real.starts_with(working_dir) {
                    true => reads.text(&real, MAX_TEXT, Judged::AsAWhole),
                    false => Err(FileError::Outside),
                }
            });
            read.map_err(|error| error.to_string())
        };
        let variables = |name: &str| std::env::var(name).ok();
        let found = read_servers(file, text, working_dir, &variables, &env_file);
        problems.merge(found.problems);
        let env_placeholders = |path: &Path| env_file(path).map(|text| placeholders(&text));
        let written = read_servers(file, text, working_dir, &placeholder, &env_placeholders);
        let written = written.servers.into_iter().map(|server| server.transport);
        for (server, written) in found.servers.into_iter().zip(written) {
            if let Some(other) = self.get(&server.name) {
                let message = format!(
                    "an MCP server `{}` exists already, at {}",
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
            self.servers.push(DeclaredServer { server, written, unusable, is_imported });
        }
    }

    /// The servers with a transport: name, position, and the transport with the values of variables
    /// and without.
    pub(crate) fn declared(
        &self,
    ) -> impl Iterator<Item = (&Arc<str>, &Spot, (&Transport, &Transport))> {
        self.servers.iter().filter_map(|declared| {
            let server = &declared.server;
            let both = (server.transport.as_ref()?, declared.written.as_ref()?);
            Some((&server.name, &server.at, both))
        })
    }

    pub(crate) fn get(&self, name: &str) -> Option<&DeclaredServer> {
        self.servers.iter().find(|declared| *declared.server.name == *name)
    }

    /// The names of the servers, disabled and broken ones included.
    pub(crate) fn names(&self) -> impl Iterator<Item = Arc<str>> {
        self.servers.iter().map(|declared| Arc::clone(&declared.server.name))
    }
}

/// A variable as it is shown. Without a value it is replaced by its default, as where it is used.
fn placeholder(name: &str) -> Option<String> {
    let value = std::env::var(name).ok()?;
    Some(if value.is_empty() { value } else { format!("${{{name}}}") })
}

/// A file with variables, with a placeholder in place of each value.
fn placeholders(env_file: &str) -> String {
    let line = |line: &str| {
        let (name, _) = line.split_once('=')?;
        let variable = name.trim().trim_start_matches("export ").to_owned();
        Some(format!("{name}=${{{variable}}}\n"))
    };
    env_file.lines().filter_map(line).collect()
}

fn not_found(error: io::Error) -> FileError {
    match error.kind() {
        io::ErrorKind::NotFound => FileError::NotFound,
        _ => FileError::Unreadable(error),
    }
}

/// Why a server of an imported file cannot be used. The file is for another host and will not be
/// changed for this one: the problem is reported, and the other servers are used.
fn unusable(server: &FileServer, problems: &Problems) -> Option<Arc<str>> {
    server.problems.iter().for_each(|problem| problems.push(softened(problem, &server.name)));
    server.problems.errors().next().map(|error| error.message.as_str().into())
}

/// A problem of a server of an imported file, as a warning.
pub(crate) fn softened(problem: &Diagnostic, server: &str) -> Diagnostic {
    let mut softened = problem.clone();
    if problem.severity == Severity::Error {
        softened.severity = Severity::Warning;
        softened.help.get_or_insert_with(|| {
            format!("until this is changed, the MCP server `{server}` cannot be used")
        });
    }
    softened
}
