//! A project folder, `toolcrib.toml` and skill folders, read, checked and built into an engine.
//!
//! ```text
//! config  toolcrib.toml as typed data    ┐ reading, by means of `toolcrib_config`:
//! skills  SKILL.md files as typed data   ┘ every problem is recorded
//! build   typed data -> databases, secrets, tools, policy, skills, models, MCP servers
//!         (names are resolved here)
//! ```
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
#![allow(
    clippy::disallowed_methods,
    reason = "host crate: it reads the project's own files and the environment"
)]

mod approvals;
mod config;
mod error;
mod find;
mod hook;
mod init;
mod lock;
mod mcp;
mod open;
mod own_store;
mod plugin;
mod private;
mod project;
mod resolve;
mod root;
mod secrets;
mod serve;
mod server_log;
mod sessions;
mod skills;
mod state;
mod system;
mod text_file;
mod tokens;
mod trust;
mod vault;

pub use toolcrib_config::{Diagnostic, Diagnostics, Help, Severity, Spot};

#[doc(hidden)]
pub use self::private::folder_of_user;
pub use self::{
    approvals::ProjectApprovals,
    error::LoadError,
    find::{NoProjectError, find},
    init::{InitError, InitReport, init, init_from, init_from_url, init_with_browser},
    lock::{LOCK_FILE, Lock, LockError, LockEvent, LockMode, PinChange, PinName},
    mcp::McpServer,
    project::{LoadOptions, Mode, Project},
    resolve::{DeclaredHub, DeclaredModel, Prices, environment_model},
    serve::{ServeOAuth, ServeSettings, ServeToken, TlsFiles, TokenError, TokenFile},
    sessions::Sessions,
    skills::{InstallError, InstalledSkill, RefusedArchiveError},
    trust::{
        Action, Consent, ForeignFile, Power, Review, TrustError, TrustRecord, TrustState,
        TrustStore, Verdict,
    },
    vault::{Vault, VaultError},
};

/// The file that makes a folder a project.
pub const PROJECT_FILE: &str = "toolcrib.toml";

/// The JSON Schema of the project file, for editors. A test generates it from the reader.
pub const PROJECT_FILE_SCHEMA: &str = include_str!("../toolcrib.schema.json");

/// The file in a plugin's folder that declares its content.
pub const PLUGIN_FILE: &str = "plugin.toml";
