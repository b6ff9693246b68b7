//! A project folder, `toolcrib.toml` and skill folders, read, checked and built into an engine.
//!
//! Reading never stops at the first problem: [`LoadError::Diagnostics`] contains all of them, each
//! with file, line, column and, if known, what to write instead.
//!
//! ```no_run
//! use toolcrib_project::{LoadOptions, Project, find};
//!
//! let dir = find(".".as_ref())?;
//! let project = Project::load(&dir, &LoadOptions::default())?;
//! for tool in project.tools() {
//!     println!("{}: {}", tool.name(), tool.description());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Layers
//!
//! - `init`: new projects.
//! - `project`: the loaded project, and the four phases of its loading.
//! - `skills`: skills that may change while they are used, and their installation.
//! - `powers`: the actions of a project with its user's rights, from its declarations.
//! - `build`: databases, tools, policy, skills, models and MCP servers from typed data.
//! - `bind`: the names of a project: their declarations, and what refers to them.
//! - `user`: options, trust, the lock, the state folder.
//! - `error`: why a project is not loaded.
//! - `read`: the texts of a project, each read once, and never from outside of its folder.
//! - `file`: `toolcrib.toml` and `plugin.toml` as typed data; every problem is recorded.
//! - `private`: files that only their user can read and change, and the vault.
#![allow(
    clippy::disallowed_methods,
    reason = "host crate: it reads the project's own files and the environment"
)]

mod bind;
mod build;
mod error;
mod file;
mod init;
mod powers;
mod private;
mod project;
mod read;
mod skills;
mod user;

pub use toolcrib_config::{Diagnostic, Diagnostics, Help, Severity, Spot};
pub use toolcrib_store::ServerFinding;

#[doc(hidden)]
pub use self::private::folder_of_user;
pub use self::{
    build::{
        DeclaredHub, DeclaredModel, Prices, configured_model,
        mcp::server::McpServer,
        serve::{
            ServeEndpoint, ServeOAuth, ServeSettings, ServeToken, TlsFiles, TokenError, TokenFile,
        },
        vendor_model,
    },
    error::LoadError,
    file::{PLUGIN_FILE, PROJECT_FILE},
    init::{
        InitError, InitReport, PROJECT_FILE_SCHEMA, ScratchProject, ScratchTools, init, init_from,
        init_from_url, init_scratch, init_with_browser,
    },
    private::vault::{Vault, VaultError},
    project::{Project, plan::ProjectPlan},
    read::{
        find::{NoProjectError, find},
        owner::ForeignFile,
    },
    skills::install::{InstallError, InstalledSkill, RefusedArchiveError},
    user::{
        approvals::ProjectApprovals,
        lock::{LOCK_FILE, Lock, LockError, LockEvent, LockMode, PinChange, PinName},
        models::{UserModels, UserModelsError},
        options::{LoadOptions, Mode},
        sessions::Sessions,
        trust::{
            TrustError, TrustRecord, TrustState, TrustStore,
            consent::{Consent, Review, Verdict},
            facts::TrustChange,
            power::{Action, Power},
        },
    },
};
