//! How a project is loaded.

use std::{path::PathBuf, sync::Arc};

use toolcrib_core::CancellationToken;

use super::{lock::LockMode, trust::consent::Consent};

/// How a project is loaded.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// The state folder. Default: `.toolcrib` in the project.
    pub state: Option<PathBuf>,
    /// The URL of the PostgreSQL database that stores sessions, instead of the project's own place.
    pub store: Option<String>,
    /// Whether calls will be run. Default: no.
    pub mode: Mode,
    /// A model that replaces the project's own, in the same notation. A script given here may be
    /// outside the project; a relative path starts at the project's folder.
    pub model: Option<String>,
    /// The base URL of that model, which replaces the vendor's. API keys of the environment are not
    /// sent there.
    pub base_url: Option<String>,
    /// `mcpServers` files whose servers are added to the project's own. They may be outside the
    /// project, and their programs run in this process's working folder. A server that cannot be
    /// listed is left out, with a notice, unless the project has a `[mcp.NAME]` for it that says
    /// otherwise. A server that cannot be used as declared fails the same way, with a warning.
    pub imports: Vec<PathBuf>,
    /// Whether child processes of imported servers may outlive them, unless a `[mcp.NAME]` of the
    /// project sets it. Default: no; such a server is not started where this cannot be prevented.
    pub allow_stray_children: bool,
    /// The names of imported servers whose hints about effects of tools are trusted, unless a
    /// `[mcp.NAME]` of the project sets it. Default: none.
    pub trusted: Vec<String>,
    /// The lint rules that do not withhold tools of imported servers, as pairs of a server's name and a
    /// rule, beside `lint_allow` of a `[mcp.NAME]` of the project. Default: none.
    pub lint_allow: Vec<(String, String)>,
    /// The ids of plugins that are added to the engine in code, so that personalities may name
    /// them.
    pub plugins: Vec<Arc<str>>,
    /// Decides for the user whether the project may be used, and its databases replaced. Default:
    /// both are permitted, as for a program that loads its own project.
    pub consent: Option<Arc<dyn Consent>>,
    /// Whether the project must not start programs or open connections. Default: no.
    pub offline: bool,
    /// How pinned definitions of remote sources are used.
    pub lock: LockMode,
    /// The options by which a command of `toolcrib` finds this project, such as ` --import FILE`, for
    /// texts that name a command. Default: none, which fits the project's folder.
    pub flags: String,
    /// Ends the wait for another process that creates the same database.
    pub cancel: CancellationToken,
}

/// The purpose of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// To inspect it. Writes nothing, and refuses calls to tools over a database.
    #[default]
    Inspect,
    /// The same, with databases as [`Run`](Self::Run) with `fresh` would create them: to evaluate
    /// an action before they are replaced.
    Preview,
    /// To run calls. Creates the state folder and missing databases.
    Run {
        /// Recreates the declared databases from their seeds: none while one of them is in use, and
        /// none unless the project loads with all the new ones. The old files are kept.
        fresh: bool,
    },
}
