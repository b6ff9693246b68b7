//! The engine of Toolcrib, used by the library, the agent loop, the command line and the gateway.
//! Per iteration it discovers and composes the tools that a model may see. Every call passes one
//! pipe, which limits it and cleans its result.
//!
//! ```text
//! Engine::turn ─▶ Turn::iteration ─▶ Iteration::menu … Iteration::execute
//!                  │ discover  (provider/discover.rs)  │ resolve → … → record  (pipe/)
//!                  └ compose   (compose/)              └ one file per stage
//! ```
//!
//! # Layers
//!
//! - `runner`: a turn that is driven to its end.
//! - `engine`: an engine, and how it is built.
//! - `turn`: turns and their iterations.
//! - `pipe`: the stages of a call.
//! - `user_future`: code of the host, isolated.
//! - `parts`: the state that all turns of an engine share.
//! - `compose`: which tools a model may see, and why.
//! - `policy`: rules, questions and people.
//! - `validators`: compiled schemas of tools.
//! - `middleware`: reducers of results.
//! - `plugin`: the contributions of a plugin.
//! - `skills`: instructions with tools and steps.
//! - `provider`: the sources of an engine, and their discovery.
//! - `reliability`: retries, fallbacks and breakers.
//! - `secrets`: redaction.
//! - `personality`: the bounds of a turn, and of its child agents.
//! - `deferral`: tools that are found by a search.
//! - `json`: values as a model writes them.

pub mod compose;
mod deferral;
pub mod engine;
mod json;
pub mod middleware;
mod parts;
mod personality;
mod pipe;
mod plugin;
pub mod policy;
pub mod provider;
pub mod reliability;
pub mod runner;
pub mod secrets;
pub mod skills;
pub mod turn;
mod user_future;
mod validators;

#[doc(no_inline)]
pub use self::{
    compose::{Cause, CauseStage, Explanation, FactChange, MissingTool, SmallestChange, Withheld},
    engine::*,
    middleware::*,
    policy::*,
    provider::*,
    reliability::*,
    runner::*,
    secrets::*,
    skills::*,
    turn::*,
};

/// Helpers that the crates of this workspace share. Not part of the public API: they may change in
/// any version.
#[doc(hidden)]
pub mod __internal {
    pub use crate::{compose::request_tools::JudgedOnly, pipe::is_data_note};
}
