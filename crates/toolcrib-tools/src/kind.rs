//! The interface of declared kinds to a project.

use std::sync::Arc;

use toolcrib_config::Located;

/// A kind of tool as read from a table, or a hub. A project asks it for its secrets and its reach
/// before anything is built.
pub trait DeclaredKind {
    /// Everything outside the process that a call can reach. Without a default: trust in a project
    /// depends on it, so each kind has to answer.
    fn external_access(&self) -> Vec<ExternalAccess<'_>>;

    /// The texts that may refer to secrets, each with its field as a JSON pointer into the table.
    fn secret_texts(&self) -> Vec<(String, &str)>;

    /// Whether a tool is read-only unless its table says otherwise.
    fn is_read_only(&self) -> bool {
        false
    }
}

/// One thing outside the process.
#[derive(Debug, Clone)]
pub enum ExternalAccess<'a> {
    /// A declared database; the only one where no name is given.
    Database(Option<&'a Located<Arc<str>>>),
    /// Declared folders; the only one where no name is given.
    Files(&'a [Located<Arc<str>>]),
    /// A program on this machine.
    Program {
        /// The program, then its arguments, as written.
        command: Vec<&'a str>,
        /// The folder that it runs in, as written.
        working_dir: Option<&'a str>,
        /// Its environment: names and values, as written.
        env: &'a [(String, String)],
        /// The variables that it receives from the host.
        inherit_env: &'a [String],
        /// The hosts that its sandbox lets it reach, with their ports, as written.
        hosts: &'a [Located<Arc<str>>],
    },
    /// A server.
    Host {
        /// The URL, as written.
        url: &'a str,
        /// Addresses and nets that may be dialed though they are not public.
        allow_addresses: &'a [Located<Arc<str>>],
    },
}
