//! The port to the project that declares a tool.

#[cfg(feature = "command")]
use std::path::PathBuf;
use std::sync::Arc;

#[cfg(any(feature = "files", feature = "memory"))]
use toolcrib_capabilities::files::Files;
#[cfg(feature = "http")]
use toolcrib_capabilities::http::HttpClient;
#[cfg(feature = "command")]
use toolcrib_capabilities::process::{Sandbox, SandboxTier};
use toolcrib_config::Located;
#[cfg(feature = "memory")]
use toolcrib_core::{FoundMessage, SessionOwner, SessionSearch, SessionStoreError};

#[cfg(feature = "command")]
use super::access::ProgramAccess;
#[cfg(feature = "sql")]
use super::database::SqlDatabase;

/// The parts of a project that its tools are built with. A part that cannot be used is recorded.
pub trait KindPorts {
    /// A declared database: the named one, or the only one.
    #[cfg(feature = "sql")]
    fn database(&self, named: Option<&Located<Arc<str>>>) -> Option<SqlDatabase>;

    /// Declared folders: the named ones, or the only one.
    #[cfg(feature = "files")]
    fn folders(&self, named: &[Located<Arc<str>>]) -> Option<Vec<Files>>;

    /// A client that may also dial these addresses.
    #[cfg(feature = "http")]
    fn http_client(&self, allow_addresses: &[Located<Arc<str>>]) -> HttpClient;

    /// The place of a program. Its sandbox has at least the tier `least`, unless it declares another.
    #[cfg(feature = "command")]
    fn program(&self, program: &ProgramAccess<'_>, least: SandboxTier) -> ProgramPlace;

    /// The memory of the agent.
    #[cfg(feature = "memory")]
    fn memory(&self) -> Option<MemoryParts>;

    /// Whether these personalities can get tasks.
    fn may_delegate(&self, personalities: &[Located<Arc<str>>]) -> bool;

    /// Whether a secret is available now.
    fn has_secret(&self, name: &str) -> bool;
}

/// Where a program runs.
#[cfg(feature = "command")]
#[derive(Debug)]
pub struct ProgramPlace {
    /// The folder from which its paths are relative.
    pub base_dir: PathBuf,
    /// The folder that it runs in.
    pub working_dir: PathBuf,
    /// Its sandbox.
    pub sandbox: Sandbox,
    /// Whether its child processes may outlive it.
    pub allow_stray_children: bool,
}

/// The search in the sessions of an owner.
#[cfg(feature = "memory")]
pub type SearchSessions = Arc<
    dyn Fn(&SessionOwner, &SessionSearch) -> Result<Vec<FoundMessage>, SessionStoreError>
        + Send
        + Sync,
>;

/// The memory of an agent.
#[cfg(feature = "memory")]
pub struct MemoryParts {
    /// Its folder; `None` where nothing may be read or written.
    pub files: Option<Files>,
    /// The search in its sessions.
    pub sessions: SearchSessions,
}
