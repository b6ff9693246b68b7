//! The external access of a declared tool or hub.

use std::sync::Arc;

use toolcrib_config::Located;

#[cfg(feature = "command")]
use super::sandbox::SandboxSection;

/// One thing outside the process that a call can reach.
#[derive(Debug, Clone)]
pub enum ExternalAccess<'a> {
    /// A declared database; the only one where no name is given.
    Database(Option<&'a Located<Arc<str>>>),
    /// Declared folders.
    Files {
        /// Their names; none for the only declared one.
        folders: &'a [Located<Arc<str>>],
        /// Whether it writes.
        writes: bool,
    },
    /// A program on this machine.
    #[cfg(feature = "command")]
    Program(ProgramAccess<'a>),
    /// A server.
    Host {
        /// The URL, as written.
        url: &'a str,
        /// The field of the URL, as a JSON pointer into the table.
        url_field: &'static str,
        /// Addresses and nets that may be dialed though they are not public.
        allow_addresses: &'a [Located<Arc<str>>],
        /// The key of these addresses.
        addresses_key: &'static str,
    },
    /// The memory of the agent, in the state folder of the project.
    Memory,
}

/// A program on this machine.
#[cfg(feature = "command")]
#[derive(Debug, Clone)]
pub struct ProgramAccess<'a> {
    /// The program, as written; empty where it is missing or unreadable, which is recorded.
    pub program: &'a str,
    /// Its arguments, as written.
    pub args: Vec<&'a str>,
    /// The folder that it runs in, as written.
    pub working_dir: Option<&'a str>,
    /// Its environment: names and values, as written.
    pub env: &'a [(String, String)],
    /// The variables that it receives from the host.
    pub inherit_env: &'a [String],
    /// Its sandbox, as written.
    pub sandbox: &'a SandboxSection,
    /// Whether its child processes may outlive it; the project decides if absent.
    pub allow_stray_children: Option<bool>,
}
