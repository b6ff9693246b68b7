//! A project folder, `toolcrib.toml` and skill folders, read, checked and built into an engine.
//!
//! ```text
//! reader  TOML text, with the place of everything      ┐
//! config  toolcrib.toml as typed data                  ├ reading: every problem is recorded
//! skills  SKILL.md files as typed data                 ┘
//! build   typed data -> databases, tools, policy, skills, model   (names are resolved here)
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
    reason = "host crate: it reads the project's own files"
)]

mod build;
mod config;
mod diagnostic;
mod error;
mod find;
mod init;
mod project;
mod reader;
mod root;
mod skills;
mod state;
mod suggest;

pub use self::{
    diagnostic::{Diagnostic, Diagnostics, Severity},
    error::LoadError,
    find::{NoProject, find},
    init::{InitError, init},
    project::{LoadOptions, Mode, Project},
};

/// The file that makes a folder a project.
pub const PROJECT_FILE: &str = "toolcrib.toml";
