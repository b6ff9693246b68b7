//! A kind of declared tool: how its tables are read, and the interface by which a project checks and
//! builds its tools.

mod access;
#[cfg(feature = "sql")]
pub(crate) mod database;
mod ports;
#[cfg(feature = "command")]
pub(crate) mod sandbox;

use std::{fmt, sync::Arc};

use serde_json::Value;
use toolcrib_config::{Located, Problems, Spot, Table};
use toolcrib_core::{Tool, ToolName};

#[cfg(feature = "memory")]
pub use self::ports::{MemoryParts, SearchSessions};
pub use self::{access::ExternalAccess, ports::KindPorts};
#[cfg(feature = "command")]
pub use self::{access::ProgramAccess, ports::ProgramPlace};
use crate::{Declaration, ToolErrors};

/// How the tables of a kind are read.
#[derive(Debug, Clone, Copy)]
pub struct KindReader {
    /// The word in `kind`.
    pub word: &'static str,
    /// The keys that only this kind has. Some kinds have none, or some of those of another kind.
    pub keys: &'static [&'static str],
    /// The content of a table.
    pub form: KindForm,
    /// Reads the keys of the kind, for all tools of a table; problems are recorded.
    pub read: fn(&Table<'_>) -> Vec<Box<dyn DeclaredKind>>,
}

/// The content of a table of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KindForm {
    /// One tool, with a required name and description, and with its parameters.
    Tool,
    /// Several tools, which know their names and parameters. The name of the table is a prefix.
    Toolset {
        /// Whether the prefix is required.
        needs_name: bool,
        /// Whether the author decides if results are fenced; else the kind does.
        has_untrusted: bool,
    },
    /// The file of a third party, whose definitions become tools. The name of the table is a prefix.
    Document,
}

impl KindForm {
    /// A toolset that needs no name, whose results others may have written.
    pub(crate) const TOOLSET: Self = Self::Toolset { needs_name: false, has_untrusted: true };
    /// A toolset for the agent itself, whose results have known authors.
    pub(crate) const OF_AGENT: Self = Self::Toolset { needs_name: false, has_untrusted: false };

    /// Whether a table must have a name.
    pub fn needs_name(self) -> bool {
        matches!(self, Self::Tool | Self::Toolset { needs_name: true, .. })
    }
}

/// A tool as read from a table. A project asks it for its secrets and its access before anything is
/// built.
pub trait DeclaredKind: fmt::Debug + Send + Sync {
    /// Everything outside the process that a call can reach. Without a default: trust in a project
    /// depends on it, so each kind has to answer.
    fn external_access(&self) -> Vec<ExternalAccess<'_>>;

    /// The texts that may refer to secrets, each with its field as a JSON pointer into the table.
    fn secret_texts(&self) -> Vec<(String, &str)> {
        Vec::new()
    }

    /// Whether a tool is read-only unless its table says otherwise.
    fn is_read_only(&self) -> bool {
        false
    }

    /// Whether a read-only tool cannot change anything, so that a dry run may make its calls.
    fn is_bounded(&self) -> bool {
        false
    }

    /// The position of a limit in money.
    fn cost_at(&self) -> Option<&Spot> {
        None
    }

    /// The declaration of a tool of a toolset: its name, description and parameters, and all else as in
    /// `base`.
    fn declaration(&self, base: &Declaration, _prefix: Option<&str>) -> Declaration {
        base.clone()
    }

    /// The tools of a document, which replace it; `None` for a kind that is a tool itself.
    fn expand(&self, _table: &DocumentTable<'_>) -> Option<Vec<ExpandedTool>> {
        None
    }

    /// The definition of a third party that it is made from.
    fn third_party(&self) -> Option<ThirdPartyDefinition<'_>> {
        None
    }

    /// Makes the tool.
    fn build(&self, declaration: Declaration, ports: &dyn KindPorts) -> BuiltTool;
}

/// A tool or its errors; `None` if the project lacks a part of it, which is recorded.
pub type BuiltTool = Option<Result<Tool, ToolErrors>>;

/// Reads a named file, with at most this number of bytes: the text, and the position of its start. A file that
/// cannot be read is recorded.
pub type ReadDocument<'a> = dyn Fn(&Located<Arc<str>>, u64) -> Option<(Arc<str>, Spot)> + 'a;

/// A table of the form [`KindForm::Document`].
pub struct DocumentTable<'a> {
    /// The keys that all kinds have.
    pub base: &'a Declaration,
    /// Its name.
    pub prefix: Option<&'a str>,
    /// Its position.
    pub at: &'a Spot,
    /// Reads its file.
    pub read: &'a ReadDocument<'a>,
    /// The problems found.
    pub problems: &'a Problems,
}

/// A tool of a document.
pub type ExpandedTool = (ToolName, Declaration, Box<dyn DeclaredKind>);

/// The definition of a third party, which is linted and pinned.
#[derive(Debug)]
pub struct ThirdPartyDefinition<'a> {
    /// The file that contains it.
    pub file: &'a str,
    /// The lint rules whose findings withhold no tool.
    pub lint_allow: &'a [Located<Arc<str>>],
    /// Whether it is pinned.
    pub is_pinned: bool,
    /// Where its calls go: part of what is pinned.
    pub target: Value,
    /// Why it cannot be called.
    pub withheld: Option<&'a str>,
}

/// Tools of one kind, as [`KindReader::read`] returns them.
pub(crate) fn boxed<K: DeclaredKind + 'static>(
    all: impl IntoIterator<Item = K>,
) -> Vec<Box<dyn DeclaredKind>> {
    all.into_iter().map(|one| Box::new(one) as Box<dyn DeclaredKind>).collect()
}

/// Explains the keys that the toolsets for the agent itself lack.
pub(crate) fn explain_of_agent(table: &Table<'_>) {
    table.explain("untrusted", "this kind marks the results that others may have written");
    table.explain("read_only", "this kind declares it for each of its tools");
}
