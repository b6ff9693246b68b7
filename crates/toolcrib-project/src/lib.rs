//! A project folder, `toolcrib.toml` and skill folders, read, checked and built into an engine.
//!
//! ```text
//! config  toolcrib.toml as typed data    ┐ reading, by means of `toolcrib_config`:
//! skills  SKILL.md files as typed data   ┘ every problem is recorded
//! build   typed data -> databases, secrets, tools, policy, skills, models, MCP servers
//!         (names are resolved here)
//! ```
//!
//! Reading never stops at the first problem: [`LoadError::Diagnostics`] holds all of them, each
//! with file, line, column and, where it can be said, what to write instead.
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

mod build;
mod config;
mod error;
mod find;
mod init;
mod mcp;
mod open;
mod plugin;
mod project;
mod root;
mod secrets;
mod serve;
mod skills;
mod state;
mod system;
mod trust;

pub use toolcrib_config::{Diagnostic, Diagnostics, Severity};

pub use self::{
    build::{DeclaredHub, DeclaredModel, environment_model},
    error::LoadError,
    find::{NoProject, find},
    init::{InitError, init},
    mcp::McpServer,
    project::{LoadOptions, Mode, Project},
    serve::{ServeToken, TokenError, TokenFile},
    skills::{InstallError, InstalledSkill, RefusedArchive},
    trust::{
        Action, Consent, Foreign, Power, Review, Standing, TrustError, TrustStore, Trusted, Verdict,
    },
};

/// The file that makes a folder a project.
pub const PROJECT_FILE: &str = "toolcrib.toml";

/// The file in a plugin's folder that says what it adds.
pub const PLUGIN_FILE: &str = "plugin.toml";
